import { cleanText } from "./clean-text.ts";

/** What must not be left, whatever the cleaning missed: C0 but tab and line feed, DEL, C1, lone surrogates, bidi controls. */
const ACTED_ON =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** Takes out of a text all that a terminal acts on or people do not see; several lines stay several lines. */
export function safeText(text: string): string {
  return cleanText(text).text.replace(ACTED_ON, "");
}

/** The same in one line, cut to a number of characters. */
export function safeLine(text: string, most = 500): string {
  // Cut before it is cleaned as well: a text of megabytes is not read for one line.
  const line = safeText(text.slice(0, most * 4))
    .replace(/\s+/g, " ")
    .trim();
  const characters = line.length > most ? [...line] : [];
  return characters.length > most ? `${characters.slice(0, most - 1).join("")}…` : line;
}
