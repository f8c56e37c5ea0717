import { toVisibleText } from "./visible-text.ts";

/** Makes one short line of foreign text that is safe to show: nothing hidden in it, and cut at `length` characters. */
export function toPlainLine(text: unknown, length = 500): string {
  if (typeof text !== "string") return "";
  const line = toVisibleText(text.slice(0, length * 4))
    .replace(/\s+/g, " ")
    .trim();
  if (line.length <= length) return line;
  const end = /[\ud800-\udbff]/.test(line.charAt(length - 1)) ? length - 1 : length;
  return `${line.slice(0, end)}…`;
}
