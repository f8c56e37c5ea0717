import { createReadStream } from "node:fs";
import { open, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { safeLine } from "../../core/text/safe-text.ts";
import { CommandError } from "../io.ts";

/** Text is handed to the file system in pieces of about this length. */
const PIECE = 65_536;

/** Gathers small pieces of text into larger ones. */
function* gathered(pieces: Iterable<string>): Generator<string, void, undefined> {
  let text = "";
  for (const piece of pieces) {
    text += piece;
    if (text.length < PIECE) continue;
    yield text;
    text = "";
  }
  if (text !== "") yield text;
}

/** Writes a file piece by piece; until it is whole, what was there stays. */
export async function writeTypesFile(path: string, pieces: Iterable<string>): Promise<void> {
  const beside = join(dirname(path), `.${basename(path)}.${process.pid}.tmp`);
  try {
    const file = await open(beside, "w");
    try {
      for (const piece of gathered(pieces)) await file.write(piece);
    } finally {
      await file.close();
    }
    await rename(beside, path);
  } catch (thrown) {
    await rm(beside, { force: true }).catch(() => {});
    throw fileFailure(thrown, path, "written");
  }
}

/** Tells whether a file holds exactly this text; one that is not there does not. */
export async function holdsTypes(
  path: string,
  pieces: Iterable<string>,
): Promise<"same" | "different" | "missing"> {
  if ((await stat(path).catch(() => undefined))?.isFile() !== true) return "missing";
  const wanted = gathered(pieces);
  let left = "";
  try {
    for await (const chunk of createReadStream(path, { encoding: "utf8", highWaterMark: PIECE })) {
      // A checkout on Windows may have changed the ends of lines.
      const found = (chunk as string).replace(/\r/g, "");
      while (left.length < found.length) {
        const next = wanted.next();
        if (next.done) return "different";
        left += next.value;
      }
      if (!left.startsWith(found)) return "different";
      left = left.slice(found.length);
    }
  } catch (thrown) {
    throw fileFailure(thrown, path, "read");
  }
  return left === "" && wanted.next().done === true ? "same" : "different";
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "its folder does not exist",
  EACCES: "permission is missing",
  EPERM: "permission is missing",
  EROFS: "the disk is read-only",
  ENOSPC: "the disk is full",
  EISDIR: "it is a folder",
  ENOTDIR: "its folder is a file",
};

function fileFailure(thrown: unknown, path: string, done: string): unknown {
  const { code } = thrown as NodeJS.ErrnoException;
  if (typeof code !== "string") return thrown;
  return new CommandError(
    `The file "${safeLine(path, 200)}" cannot be ${done}: ${REASONS[code] ?? code}.`,
    undefined,
    {
      cause: thrown,
    },
  );
}
