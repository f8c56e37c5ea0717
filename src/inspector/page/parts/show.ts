import { truncateText } from "../../../core/text/truncate-text.ts";
/** Writes milliseconds for people: `0.4 ms`, `12 ms`, `1.2 s`, `3 min 5 s`. */
export function showMs(ms: number): string {
  if (ms < 9.95) return `${Math.round(ms * 10) / 10} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${Math.round(ms / 100) / 10} s`;
  const seconds = Math.round(ms / 1_000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** Writes a moment as the clock of the day, to the millisecond. */
export function showTime(epochMs: number): string {
  const zone = new Date(epochMs).getTimezoneOffset() * 60_000;
  return new Date(epochMs - zone).toISOString().slice(11, 23);
}

const UNITS = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
] as const;

/** Writes how long something lasts, by its largest unit; less than nothing, by clocks that differ, is nothing. */
export function showFor(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  const [size, unit] = UNITS.find(([least]) => seconds >= least) ?? [1, "s"];
  return `${Math.floor(seconds / size)} ${unit}`;
}

/** Writes how long ago a moment was. */
export function showAgo(epochMs: number, now = Date.now()): string {
  return `${showFor(now - epochMs)} ago`;
}

/** Writes a count with its noun: `1 call`, `2 calls`. */
export function showCount(count: number, noun: string): string {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

/** Writes a word as a title. */
export function titled(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

/** Writes milliseconds for people, and a dash for none. */
export function showSomeMs(ms: number | undefined): string {
  return ms === undefined ? "–" : showMs(ms);
}

/** Writes bytes for people. */
export function showBytes(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${Math.round(bytes / 100) / 10} KB`;
  return `${Math.round(bytes / 100_000) / 10} MB`;
}

/** Characters that hide, reorder or control the text around them; line ends, tabs and what joins letters are none of them. */
export const HIDING =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  /[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;

/** Shows the characters that a text hides, as in `<U+202E>`; a text longer than `most` is cut first, and ends in `…`. */
export function visibleText(text: string, most = Number.POSITIVE_INFINITY): string {
  const cut = text.length > most ? `${truncateText(text, most)}…` : text;
  return cut.replace(
    HIDING,
    (found) => `<U+${found.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0")}>`,
  );
}
