import { displayWidth } from "./display-width.ts";

/** Breaks a line of clean text between words so that none takes more columns; a word that does stands in a line of its own. */
export function wrapLine(line: string, columns: number): readonly string[] {
  const lines: string[] = [];
  let current = "";
  let width = 0;
  for (const word of line.split(" ")) {
    const more = displayWidth(word);
    if (current !== "" && width + 1 + more > columns) {
      lines.push(current);
      current = "";
    }
    width = current === "" ? more : width + 1 + more;
    current = current === "" ? word : `${current} ${word}`;
  }
  return [...lines, current];
}

/** The same for every line of a text, as wide as a terminal is; what goes into a pipe stays as it is. */
export function wrapText(
  text: string,
  { isTTY, columns = 80 }: { readonly isTTY?: boolean; readonly columns?: number },
): string {
  if (isTTY !== true) return text;
  return text
    .split("\n")
    .flatMap((line) => wrapLine(line.trimEnd(), Math.max(20, columns - 1)))
    .join("\n");
}
