import { fstatSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { basename, resolve } from "node:path";
import { describeJsonFault } from "../../core/json/json-fault.ts";
import { JsonTextError, parseJsonText } from "../../core/json/json-value.ts";
import { safeLine } from "../../core/text/clean-text.ts";
import { CommandError, EXIT, type Io } from "../io.ts";

/** Bytes of a file, or of stdin, that are taken as input. */
const MAX_GIVEN_BYTES = 64 * 1024 * 1024;

/** Reads a file that was named on the command line. */
export async function readGivenFile(path: string, cwd: string): Promise<Buffer> {
  const shown = safeLine(path, 200);
  if (path === "") throw new CommandError('A file name is missing after "@".');
  try {
    const { size } = await stat(resolve(cwd, path));
    if (size > MAX_GIVEN_BYTES)
      throw new CommandError(`The file "${shown}" is larger than ${MAX_GIVEN_BYTES} bytes.`);
    return await readFile(resolve(cwd, path));
  } catch (thrown) {
    if (thrown instanceof CommandError) throw thrown;
    throw new CommandError(`The file "${shown}" ${reasonOf(thrown)}.`, undefined, { cause: thrown });
  }
}

function reasonOf(thrown: unknown): string {
  switch ((thrown as NodeJS.ErrnoException).code) {
    case "ENOENT":
      return "does not exist";
    case "EISDIR":
      return "is a folder";
    case "EACCES":
      return "may not be read";
    default:
      return `cannot be read (${(thrown as NodeJS.ErrnoException).code ?? "unknown"})`;
  }
}

/** Text of bytes that must be UTF-8. */
export function textOfBytes(bytes: Uint8Array, what: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new CommandError(`${what} is not UTF-8 text.`);
  }
}

/** The last part of a path. */
export function nameOfFile(path: string): string {
  return basename(path);
}

/** Reads JSON that a person gave; `what` names it in the one message about what is wrong and where. */
export function parseGivenJson(text: string, what: string): unknown {
  // A mark that some editors put at the beginning of files.
  const body = text.startsWith("\ufeff") ? text.slice(1) : text;
  try {
    return parseJsonText(body);
  } catch (thrown) {
    if (!(thrown instanceof JsonTextError)) throw thrown;
    throw new CommandError(`${what} is not JSON: ${describeJsonFault(body, thrown)}`, undefined, {
      cause: thrown,
    });
  }
}

/** Reads stdin to its end. */
export async function readStdin(io: Io): Promise<string> {
  if (io.stdin.isTTY && !io.quiet) io.stderr.write("Reading JSON from the terminal; end it with Ctrl-D.\n");
  const chunks: Buffer[] = [];
  let size = 0;
  const stop = (): void => void io.stdin.destroy();
  io.signal?.addEventListener("abort", stop, { once: true });
  try {
    for await (const chunk of io.stdin) {
      const bytes = Buffer.from(chunk as Uint8Array | string);
      size += bytes.length;
      if (size > MAX_GIVEN_BYTES)
        throw new CommandError(`The input on stdin is larger than ${MAX_GIVEN_BYTES} bytes.`);
      chunks.push(bytes);
    }
  } catch (thrown) {
    if (io.signal?.aborted) throw new CommandError("", EXIT.interrupted);
    throw thrown;
  } finally {
    io.signal?.removeEventListener("abort", stop);
  }
  return textOfBytes(Buffer.concat(chunks), "The input on stdin");
}

/** Milliseconds that an operation which cannot do without input waits for the first byte in a pipe nobody mentioned. */
const PATIENCE_MS = 1_000;

/**
 * Reads what was redirected to stdin although nobody said `-`: a file always, a pipe only if something comes out of it soon. An open
 * stdin that was inherited from elsewhere never keeps a call waiting.
 */
export async function readOfferedStdin(io: Io, isNeeded: boolean): Promise<string | undefined> {
  const kind = kindOfStdin(io);
  if (kind === "file") return readStdin(io);
  if (kind !== "pipe" || !isNeeded || !(await comesSoon(io))) return undefined;
  return readStdin(io);
}

function kindOfStdin(io: Io): "file" | "pipe" | "other" {
  if (io.stdin.isTTY) return "other";
  try {
    const { fd } = io.stdin as { readonly fd?: number };
    const facts = fstatSync(fd ?? -1);
    if (facts.isFile()) return facts.size > 0 ? "file" : "other";
    return facts.isFIFO() || facts.isSocket() ? "pipe" : "other";
  } catch {
    return "other";
  }
}

function comesSoon(io: Io): Promise<boolean> {
  return new Promise((resolve) => {
    const done = (isThere: boolean): void => {
      clearTimeout(timer);
      io.stdin.off("readable", onReadable);
      io.stdin.off("end", onEnd);
      io.signal?.removeEventListener("abort", onEnd);
      if (!isThere) io.stdin.pause();
      resolve(isThere);
    };
    const onReadable = (): void => done(io.stdin.readableLength > 0);
    const onEnd = (): void => done(false);
    const timer = setTimeout(onEnd, PATIENCE_MS);
    io.stdin.once("readable", onReadable);
    io.stdin.once("end", onEnd);
    io.signal?.addEventListener("abort", onEnd, { once: true });
  });
}
