import { shortText } from "../../core/text/truncate-text.ts";

/** Makes one short line of foreign text that is safe to show: nothing hidden in it, and cut at `length` characters. */
export function toPlainLine(text: unknown, length = 500): string {
  if (typeof text !== "string") return "";
  const line = toVisibleText(text.slice(0, length * 4))
    .replace(/\s+/g, " ")
    .trim();
  return shortText(line, length);
}

/** Colours and cursor movements of terminals; the classes share no character, so that it takes linear time. */
const TERMINAL_SEQUENCES = new RegExp(`${String.fromCharCode(27)}\\[[0-?]*[ -/]*[@-~]`, "g");

/** Control, bidirectional, zero-width and tag characters, but not what divides lines and columns. */
const INVISIBLE = /(?![\n\t])[\p{Cc}\p{Cf}]/gu;

/** Takes out of foreign text what a terminal or a reader could be fooled with. */
export function toVisibleText(text: string): string {
  return text.replace(TERMINAL_SEQUENCES, "").replace(INVISIBLE, "");
}

/** What npm writes beside what went wrong: its news, and what it adds to every error. */
const NPM_NOISE =
  /^npm (?:notice\b|(?:error|ERR!) (?:\w+\s*$|A complete log\b|(?:404 )?(?:Note that|tarball, folder)\b))/;

/** Tells whether a line on standard error is what npm writes beside what went wrong. */
export function isNpmNoise(line: string): boolean {
  return NPM_NOISE.test(line);
}
