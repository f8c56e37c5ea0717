import { isUtf8 } from "node:buffer";
import { randomUUID } from "node:crypto";
import { constants, existsSync } from "node:fs";
import { copyFile, lstat, mkdir, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, resolve } from "node:path";
import { safeLine, safeText } from "../../core/text/clean-text.ts";
import { counted } from "../../core/text/nearest-name.ts";
import { findConfig } from "../../gateway/config/config-files.ts";
import { HOST_FILE_BYTES } from "../../gateway/config/import-hosts.ts";
import { freeName, nameMistake } from "../init/named-target.ts";
import { CommandError, EXIT, type Io } from "../io.ts";
import { toSafeJson } from "../terminal/style.ts";
import {
  type ConnectedHost,
  type EditedFile,
  hostBlock,
  hostFile,
  hostPlaces,
  type ServerEntry,
  titleOf,
  withServer,
} from "./host-config.ts";

/** Flags of `waybill connect`. */
export interface ConnectFlags {
  readonly config?: string;
  /** @default "waybill" */
  readonly name?: string;
  /** @default the host's file for this person */
  readonly file?: string;
  readonly write?: boolean;
  readonly yes?: boolean;
  readonly json?: boolean;
}

/** Shows what a host needs to start this gateway, or puts it into the host's file. */
export async function runConnect(io: Io, host: ConnectedHost, flags: ConnectFlags): Promise<void> {
  const name = flags.name ?? "waybill";
  const mistake = nameMistake(name);
  if (mistake !== undefined) throw new CommandError(`--name: ${mistake}`);
  const home = io.env["HOME"] ?? io.env["USERPROFILE"] ?? homedir();
  const given = flags.file ?? hostFile(host, { home, env: io.env, platform: process.platform });
  const target: Target = { host, name, file: resolve(io.cwd, given), entry: await entryOf(io, flags) };
  const block = await hostBlock(host, name, target.entry);
  if (flags.write === true) {
    const outcome = await writeEntry(io, target, { block, isAsked: flags.yes !== true });
    if (flags.json === true) io.stdout.write(`${toSafeJson({ ...report(target), ...outcome }, 2)}\n`);
    return;
  }
  io.stdout.write(flags.json === true ? `${toSafeJson(report(target), 2)}\n` : block);
  if (io.quiet !== true) io.stderr.write(safeText(guide(target)));
}

interface Target {
  readonly host: ConnectedHost;
  readonly name: string;
  readonly file: string;
  readonly entry: ServerEntry;
}

function report({ host, name, file, entry }: Target): object {
  return { host, name, file, entry };
}

/** Node, this very script and the config, each by its whole path: hosts start servers in folders of their own. */
async function entryOf(io: Io, { config }: ConnectFlags): Promise<ServerEntry> {
  const script = await realpath(resolve(io.cwd, io.script ?? process.argv[1] ?? ""));
  const path = config === undefined ? await findConfig(io.cwd) : resolve(io.cwd, config);
  if (config !== undefined && path !== undefined && !existsSync(path))
    throw new CommandError(`The config "${safeLine(config, 200)}" does not exist.`);
  if (path === undefined && io.quiet !== true)
    io.stderr.write(
      "waybill: there is no config here, so the host gets the sample sources; --config names one.\n",
    );
  if (/[\\/]_npx[\\/]/.test(script) && io.quiet !== true)
    io.stderr.write(
      "waybill: this copy lies in npm's cache, which npm may clear; install the package and run this again.\n",
    );
  return {
    command: process.execPath,
    args: [script, "serve", "--stdio", ...(path === undefined ? [] : ["--config", path])],
  };
}

function guide({ host, file }: Target): string {
  const places = Object.entries(hostPlaces(host)).map(
    ([platform, path]) => `  ${platform.padEnd(8)} ${path}\n`,
  );
  return `\nPut it into ${file}, or give --write.\n${titleOf(host)} keeps it here:\n${places.join("")}`;
}

interface WriteOptions {
  readonly block: string;
  readonly isAsked: boolean;
}

interface WriteOutcome {
  readonly change: EditedFile["change"];
  /** Where the file is as it was before. */
  readonly backup?: string;
}

async function writeEntry(io: Io, target: Target, { block, isAsked }: WriteOptions): Promise<WriteOutcome> {
  const { host, file } = target;
  const path = await realPathOf(file);
  const before = await readFileOf(path);
  const { text, change, others } = await withServer(host, before ?? "", {
    ...target,
    file: safeLine(file, 500),
  });
  const tell = (line: string): void => {
    if (io.quiet !== true) io.stderr.write(`${safeText(line)}\n`);
  };
  if (change === "none") {
    tell(`${file} has it already; nothing was written.`);
    return { change };
  }
  if (isAsked) await ask(io, { ...target, block, change, isThere: before !== undefined });
  const backup = before === undefined ? undefined : freeName(`${path}.old`, existsSync, "-");
  try {
    await mkdir(dirname(path), { recursive: true });
    if (backup !== undefined) await copyFile(path, backup, constants.COPYFILE_EXCL);
    await replaceFile(path, before, text);
  } catch (cause) {
    if (cause instanceof CommandError) throw cause;
    const { code, message } = cause as NodeJS.ErrnoException;
    throw new CommandError(`${safeLine(file, 500)} cannot be written (${code ?? message}).`, EXIT.usage, {
      cause,
    });
  }
  if (backup !== undefined) tell(`Kept    ${backup}`);
  tell(`Wrote   ${file}`);
  tell(`Restart ${titleOf(host)}, or reload its MCP servers.`);
  if (others > 0)
    tell(
      `${titleOf(host)} starts ${counted(others, "other server")} itself. Remove those that this gateway mounts, or their tools are listed twice.`,
    );
  return { change, ...(backup !== undefined && { backup }) };
}

/** The file itself: a link stays a link, and one that leads nowhere is nothing to write into. */
async function realPathOf(file: string): Promise<string> {
  try {
    return await realpath(file);
  } catch {
    const isLink = await lstat(file).then(
      (facts) => facts.isSymbolicLink(),
      () => false,
    );
    if (!isLink) return file;
    throw new CommandError(`${safeLine(file, 500)} is a link that leads nowhere; nothing was written.`);
  }
}

async function readFileOf(path: string): Promise<string | undefined> {
  const facts = await stat(path).catch(() => undefined);
  if (facts === undefined) return undefined;
  if (!facts.isFile()) throw new CommandError(`${safeLine(path, 500)} is no file.`);
  if (facts.size > HOST_FILE_BYTES)
    throw new CommandError(`${safeLine(path, 500)} has more than ${HOST_FILE_BYTES} bytes.`);
  const bytes = await readFile(path);
  // What is no UTF-8 would not be written back as it was.
  if (!isUtf8(bytes))
    throw new CommandError(`${safeLine(path, 500)} is not UTF-8 text; nothing was written.`);
  return bytes.toString("utf8");
}

/** Puts a text in the place of a file in one move, with the rights the file had; one that changed since it was read stays. */
async function replaceFile(path: string, before: string | undefined, text: string): Promise<void> {
  const mode = await stat(path).then(
    (facts) => facts.mode & 0o777,
    () => 0o600,
  );
  const draft = `${path}.${randomUUID()}.tmp`;
  try {
    await writeFile(draft, text, { flag: "wx", mode });
    if ((await readFileOf(path)) !== before)
      throw new CommandError(
        `${safeLine(path, 500)} was changed meanwhile; nothing was written. Run it again.`,
      );
    await rename(draft, path);
  } finally {
    await rm(draft, { force: true });
  }
}

interface Asked extends Target {
  readonly block: string;
  readonly change: EditedFile["change"];
  readonly isThere: boolean;
}

async function ask(io: Io, { file, block, change, isThere, name }: Asked): Promise<void> {
  if (io.stdin.isTTY !== true || io.stderr.isTTY !== true)
    throw new CommandError("--write asks before it writes, on a terminal; without one, give --yes.");
  io.stderr.write(safeText(`${block}\n`));
  const what =
    change === "replaced"
      ? `Replace "${name}" in ${file} by this? The rest stays, and the file is kept beside it.`
      : isThere
        ? `Add this to ${file}? The rest stays, and the file is kept beside it.`
        : `Write this to ${file}, which is not there yet?`;
  const { confirm, isCancel } = await import("@clack/prompts");
  const answer = await confirm({ message: safeLine(what, 1_000), input: io.stdin, output: io.stderr });
  if (isCancel(answer)) throw new CommandError("Nothing was written.", EXIT.interrupted);
  if (!answer) throw new CommandError("Nothing was written.", EXIT.ok);
}
