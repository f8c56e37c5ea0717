import { cutText } from "../parts/visible-text.ts";

/** A piece of two texts that are compared: of the first alone, of the second alone, or of both. */
export interface DiffPart {
  readonly sign: "-" | "+" | " ";
  readonly text: string;
}

/** Characters of one side that are compared. */
const MOST_CHARACTERS = 20_000;
/** Pairs of words that are compared; beyond it all between the first and the last difference is said to differ. */
const MOST_PAIRS = 250_000;

/** Compares two texts word by word; one side may be missing. */
export function diffTexts(before = "", after = ""): readonly DiffPart[] {
  const [a, b] = [wordsOf(before), wordsOf(after)];
  const shorter = Math.min(a.length, b.length);
  let start = 0;
  while (start < shorter && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < shorter - start && a.at(-1 - end) === b.at(-1 - end)) end += 1;
  const parts: DiffPart[] = [
    { sign: " ", text: a.slice(0, start).join("") },
    ...between(a.slice(start, a.length - end), b.slice(start, b.length - end)),
    { sign: " ", text: a.slice(a.length - end).join("") },
  ];
  return parts.filter(({ text }) => text !== "");
}

function wordsOf(text: string): readonly string[] {
  return laidOut(cutText(text, MOST_CHARACTERS)).match(/\n *| ?\w+|\W/gu) ?? [];
}

/** Breaks JSON at its members, for people; nothing but line ends and indentation is added, so nothing that differs can hide. */
export function laidOut(text: string): string {
  if (!/^[{[]/.test(text)) return text;
  let depth = 0;
  return text.replace(/"(?:[^"\\]|\\.)*"?|\{\}|\[\]|[{}[\],]/gs, (found) => {
    if (!/^[{}[\],]$/.test(found)) return found;
    depth += found === "," ? 0 : /[{[]/.test(found) ? 1 : -1;
    const lineEnd = `\n${"  ".repeat(Math.max(0, Math.min(depth, 20)))}`;
    return /[}\]]/.test(found) ? lineEnd + found : found + lineEnd;
  });
}

function between(a: readonly string[], b: readonly string[]): readonly DiffPart[] {
  if (a.length * b.length > MOST_PAIRS) {
    return [
      { sign: "-", text: a.join("") },
      { sign: "+", text: b.join("") },
    ];
  }
  const common = commonLengths(a, b);
  const parts: { sign: DiffPart["sign"]; text: string }[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    const isSame = i < a.length && a[i] === b[j];
    const isGone = j >= b.length || (common[i + 1]?.[j] ?? -1) >= (common[i]?.[j + 1] ?? 0);
    const sign = isSame ? " " : isGone ? "-" : "+";
    const text = (sign === "+" ? b[j] : a[i]) ?? "";
    const last = parts.at(-1);
    if (last?.sign === sign) last.text += text;
    else parts.push({ sign, text });
    if (sign !== "+") i += 1;
    if (sign !== "-") j += 1;
  }
  return parts;
}

/** How many words the rests of both sides have in common, from each pair of places on. */
function commonLengths(a: readonly string[], b: readonly string[]): readonly Uint16Array[] {
  const table = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    const [row, below] = [table[i] as Uint16Array, table[i + 1] as Uint16Array];
    for (let j = b.length - 1; j >= 0; j -= 1) {
      row[j] = a[i] === b[j] ? (below[j + 1] ?? 0) + 1 : Math.max(below[j] ?? 0, row[j + 1] ?? 0);
    }
  }
  return table;
}
