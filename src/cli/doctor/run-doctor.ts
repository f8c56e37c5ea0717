import { constants } from "node:fs";
import { access, mkdir } from "node:fs/promises";
import { createRequire } from "node:module";
import { connect, createServer } from "node:net";
import { relative } from "node:path";
import { PACKAGE_VERSION } from "../../core/package-version.ts";
import { safeLine } from "../../core/text/clean-text.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import type { BusConfig, ServeConfig } from "../../gateway/config/gateway-config.ts";
import { ConfigError, type LoadedConfig } from "../../gateway/config/loaded-config.ts";
import { stateFolder } from "../../gateway/embedded/state-folder.ts";
import { DEFAULT_PORT } from "../../gateway/serve/serve-settings.ts";
import type { SourceReport } from "../../gateway/sources/source.ts";
import { EXIT, type Io } from "../io.ts";
import { createPastedCommand, type PastedCommand } from "../pasted-command.ts";
import { chosenSources, type ReadTarget, readTarget, type SourceFlags } from "../session/session.ts";
import { withProgress } from "../terminal/progress.ts";
import { toSafeJson } from "../terminal/style.ts";
import {
  byWeight,
  type Diagnosis,
  examineApis,
  examinePatterns,
  examineSource,
  examineTools,
  fine,
  note,
  problem,
  toDoctorText,
} from "./examine-sources.ts";

/** The flags of `waybill doctor`. */
export interface DoctorFlags extends SourceFlags {
  readonly json?: boolean | undefined;
  /** Milliseconds that sources have to come up. */
  readonly timeout?: number | undefined;
}

const TIMEOUT_MS = 60_000;

/** What was found, and the reports it was found in. */
interface Findings {
  readonly diagnoses: readonly Diagnosis[];
  readonly sources: readonly SourceReport[];
  readonly exitCode: number;
}

/** Looks at everything, says what is wrong and what to do, and gives the exit code. */
export async function runDoctor(io: Io, flags: DoctorFlags): Promise<number> {
  const around = await examineSurroundings(io);
  const { diagnoses, sources, exitCode } = await examineTarget(io, flags);
  const again = createPastedCommand(io, flags);
  // A source that was named on the command line has no name but its flags.
  const isNamed = (flags.mcp ?? flags.openapi ?? flags.url) === undefined;
  const paste = (words: string): string => again(isNamed ? words : words.replace(/^check .*/, "check"));
  const all = [...around, ...diagnoses].map((one) => toShown(one, paste)).sort(byWeight);
  if (flags.json) {
    const ok = exitCode === EXIT.ok && !all.some(isProblem);
    io.stdout.write(`${toSafeJson({ ok, waybill: PACKAGE_VERSION, diagnoses: all, sources }, 2)}\n`);
  } else io.stdout.write(await toDoctorText(all, io));
  return exitCode !== EXIT.ok ? exitCode : all.some(isProblem) ? EXIT.toolError : EXIT.ok;
}

function isProblem({ status }: Diagnosis): boolean {
  return status === "problem";
}

/** Cleans what is shown; commands in it are spelt as this one was, and about the same sources. */
function toShown(diagnosis: Diagnosis, paste: PastedCommand): Diagnosis {
  const { subject, message, fix, stderr } = diagnosis;
  return {
    ...diagnosis,
    subject: safeLine(subject, 300),
    message: safeLine(message),
    ...(stderr !== undefined && { stderr: stderr.map((line) => safeLine(line)) }),
    ...(fix !== undefined && {
      fix: safeLine(fix.replace(/"waybill ([^"]*)"/g, (_, words: string) => `"${paste(words)}"`)),
    }),
  };
}

async function examineTarget(io: Io, flags: DoctorFlags): Promise<Findings> {
  let target: ReadTarget;
  try {
    target = await readTarget(io, flags);
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown;
    return { diagnoses: examineMistakes(thrown), sources: [], exitCode: EXIT.usage };
  }
  try {
    const { loaded } = target;
    const [{ reports: sources, behind }, rest] = await Promise.all([
      mountSources(io, loaded, flags),
      examineRest(io, target),
    ]);
    const diagnoses = [
      ...examineConfig(io, target),
      ...sources.flatMap((report) => examineSource(report, loaded.faults)),
      ...behind,
      ...rest,
    ];
    const masked = diagnoses.map((one) => ({ ...one, message: loaded.secrets.mask(one.message) }));
    return { diagnoses: masked, sources, exitCode: EXIT.ok };
  } finally {
    await target.close();
  }
}

/** Starts every source, as the gateway would, checks what it is connected to, and ends it again. */
async function mountSources(
  io: Io,
  loaded: LoadedConfig,
  { source, timeout = TIMEOUT_MS }: DoctorFlags,
): Promise<{ readonly reports: readonly SourceReport[]; readonly behind: readonly Diagnosis[] }> {
  const { createGateway } = await import("../../gateway/gateway.ts");
  const wanted = source && chosenSources(loaded.config, source);
  const gateway = await createGateway(loaded, wanted && { startNow: (name) => wanted.has(name) });
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    await withProgress(io, "starting sources", async () => {
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, timeout);
        io.signal?.addEventListener("abort", () => resolve(), { once: true });
      });
      await Promise.race([gateway.ready, late]);
    });
    io.signal?.throwIfAborted();
    const reports = gateway.reports();
    const apis = await examineApis(loaded, reports, io.signal);
    const tools = await examineTools(gateway, loaded);
    // What fits nothing of some sources may fit others.
    const patterns = wanted === undefined ? examinePatterns(gateway, loaded) : [];
    return { reports, behind: [...apis, ...tools, ...patterns] };
  } finally {
    clearTimeout(timer);
    await gateway.close();
  }
}

async function examineRest(io: Io, { loaded, kind }: ReadTarget): Promise<readonly Diagnosis[]> {
  const { serve = {}, bus } = loaded.config;
  const docs = serve.http !== false && (typeof serve.http !== "object" || serve.http.docs !== false);
  const { wantsTelemetry } = await import("../../gateway/serve/observe/telemetry.ts");
  const [port, brokers] = await Promise.all([
    // What is on the command line is not served.
    kind === "target" ? [] : examinePort(serve),
    bus === undefined ? [] : examineBus(bus),
  ]);
  const packages = kind === "target" ? [] : examinePackages({ docs, telemetry: wantsTelemetry(io.env) });
  return [port, brokers, packages].flat();
}

/** Says which config is used, and what is odd about it. */
function examineConfig(io: Io, { loaded, kind }: ReadTarget): readonly Diagnosis[] {
  const subject = describe(io, loaded, kind);
  const envFiles = [...loaded.files.keys()].filter((file) => file !== loaded.path);
  return [
    fine("config", subject, kind === "config" ? "valid" : "no file is needed"),
    ...envFiles.map((file) => fine("config", shown(io, file), "read for references")),
    // What a reference of a source lacks is told of the source.
    ...loaded.warnings.map((warning) => note("config", subject, loaded.secrets.mask(warning))),
  ];
}

/** Lists the mistakes of a config that cannot be used. */
function examineMistakes({ issues }: ConfigError): readonly Diagnosis[] {
  return issues.map((issue) => problem("config", "", issue, "Correct the config at the place named."));
}

function describe(io: Io, { path }: LoadedConfig, kind: ReadTarget["kind"]): string {
  if (path !== undefined) return shown(io, path);
  return kind === "embedded" ? "the embedded default" : "the command line";
}

function shown(io: Io, path: string): string {
  const near = relative(io.cwd, path);
  return near.startsWith("..") ? path : near;
}

const LEAST_NODE = [20, 19] as const;

/** Looks at what Waybill runs on: Node, itself, where it keeps state. */
async function examineSurroundings(io: Io): Promise<readonly Diagnosis[]> {
  return [
    examineNode(process.versions.node),
    fine("waybill", PACKAGE_VERSION, "this version"),
    await examineState(io),
  ];
}

/** Judges a version of Node. */
export function examineNode(version: string): Diagnosis {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [wantedMajor, wantedMinor] = LEAST_NODE;
  const isEnough = major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);
  if (isEnough) return fine("node", version, "new enough");
  const wanted = LEAST_NODE.join(".");
  return problem(
    "node",
    version,
    `Waybill needs Node ${wanted} or newer.`,
    `Install Node ${wanted} or newer.`,
  );
}

async function examineState(io: Io): Promise<Diagnosis> {
  const folder = stateFolder({ env: io.env });
  try {
    await mkdir(folder, { recursive: true });
    await access(folder, constants.W_OK);
    return fine("state", folder, "can be written");
  } catch (cause) {
    const { code = "unknown" } = cause as { code?: string };
    const fix = "Make the folder writable, or name another in WAYBILL_STATE_DIR.";
    return problem("state", folder, `The folder for state cannot be written (${code}).`, fix);
  }
}

/** Packages that are used where they are installed. */
interface WantedPackages {
  readonly docs: boolean;
  readonly telemetry: boolean;
}

/** Looks for packages that are optional, where something asks for them. */
export function examinePackages(
  { docs, telemetry }: WantedPackages,
  isInstalled: (name: string) => boolean = isThere,
): readonly Diagnosis[] {
  const found: Diagnosis[] = [];
  if (docs) {
    const name = "swagger-ui-dist";
    const fix = `Run: npm install ${name}`;
    found.push(
      isInstalled(name)
        ? fine("package", name, "installed; /docs can try operations out")
        : note(
            "package",
            name,
            "not installed; /docs is the inspector where that is served, else a plain list",
            fix,
          ),
    );
  }
  if (!telemetry) return found;
  for (const name of ["@opentelemetry/api", "@opentelemetry/sdk-node"]) {
    const fix = "Run: npm install @opentelemetry/api @opentelemetry/sdk-node";
    const message = "OTEL_* asks for telemetry, and the package is not installed; nothing is exported.";
    found.push(
      isInstalled(name) ? fine("package", name, "installed") : problem("package", name, message, fix),
    );
  }
  return found;
}

function isThere(name: string): boolean {
  const { resolve } = createRequire(import.meta.url);
  try {
    resolve(name);
    return true;
  } catch (cause) {
    // Installed, and not to be loaded that way.
    return (cause as { code?: unknown }).code === "ERR_PACKAGE_PATH_NOT_EXPORTED";
  }
}

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
  if (await isWaybill(host, port)) return note("port", subject, "a Waybill gateway runs there already");
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
      : parseUrl(`nats://${address}`);
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
