import { fstatSync } from "node:fs";
import { CommandError, EXIT, type Io } from "../io.ts";
import { MAX_GIVEN_BYTES, textOfBytes } from "./given-file.ts";

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
