/**
 * Drops the backslash before punctuation that means itself, such as `\@` or `\-`. Unicode mode refuses these, and older
 * patterns are full of them; without it they would be read by other rules for everything else as well.
 */
export function withoutNeedlessEscapes(source: string): string {
  let result = "";
  let inClass = false;
  for (let at = 0; at < source.length; at++) {
    const character = source[at] as string;
    if (character === "\\") {
      const escaped = source[++at] ?? "";
      result += isNeedless(escaped, inClass) ? escaped : `\\${escaped}`;
      continue;
    }
    if (character === "[") inClass = true;
    else if (character === "]") inClass = false;
    result += character;
  }
  return result;
}

function isNeedless(escaped: string, inClass: boolean): boolean {
  if (escaped === "-") return !inClass;
  return !/[\w\s^$\\.*+?()[\]{}|/,:=!<]|^$/.test(escaped);
}
