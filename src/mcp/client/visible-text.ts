/** Colours and cursor movements of terminals; the classes share no character, so that it takes linear time. */
const TERMINAL_SEQUENCES = new RegExp(`${String.fromCharCode(27)}\\[[0-?]*[ -/]*[@-~]`, "g");

/** Control, bidirectional, zero-width and tag characters, but not what divides lines and columns. */
const INVISIBLE = /(?![\n\t])[\p{Cc}\p{Cf}]/gu;

/** Takes out of foreign text what a terminal or a reader could be fooled with. */
export function toVisibleText(text: string): string {
  return text.replace(TERMINAL_SEQUENCES, "").replace(INVISIBLE, "");
}
