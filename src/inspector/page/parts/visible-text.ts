/** Characters that hide, reorder or control the text around them; line ends, tabs and what joins letters are none of them. */
export const HIDING =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  /[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;

/** Cuts a text, never between the halves of a character. */
export function cutText(text: string, most: number): string {
  return text.length > most ? text.slice(0, most).replace(/[\ud800-\udbff]$/, "") : text;
}

/** Shows the characters that a text hides, as in `<U+202E>`; a text longer than `most` is cut first, and ends in `…`. */
export function visibleText(text: string, most = Number.POSITIVE_INFINITY): string {
  const cut = text.length > most ? `${cutText(text, most)}…` : text;
  return cut.replace(
    HIDING,
    (found) => `<U+${found.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0")}>`,
  );
}
