import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createMemoryIo, type MemoryIo, type MemoryIoOptions, runWaybill } from "./memory-io.ts";
import { withoutConfigLine } from "./run-node.ts";

/** A folder in which commands are run in this process. */
export interface CommandProject {
  readonly folder: string;
  write(files: Readonly<Record<string, string | object>>): void;
  run(args: readonly string[], options?: MemoryIoOptions): Promise<CommandAnswer>;
  /** Serves its config at a free port, until `stop`. */
  serve(args?: readonly string[], env?: NodeJS.ProcessEnv): Promise<ServedProject>;
  remove(): void;
}

/** What a command wrote, and how it ended; without the line that says which config it uses. */
export interface CommandAnswer {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** A gateway that is served in this process. */
export interface ServedProject {
  readonly io: MemoryIo;
  readonly url: string;
  stop(): Promise<number>;
}

/** Makes a folder with files; what is no text is written as JSON. */
export function openProject(files: Readonly<Record<string, string | object>>): CommandProject {
  const folder = mkdtempSync(join(tmpdir(), "waybill-project-"));
  const state = join(folder, "state");
  const write = (more: Readonly<Record<string, string | object>>): void => {
    for (const [name, content] of Object.entries(more)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), typeof content === "string" ? content : JSON.stringify(content));
    }
  };
  write(files);
  const inFolder = (env: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv => ({
    PATH: process.env["PATH"],
    WAYBILL_STATE_DIR: state,
    ...env,
  });
  return {
    folder,
    write,
    async run(args, { env, ...options } = {}) {
      const io = createMemoryIo({ cwd: folder, env: inFolder(env), ...options });
      const code = await runWaybill(io, args);
      await new Promise((resolve) => setImmediate(resolve));
      return { code, out: io.out(), err: withoutConfigLine(io.err()) };
    },
    async serve(args = [], env = {}) {
      const controller = new AbortController();
      const io = createMemoryIo({ cwd: folder, env: inFolder(env), signal: controller.signal });
      const running = runWaybill(io, ["serve", "--port", "0", "--log-level", "silent", ...args]);
      const url = await listening(io, running);
      const stop = async () => {
        controller.abort();
        return running;
      };
      return { io, url, stop };
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Waits until what is to be tried was printed, which comes last; fails where the command ends before. */
async function listening(io: MemoryIo, running: Promise<number>): Promise<string> {
  const ended = running.then((code) => {
    throw new Error(`It ended with ${code}: ${io.err()}`);
  });
  const seen = new Promise<void>((resolve) => {
    io.stderr.on("data", () => io.err().includes("Try in another terminal") && resolve());
  });
  await Promise.race([seen, ended]);
  return /document +(http\S+)\/openapi\.json/.exec(io.err())?.[1] ?? "";
}

/** The text of an MCP server over stdio with one tool, `read`, that says no; `description` is the tool's. */
export function refusingServer(description: string): string {
  return `import { createInterface } from "node:readline";
const results = {
  initialize: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "files", version: "1.0.0" } },
  "tools/list": { tools: [{ name: "read", description: ${JSON.stringify(description)}, inputSchema: { type: "object" } }] },
  "tools/call": { isError: true, content: [{ type: "text", text: "Access denied - path outside \\u001b[31mthe folder" }] },
};
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method } = JSON.parse(line);
  if (id === undefined) continue;
  const result = results[method];
  const rest = result === undefined ? { error: { code: -32601, message: "none" } } : { result };
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, ...rest }) + "\\n");
}
`;
}

/** The text of a module with one operation. */
export function moduleOf(id: string, more = ""): string {
  const [namespace = "", name = ""] = id.split(".");
  return `export const ${name} = { namespace: "${namespace}", name: "${name}", version: "1.0.0", type: "query", description: "Says ${name}.", handler: () => "${name}", ${more} };\n`;
}
