import { invalidParams } from "./protocol-errors.ts";

/** One page of a list, and where the next one begins. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly nextCursor?: string;
}

/** A cursor longer than this was not made here. */
const MAX_CURSOR = 20_000;

/**
 * Takes one page out of a list that is sorted by key. The cursor holds the last key of the page before, so it stays good when
 * items come and go between two pages: nothing that stays is skipped or repeated.
 */
export function pageOf<T>(
  sorted: readonly T[],
  keyOf: (item: T) => string,
  cursor: unknown,
  pageSize: number,
): Page<T> {
  const start = cursor === undefined ? 0 : indexAfter(sorted, keyOf, readCursor(cursor));
  const items = start === 0 && sorted.length <= pageSize ? sorted : sorted.slice(start, start + pageSize);
  const last = items.at(-1);
  const isEnd = last === undefined || start + items.length >= sorted.length;
  return isEnd ? { items } : { items, nextCursor: toCursor(keyOf(last)) };
}

/** Compares keys as `pageOf` expects them sorted: by UTF-16 units. */
export function compareKeys(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function toCursor(key: string): string {
  return Buffer.from(`w1:${key}`, "utf16le").toString("base64url");
}

function readCursor(cursor: unknown): string {
  if (typeof cursor === "string" && cursor.length <= MAX_CURSOR) {
    const text = Buffer.from(cursor, "base64url").toString("utf16le");
    if (text.startsWith("w1:") && toCursor(text.slice(3)) === cursor) return text.slice(3);
  }
  throw invalidParams("The cursor is not one this server gave; list again from the beginning.");
}

function indexAfter<T>(sorted: readonly T[], keyOf: (item: T) => string, key: string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareKeys(keyOf(sorted[middle] as T), key) <= 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
