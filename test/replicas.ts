import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/client/validators/cf-worker";
import { Client as FirstClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as FirstTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { connect } from "@nats-io/transport-node";
import { rolldown } from "rolldown";
import { createGateway, type GatewayConfig, serveGateway } from "../src/gateway/index.ts";
import { atEnd } from "./gateway-sources.ts";
import { until } from "./mcp-requests.ts";
import { deskOperations, replicaConfig, TOKENS } from "./replica-desk.ts";

/** A replica of a gateway on a broker, in this process. */
export interface BrokerReplica {
  readonly url: string;
  readonly name: string;
  /** How many questions were answered to handlers of this replica. */
  readonly asked: number;
  readonly warnings: readonly string[];
  /** Lets all handlers that wait go on. */
  release(): void;
  /** Stops in order; calls have so many milliseconds to end, 0 unless told otherwise. */
  close(timeoutMs?: number): Promise<void>;
}

/** Starts a replica on a broker, which ends with the test. */
export async function startReplica(name: string, config: GatewayConfig): Promise<BrokerReplica> {
  const { operations, counts, release } = deskOperations(name);
  const warnings: string[] = [];
  const onWarning = (message: string): void => void warnings.push(message);
  const loaded = { ...replicaConfig(config), localOperations: operations };
  const gateway = await createGateway(loaded, { onWarning });
  // A busy machine takes longer than a gateway waits before it serves what it can without.
  await gateway.state.replicas();
  const server = await serveGateway(gateway, loaded, { onWarning });
  const close = async (timeoutMs = 0): Promise<void> => {
    await server.close({ timeoutMs });
    await gateway.close();
  };
  atEnd(() => close());
  return {
    url: server.url,
    name: gateway.state.replica,
    get asked() {
      return counts.asked;
    },
    warnings,
    release,
    close,
  };
}

/** A client of one of the SDKs. */
export interface SdkCaller {
  /** The id of the session; nothing for a 2026-07-28 client. */
  readonly session: string | undefined;
  call(name: string): Promise<unknown>;
}

/** What every client answers to every question. */
export const ANSWER = { action: "accept" as const, content: { colour: "green" } };
const asAnn = { requestInit: { headers: { authorization: `Bearer ${TOKENS.ann}` } } };
const jsonSchemaValidator = new CfWorkerJsonSchemaValidator();

/** Connects the second SDK, as a client of 2025 or as what the server speaks. */
export async function connectSecond(url: string, mode: "legacy" | "auto"): Promise<SdkCaller> {
  const capabilities = { elicitation: { form: {} } };
  const client = new Client(
    { name: "second", version: "1" },
    { capabilities, jsonSchemaValidator, versionNegotiation: { mode } },
  );
  client.setRequestHandler("elicitation/create", () => ANSWER);
  const transport = new StreamableHTTPClientTransport(new URL(url), asAnn);
  await client.connect(transport);
  atEnd(() => client.close());
  return {
    session: transport.sessionId,
    call: async (name) => (await client.callTool({ name, arguments: {} })).structuredContent,
  };
}

/** Connects the first SDK. */
export async function connectFirst(url: string): Promise<SdkCaller> {
  const client = new FirstClient({ name: "first", version: "1" }, { capabilities: { elicitation: {} } });
  client.setRequestHandler(ElicitRequestSchema, () => ANSWER);
  const transport = new FirstTransport(new URL(url), asAnn);
  await client.connect(transport as never);
  atEnd(() => client.close());
  return {
    session: transport.sessionId,
    call: async (name) => (await client.callTool({ name, arguments: {} })).structuredContent,
  };
}

/** Looks at what replicas store of streams from now on; the function it returns waits until a text is among it. */
export async function watchStored(nats: string): Promise<(text: string) => Promise<void>> {
  const connection = await connect({ servers: nats });
  atEnd(() => connection.close());
  let stored = "";
  connection.subscribe("waybill.state.*.record.streams.>", {
    callback: (_, message) => {
      stored += message.string();
    },
  });
  await connection.flush();
  return (text) => until(() => stored.includes(text));
}

/** A replica in a process of its own. */
export interface ReplicaProcess {
  readonly url: string;
  readonly name: string;
  /** Ends it as a crash would. */
  kill(): Promise<void>;
}

let program: Promise<string> | undefined;

/** Starts a replica in a process of its own, which ends with the test. */
export async function startReplicaProcess(nats: string, gateway: string): Promise<ReplicaProcess> {
  program ??= bundleReplica();
  const child = spawn(process.execPath, [await program, nats, gateway], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const kill = async (): Promise<void> => {
    child.kill("SIGKILL");
    await exited;
  };
  atEnd(kill);
  for await (const line of createInterface({ input: child.stdout })) {
    const [url = "", name = ""] = line.split(" ");
    return { url, name, kill };
  }
  throw new Error("The replica ended before it listened.");
}

async function bundleReplica(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "waybill-replica-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "replica.mjs");
  const input = fileURLToPath(new URL("replica-process.ts", import.meta.url));
  const bundle = await rolldown({ input, platform: "node", logLevel: "silent" });
  await bundle.write({ file, format: "esm", codeSplitting: false });
  await bundle.close();
  return file;
}
