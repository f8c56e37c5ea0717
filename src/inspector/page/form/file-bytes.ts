import { showBytes } from "../parts/show.ts";

/** The largest file that a form takes: more makes requests that gateways refuse. */
export const MOST_FILE_BYTES = 8_000_000;

/** Reads a file as base64; one that is too large or cannot be read is told. */
export async function readFile(
  file: Blob,
): Promise<{ readonly base64: string } | { readonly problem: string }> {
  if (file.size > MOST_FILE_BYTES) {
    return {
      problem: `The file has ${showBytes(file.size)}; at most ${showBytes(MOST_FILE_BYTES)} can be sent.`,
    };
  }
  try {
    return { base64: toBase64(new Uint8Array(await file.arrayBuffer())) };
  } catch {
    return { problem: "The file cannot be read. Choose it again." };
  }
}

/** Writes bytes as base64. */
export function toBase64(bytes: Uint8Array): string {
  let text = "";
  // Multiples of three, so that the pieces can be joined.
  const step = 3 * 8_192;
  for (let at = 0; at < bytes.length; at += step) {
    text += btoa(String.fromCharCode(...bytes.subarray(at, at + step)));
  }
  return text;
}

/** How many bytes a text in base64 stands for. */
export function base64Size(text: string): number {
  return Math.floor((text.replace(/=+$/, "").length * 3) / 4);
}
