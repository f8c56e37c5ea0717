import { CommandError } from "./io.ts";

/** Splits a command line into words as shells do: quotes hold words together, a backslash takes the next sign as it is. */
export function splitCommandLine(line: string): readonly string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (let at = 0; at < line.length; at++) {
    const sign = line[at] as string;
    if (quote === "" && /\s/.test(sign)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (sign === quote) quote = "";
    else if (quote === "" && (sign === '"' || sign === "'")) {
      quote = sign;
      word ??= "";
    } else if (sign === "\\" && quote !== "'" && isEscape(line[at + 1], quote)) {
      word = (word ?? "") + line[++at];
    } else word = (word ?? "") + sign;
  }
  if (quote !== "") throw new CommandError(`A quote (${quote}) in the command line is not closed.`);
  if (word !== undefined) words.push(word);
  return words;
}

/** Backslashes of paths on Windows stay. */
function isEscape(next: string | undefined, quote: string): boolean {
  return next !== undefined && (quote === '"' ? /["\\]/ : /[\s"'\\]/).test(next);
}
