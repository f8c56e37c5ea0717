import { findChange, type Parsed } from "./parse-number.ts";

/** In valid JSON: texts, which are passed over, and numbers. */
const TEXT_OR_NUMBER = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;

/** Reads JSON that somebody typed, and says the line and column where it is none; nothing at all is no value. */
export function parseJson(text: string): Parsed {
  if (text.trim() === "") return { value: undefined };
  const found = findFault(text);
  if ("value" in found) {
    for (const { 0: token, index } of text.matchAll(TEXT_OR_NUMBER)) {
      const change = token.startsWith('"') ? undefined : findChange(token);
      if (change !== undefined) return { problem: locate(text, index, change) };
    }
    return found;
  }
  let at = found.at ?? 0;
  if (found.at === undefined) {
    // Some engines do not say where: after the longest part that merely ends too early.
    for (let end = text.length; end - at > 1; ) {
      const half: number = (at + end) >> 1;
      const part = findFault(text.slice(0, half));
      if ("value" in part || (part.at ?? -1) >= half) at = half;
      else end = half;
    }
    at -= /\w*$/.exec(text.slice(Math.max(0, at - 20), at))?.[0].length ?? 0;
  }
  return { problem: locate(text, at, found.message) };
}

function findFault(
  text: string,
): { readonly value: unknown } | { readonly at: number | undefined; readonly message: string } {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch (error) {
    const said = (error as Error).message;
    const place = /position (\d+)/.exec(said)?.[1];
    const message = said.replace(/^JSON.parse.*?: | in JSON at .*|, .*"[\s\S]*| at line .*/gi, "");
    return { at: place ? Number(place) : /end of|EOF/.test(said) ? text.length : undefined, message };
  }
}

function locate(text: string, at: number, message: string): string {
  const lines = text.slice(0, at).split("\n");
  return `line ${lines.length}, column ${(lines.at(-1) ?? "").length + 1}: ${message}`;
}
