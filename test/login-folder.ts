import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { walkLogin } from "./login-world.ts";
import { type Finished, HARDENED, HARDENED_FLAGS, ROOT, runNode, withoutConfigLine } from "./run-node.ts";

const CLI = join(ROOT, "dist/cli.js");

/** A command that goes on. */
export interface StartedCommand {
  /** Waits for a text on stderr, and gives it. */
  says(pattern: RegExp): Promise<RegExpExecArray>;
  readonly ended: Promise<Finished>;
  write(line: string): void;
  kill(signal: NodeJS.Signals): void;
}

/** A folder with a config, and a state of its own. */
export interface LoginFolder {
  readonly path: string;
  readonly state: string;
  /** Where logins are kept. */
  readonly logins: string;
  run(args: readonly string[], env?: Readonly<Record<string, string>>): Promise<Finished>;
  start(args: readonly string[], env?: Readonly<Record<string, string>>): StartedCommand;
  /** Logs in as a person does who agrees to everything. */
  login(
    source: string,
    options?: { readonly who?: string; readonly args?: readonly string[] },
  ): Promise<Finished>;
  write(config: object): void;
  remove(): Promise<void>;
}

/** Opens a folder with this config. */
export function openLoginFolder(config: object): LoginFolder {
  const path = mkdtempSync(join(tmpdir(), "waybill-login-"));
  const state = mkdtempSync(join(tmpdir(), "waybill-state-"));
  const started = new Set<StartedCommand>();
  const environment = (env: Readonly<Record<string, string>> = {}) => ({
    WAYBILL_STATE_DIR: state,
    WAYBILL_KEYRING: "off",
    ...env,
  });
  const folder: LoginFolder = {
    path,
    state,
    logins: join(state, "logins"),
    async run(args, env) {
      const ran = await runNode([CLI, ...args], { cwd: path, env: environment(env) });
      return { ...ran, stderr: withoutConfigLine(ran.stderr) };
    },
    start(args, env) {
      const command = startCommand(args, path, environment(env));
      started.add(command);
      void command.ended.then(() => started.delete(command));
      return command;
    },
    async login(source, { who, args = [] } = {}) {
      const command = folder.start(["login", source, "--no-open", ...args]);
      const [address] = await command.says(/http:\/\/\S+/);
      const back = await walkLogin(address, who);
      await (await fetch(back)).text();
      return await command.ended;
    },
    write(changed) {
      writeFileSync(join(path, "waybill.config.json"), JSON.stringify(changed));
    },
    async remove() {
      for (const command of started) command.kill("SIGKILL");
      await Promise.all([...started].map(({ ended }) => ended));
      for (const each of [path, state]) rmSync(each, { recursive: true, force: true });
    },
  };
  folder.write(config);
  return folder;
}

function startCommand(
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>>,
): StartedCommand {
  const { NODE_OPTIONS: _ours, FORCE_COLOR: _colour, ...inherited } = process.env;
  const flags = HARDENED ? HARDENED_FLAGS : [];
  const child = spawn(process.execPath, [...flags, CLI, ...args], { cwd, env: { ...inherited, ...env } });
  let [stdout, stderr] = ["", ""];
  let isOver = false;
  const heard = new Set<() => void>();
  const tell = (): void => {
    for (const listener of [...heard]) listener();
  };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
    tell();
  });
  const ended = new Promise<Finished>((resolve) => {
    child.once("close", (code) => {
      isOver = true;
      resolve({ code, stdout, stderr: withoutConfigLine(stderr) });
      tell();
    });
  });
  return {
    ended,
    write: (line) => void child.stdin.write(`${line}\n`),
    kill: (signal) => void child.kill(signal),
    says: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const found = pattern.exec(stderr);
          if (found !== null) resolve(found);
          else if (isOver)
            reject(new Error(`waybill ${args.join(" ")} never said ${pattern}: ${stderr}${stdout}`));
          else return;
          heard.delete(look);
        };
        heard.add(look);
        look();
      }),
  };
}
