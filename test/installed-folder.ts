import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { inject } from "vitest";
import {
  type CommandOptions,
  openFolder,
  type RunningCommand,
  startWaybill,
  waybill,
} from "./installed-command.ts";
import { type Finished, withoutConfigLine } from "./run-node.ts";

/** A folder in which the installed command is used, with state and a home of its own. */
export interface UsedFolder {
  readonly path: string;
  readonly state: string;
  /** What every command here gets. */
  readonly env: Readonly<Record<string, string>>;
  /** Writes a file, whose folders are made; gives its path. */
  write(name: string, content: string | object): string;
  read(name: string): string;
  /** Runs `waybill` here to its end. */
  run(args: readonly string[], options?: CommandOptions): Promise<Finished>;
  /** Runs `waybill` here, which must end well; gives its result. */
  json<T>(args: readonly string[], options?: CommandOptions): Promise<T>;
  /** Runs a line as a shell would, in which `waybill` is on the PATH. */
  shell(line: string): Promise<Finished>;
  /** Starts `waybill serve` on a free port and waits until it has said what it serves. */
  serve(args?: readonly string[]): Promise<ServedFolder>;
  /** Starts `waybill`, which goes on. */
  stream(args: readonly string[]): RunningCommand;
  /** Ends what still runs, and takes the folder away. */
  remove(): Promise<void>;
}

/** A gateway that serves a folder. */
export interface ServedFolder extends RunningCommand {
  readonly url: string;
}

/** Opens a folder beside the installed package, or one where the package is nowhere to be found. */
export function useFolder({ isBeside = true }: { readonly isBeside?: boolean } = {}): UsedFolder {
  const opened = openFolder();
  const path = isBeside ? opened.path : mkdtempSync(join(tmpdir(), "waybill-elsewhere-"));
  const { state } = opened;
  const env = { WAYBILL_STATE_DIR: state, HOME: state, XDG_CONFIG_HOME: join(state, ".config") };
  const running: RunningCommand[] = [];
  const run: UsedFolder["run"] = (args, options = {}) =>
    waybill(args, { cwd: path, ...options, env: { ...env, ...options.env } });
  const stream = (args: readonly string[]): RunningCommand => {
    const command = startWaybill(args, { cwd: path, env });
    running.push(command);
    return command;
  };
  return {
    path,
    state,
    env,
    run,
    stream,
    write(name, content) {
      const file = join(path, name);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
      return file;
    },
    read: (name) => readFileSync(join(path, name), "utf8"),
    async json(args, options) {
      const ran = await run(args, options);
      if (ran.code !== 0) throw new Error(`waybill ${args.join(" ")} ended with ${ran.code}: ${ran.stderr}`);
      return JSON.parse(ran.stdout);
    },
    shell: (line) => runLine(line, path, env),
    async serve(args = ["--port", "0"]) {
      const command = stream(["serve", "--lame-duck", "0", "--log-format", "text", ...args]);
      const [, url = ""] = await command.says(
        /MCP +(http:\S+)\/mcp\n[\s\S]*Try in another terminal\n(.+\n)+\n/,
      );
      return { ...command, url };
    },
    async remove() {
      for (const command of running) await command.stop("SIGKILL");
      if (!isBeside) rmSync(path, { recursive: true, force: true });
      opened.remove();
    },
  };
}

function runLine(line: string, cwd: string, env: Readonly<Record<string, string>>): Promise<Finished> {
  const PATH = `${join(inject("installed"), "node_modules/.bin")}${delimiter}${process.env["PATH"]}`;
  const { NODE_OPTIONS: _ours, FORCE_COLOR: _colour, ...inherited } = process.env;
  // What npm thinks of somebody's settings is not what is looked at.
  const quiet = { npm_config_loglevel: "error" };
  const child = spawn("/bin/sh", ["-c", line], { cwd, env: { ...inherited, ...quiet, ...env, PATH } });
  child.stdin.end();
  return finished(child);
}

function finished(child: ChildProcess): Promise<Finished> {
  let [stdout, stderr] = ["", ""];
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, stdout, stderr: withoutConfigLine(stderr) }));
  });
}

/** Waits until something is so; fails after 90 s with what was found last. */
export async function until<T>(look: () => T | Promise<T>, isSo: (found: T) => boolean): Promise<T> {
  const end = performance.now() + 90_000;
  for (;;) {
    const found = await look();
    if (isSo(found)) return found;
    if (performance.now() > end) throw new Error(`It never came; found last: ${JSON.stringify(found)}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

/** Whether a program is on the PATH; on a machine that checks everything it must be. */
export function hasProgram(name: string): boolean {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  return process.env["CI"] === "true" || folders.some((folder) => existsSync(join(folder, name)));
}

/**
 * An MCP server over stdio, as JavaScript: its tools and what they answer stand in a file, which is read for every request:
 * `[{ "tool": …, "result": … }]`.
 */
export const SCRIPTED_SERVER = `
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
const rows = () => JSON.parse(readFileSync(process.argv[2], "utf8"));
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const answer = (rest) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, ...rest }) + "\\n");
  const serverInfo = { name: "scripted", version: "1.0.0" };
  if (method === "initialize")
    answer({ result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo } });
  else if (method === "ping") answer({ result: {} });
  else if (method === "tools/list") answer({ result: { tools: rows().map(({ tool }) => tool) } });
  else if (method === "tools/call") {
    const row = rows().find(({ tool }) => tool.name === params.name);
    answer(row ? { result: row.result } : { error: { code: -32602, message: "Unknown tool" } });
  } else answer({ error: { code: -32601, message: "Method not found" } });
}
`;

/** One row of the file that the scripted server reads. */
export function scriptedTool(name: string, description: string, more: object = {}, result?: object): object {
  return {
    tool: { name, description, inputSchema: { type: "object" }, ...more },
    result: result ?? { content: [{ type: "text", text: `${name} ran` }] },
  };
}
