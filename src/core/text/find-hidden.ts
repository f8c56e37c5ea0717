import { cleanText, type HiddenKind, type TextFinding } from "./clean-text.ts";

const NOTHING: readonly TextFinding[] = Object.freeze([]);

/** Finds what hides in the strings and keys of JSON, however deep; in time linear in its size. */
export function findHidden(json: unknown): readonly TextFinding[] {
  const counts = new Map<HiddenKind, number>();
  const look = (text: string): void => {
    for (const { kind, count } of cleanText(text).findings) counts.set(kind, (counts.get(kind) ?? 0) + count);
  };
  const waiting: unknown[] = [json];
  while (waiting.length > 0) {
    const value = waiting.pop();
    if (typeof value === "string") look(value);
    if (typeof value !== "object" || value === null) continue;
    if (!Array.isArray(value)) for (const key of Object.keys(value)) look(key);
    for (const member of Object.values(value)) waiting.push(member);
  }
  return counts.size === 0 ? NOTHING : Array.from(counts, ([kind, count]) => ({ kind, count }));
}
