import { indexAfterKey } from "../parts/index-after-key.ts";
import type { ListLine } from "./search-operations.ts";

/** The line that a key leads to from another, heads of sources passed over; nothing where the key is not for moving. */
export function lineAfterKey(lines: readonly ListLine[], from: number, key: string): number | undefined {
  const to = indexAfterKey(key, from, lines.length);
  if (to === undefined || lines.length === 0) return undefined;
  // The first line is a head, the last one is none, and no two heads follow each other.
  const at = Math.max(1, to);
  return lines[at]?.kind === "source" ? at + (at < from ? -1 : 1) : at;
}
