import { spawn } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/client/validators/cf-worker";
import { Client as FirstClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as FirstTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { onTestFinished } from "vitest";
import type { GatewayConfig } from "../src/gateway/index.ts";
import { freePort } from "./free-port.ts";
import { type CommandOptions, openFolder, type RunningCommand, startWaybill } from "./installed-command.ts";
import { ROOT } from "./run-node.ts";

/** The path of a script in `test/soak`. */
export function service(name: string): string {
  return join(ROOT, "test/soak", name);
}

/** An MCP server of ours as a config names it. */
export const STDIO_SERVICE = { command: process.execPath, args: [service("mcp-service.js")] };

/** The path of a module of `node_modules`. */
export function installedModule(path: string): string {
  return join(ROOT, "node_modules", path);
}

/** Waits until something is so, however often that must be asked; fails where it never is. */
export async function eventually<T>(
  what: string,
  ask: () => T | Promise<T>,
  isSo: (found: T) => boolean = Boolean,
  withinMs = 60_000,
): Promise<T> {
  const end = performance.now() + withinMs;
  for (;;) {
    const found = await ask();
    if (isSo(found)) return found;
    if (performance.now() > end)
      throw new Error(`It never came to be: ${what}; last: ${JSON.stringify(found)}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A service in a process of its own. */
export interface ServiceProcess {
  readonly url: string;
  /** Ends it as a crash would. */
  kill(): Promise<void>;
  /** Starts it again on the same port. */
  restart(): Promise<void>;
}

/** Starts a script of `test/soak` that says where it listens. */
export async function startService(
  name: string,
  env: Readonly<Record<string, string>> = {},
): Promise<ServiceProcess> {
  const port = await freePort();
  const launch = async () => {
    const child = spawn(process.execPath, [service(name), String(port)], {
      env: { ...process.env, ...env },
      stdio: ["pipe", "pipe", "inherit"],
    });
    const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    const endWithTests = (): void => void child.kill("SIGKILL");
    process.once("exit", endWithTests);
    const lines = createInterface({ input: child.stdout });
    const url = await new Promise<string>((resolve, reject) => {
      lines.once("line", resolve);
      child.once("exit", (code) => reject(new Error(`${name} ended with ${code}.`)));
    });
    const kill = async (): Promise<void> => {
      process.off("exit", endWithTests);
      child.kill("SIGKILL");
      await exited;
    };
    return { url, kill };
  };
  let running = await launch();
  return {
    url: running.url,
    kill: () => running.kill(),
    async restart() {
      await running.kill();
      running = await launch();
    },
  };
}

/** A gateway of the installed command. */
export interface GatewayProcess extends RunningCommand {
  readonly url: string;
  readonly folder: string;
  readonly pid: number;
  /** Calls an operation over HTTP; whatever comes of it. */
  post(operation: string, input: unknown, init?: RequestInit): Promise<{ status: number; body: never }>;
  /** What `/metrics` says of a name with labels, such as `waybill_source_up{source="a",kind="mcp"}`. */
  metric(name: string, init?: RequestInit): Promise<number | undefined>;
}

/** A folder with a config. */
export function writeConfig(config: GatewayConfig) {
  const folder = openFolder();
  writeFileSync(join(folder.path, "waybill.config.json"), JSON.stringify(config));
  return folder;
}

/** How a gateway is started. */
interface GatewayProcessOptions extends CommandOptions {
  readonly flags?: readonly string[];
  /** Written beside the config. */
  readonly files?: Readonly<Record<string, string>>;
}

/** Starts `waybill serve` on a config and a free port, and waits until every source was tried. */
export async function startGateway(
  config: GatewayConfig,
  options: GatewayProcessOptions = {},
): Promise<GatewayProcess> {
  const folder = writeConfig(config);
  const { flags = [], files = {}, ...rest } = options;
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder.path, name), text);
  const running = startWaybill(
    ["serve", "--port", "0", "--lame-duck", "0", "--log-format", "json", ...flags],
    {
      ...rest,
      cwd: folder.path,
      env: { WAYBILL_STATE_DIR: folder.state, ...rest.env },
    },
  );
  const endWithTests = (): void => void running.child.kill("SIGKILL");
  process.once("exit", endWithTests);
  running.ended.then(() => {
    process.off("exit", endWithTests);
    folder.remove();
  });
  const [, url = ""] = await running.says(/"url":"(http:[^"]+)","msg":"listening"/);
  return {
    ...running,
    url,
    folder: folder.path,
    pid: running.child.pid ?? 0,
    async post(operation, input, init = {}) {
      const response = await fetch(`${url}/call`, {
        method: "POST",
        body: JSON.stringify({ operation, input }),
        ...init,
        headers: { "content-type": "application/json", ...init.headers },
      });
      return { status: response.status, body: (await response.json()) as never };
    },
    async metric(name, init) {
      const text = await (await fetch(`${url}/metrics`, init)).text();
      const line = text.split("\n").find((one) => one.startsWith(`${name} `));
      return line === undefined ? undefined : Number(line.slice(name.length + 1));
    },
  };
}

const VALIDATOR = { jsonSchemaValidator: new CfWorkerJsonSchemaValidator() };
const PINNED = { versionNegotiation: { mode: { pin: "2026-07-28" } } } as const;

/** MCP clients by SDK and revision, and how each connects. */
const CLIENTS = {
  "SDK 1": async (url: URL, name: string, requestInit: RequestInit): Promise<Client> => {
    const client = new FirstClient({ name, version: "1" }, VALIDATOR);
    await client.connect(new FirstTransport(url, { requestInit }) as never);
    return client as unknown as Client;
  },
  "SDK 2, 2025": async (url: URL, name: string, requestInit: RequestInit): Promise<Client> => {
    const client = new Client({ name, version: "1" }, VALIDATOR);
    await client.connect(new StreamableHTTPClientTransport(url, { requestInit }));
    return client;
  },
  "SDK 2, 2026": async (url: URL, name: string, requestInit: RequestInit): Promise<Client> => {
    const client = new Client({ name, version: "1" }, { ...VALIDATOR, ...PINNED });
    await client.connect(new StreamableHTTPClientTransport(url, { requestInit }));
    return client;
  },
} as const;

type ClientKind = keyof typeof CLIENTS;
export const CLIENT_KINDS = Object.keys(CLIENTS) as ClientKind[];

/** Connects a client to a gateway. */
export function connectClient(
  kind: ClientKind,
  { url }: Pick<GatewayProcess, "url">,
  { name = "peer", ...init }: RequestInit & { readonly name?: string } = {},
): Promise<Client> {
  return CLIENTS[kind](new URL(`${url}/mcp`), name, init);
}

/** The same, for one test: the client closes when that is over. */
export async function connectForTest(...given: Parameters<typeof connectClient>): Promise<Client> {
  const client = await connectClient(...given);
  onTestFinished(() => client.close());
  return client;
}

/** The usual name of the tool of an operation. */
function toolOf(operationId: string): string {
  return operationId.replace(".", "_");
}

/** Finds the tool of an operation whose id could be told from another's by nothing but an ending. */
export async function findTool(client: Client, operationId: string): Promise<string> {
  const { tools } = await client.listTools();
  const plain = operationId.replaceAll(".", "_");
  return tools.find(({ name }) => name === plain || name.startsWith(`${plain}__`))?.name ?? plain;
}

/** What a tool answered, as far as tests look at it. */
export interface ToolAnswer {
  readonly content: readonly { readonly type: string; readonly text?: string }[];
  readonly structuredContent?: unknown;
  readonly isError?: boolean;
}

/** Calls the tool of an operation. */
export async function callTool(
  client: Client,
  operationId: string,
  args: object = {},
  options: { readonly meta?: Record<string, unknown>; readonly signal?: AbortSignal } = {},
): Promise<ToolAnswer> {
  const { meta, signal } = options;
  const params = {
    name: toolOf(operationId),
    arguments: args as Record<string, unknown>,
    ...(meta && { _meta: meta }),
  };
  // The second argument of the first SDK is a schema, which may be left out.
  const call = client.callTool.bind(client) as unknown as (...args: unknown[]) => Promise<ToolAnswer>;
  const given = signal && { signal, timeout: 120_000 };
  return client instanceof Client ? call(params, given) : call(params, undefined, given);
}

/** The processes that a process has started and that still run, by what /proc says. */
export function childrenOf(pid: number): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((child) => {
      const facts = statOf(child);
      return facts?.parent === pid && facts.state !== "Z";
    });
}

/** Whether a process runs. */
export function isRunning(pid: number): boolean {
  const facts = statOf(pid);
  return facts !== undefined && facts.state !== "Z";
}

function statOf(pid: number): { readonly state: string; readonly parent: number } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [state = "", parent] = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return { state, parent: Number(parent) };
  } catch {
    return undefined;
  }
}
