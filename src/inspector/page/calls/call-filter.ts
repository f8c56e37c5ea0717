import type { CallRow } from "../../protocol.ts";
import { standingOf } from "./call-words.ts";

/** Which calls are listed, as the fields say; what is empty does not matter. */
export interface CallFilter {
  /** Words, all of which are in the operation, the request id, the code or the caller. */
  readonly text: string;
  readonly outcome: string;
  readonly source: string;
  readonly entry: string;
  /** Milliseconds. */
  readonly slower: string;
}

/** Lists every call. */
export const NO_FILTER: CallFilter = { text: "", outcome: "", source: "", entry: "", slower: "" };

/** Makes the test of a filter; `now` is the present by the clock of the gateway, for calls that still run. */
export function toTest(filter: CallFilter, now: number): (row: CallRow) => boolean {
  const words = filter.text.toLowerCase().split(/\s+/);
  const { outcome, source, entry, slower } = filter;
  return (row) =>
    (outcome === "" || standingOf(row) === outcome) &&
    (source === "" || row.source === source) &&
    (entry === "" || (row.entry ?? "none") === entry) &&
    (slower === "" || (row.durationMs ?? now - row.startedAt) > Number(slower)) &&
    words.every((word) => textOf(row).includes(word));
}

/** Tells whether anything is left out. */
export function isFiltering(filter: CallFilter): boolean {
  return Object.values(filter).some((wanted) => wanted.trim() !== "");
}

/** Bounds what is read of one text. */
const MOST_CHARACTERS = 1_000;
const texts = new WeakMap<CallRow, string>();

function textOf(row: CallRow): string {
  let text = texts.get(row);
  if (text === undefined) {
    const parts = [row.operation, row.requestId, row.code ?? "", row.subject ?? ""];
    text = parts.map((part) => part.slice(0, MOST_CHARACTERS).toLowerCase()).join("\n");
    texts.set(row, text);
  }
  return text;
}
