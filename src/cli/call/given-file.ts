import { readFile, stat } from "node:fs/promises";
import { basename, resolve } from "node:path";
import { safeLine } from "../../core/text/safe-text.ts";
import { CommandError } from "../io.ts";

/** Bytes of a file, or of stdin, that are taken as input. */
export const MAX_GIVEN_BYTES = 64 * 1024 * 1024;

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
