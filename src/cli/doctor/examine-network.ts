import { connect, createServer } from "node:net";
import { parseUrl } from "../../core/text/parse-url.ts";
import type { BusConfig, ServeConfig } from "../../gateway/config/gateway-config.ts";
import { DEFAULT_PORT } from "../../gateway/serve/serve-settings.ts";
import { type Diagnosis, fine, note, problem } from "./diagnosis.ts";

const PATIENCE_MS = 2_000;

/** Looks whether the gateway could listen where the config says, or does already. */
export async function examinePort({
  host = "127.0.0.1",
  port = DEFAULT_PORT,
}: ServeConfig): Promise<Diagnosis> {
  const subject = `${host}:${port}`;
  const code = await tryToListen(host, port);
  if (code === undefined) return fine("port", subject, port === 0 ? "any free port" : "free");
  if (code !== "EADDRINUSE") {
    const fix = "Choose another with serve.host and serve.port.";
    return problem("port", subject, `It cannot be listened on (${code}).`, fix);
  }
  if (await isWaybill(host, port))
    return note("port", subject, "a gateway is served there already, by all that can be seen");
  const fix = "Stop what uses the port, or choose another: serve.port, or --port.";
  return problem("port", subject, "Something else listens there.", fix);
}

function tryToListen(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? "unknown"));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

/** Asks both probes of a gateway: who answers both in its words is one, or as good as one. */
async function isWaybill(host: string, port: number): Promise<boolean> {
  const name = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host;
  const answers = await Promise.all(
    ["health", "ready"].map((probe) => ask(`http://${name}:${port}/${probe}`)),
  );
  return answers[0] === '{"status":"ok"}' && /^\{"status":"(?:ok|closing)"\}$/.test(answers[1] ?? "");
}

/** The beginning of an answer; nothing where there is none. */
async function ask(url: string): Promise<string | undefined> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(PATIENCE_MS), redirect: "manual" });
    let text = "";
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk).toString("latin1");
      if (text.length > 1_000) break;
    }
    return text.trim();
  } catch {
    return undefined;
  }
}

/** Looks whether a broker of the bus answers as one. */
export async function examineBus({ nats }: BusConfig): Promise<readonly Diagnosis[]> {
  return await Promise.all([nats].flat().map(examineBroker));
}

const NATS_PORT = 4_222;

async function examineBroker(address: string): Promise<Diagnosis> {
  const url =
    parseUrl(address) !== undefined && address.includes("://")
      ? new URL(address)
      : tryUrl(`nats://${address}`);
  if (url === undefined) {
    return problem("bus", "", "The address of the broker is none.", "Write it as nats://host:4222.");
  }
  const port = Number(url.port || NATS_PORT);
  // A user and a password in the address are nobody's business.
  const subject = `${url.hostname}:${port}`;
  const said = await greetingOf(url.hostname.replace(/^\[|\]$/g, ""), port);
  if (said.greeting?.startsWith("INFO ")) return fine("bus", subject, "a broker answers");
  const message =
    said.greeting === undefined
      ? `No broker can be reached (${said.code}).`
      : "What answers there is no NATS server.";
  return problem("bus", subject, message, "Start a nats-server, or correct bus.nats.");
}

function tryUrl(text: string): URL | undefined {
  return parseUrl(text);
}

interface Greeting {
  readonly greeting?: string;
  readonly code?: string;
}

/** What a server says first. */
function greetingOf(host: string, port: number): Promise<Greeting> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const end = (greeting: Greeting) => {
      socket.destroy();
      resolve(greeting);
    };
    socket.setTimeout(PATIENCE_MS, () => end({ code: "no answer in time" }));
    socket.once("data", (data) => end({ greeting: data.toString("latin1", 0, 100) }));
    socket.once("error", (error: NodeJS.ErrnoException) => end({ code: error.code ?? "unknown" }));
    socket.once("end", () => end({ greeting: "" }));
  });
}
