import type { Io } from "../io.ts";

/** Writes to stdout, and waits where the reader is slower, so that a long stream does not pile up. */
export function writeOut(io: Io, text: string): Promise<void> {
  if (io.stdout.write(text)) return Promise.resolve();
  return new Promise((done) => {
    const finish = (): void => {
      io.stdout.off("drain", finish);
      io.stdout.off("close", finish);
      io.signal?.removeEventListener("abort", finish);
      done();
    };
    io.stdout.once("drain", finish);
    io.stdout.once("close", finish);
    io.signal?.addEventListener("abort", finish, { once: true });
  });
}
