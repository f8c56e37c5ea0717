import { joinPointer } from "../../../core/json/json-pointer.ts";
import { isPlainObject } from "../../../core/json/json-value.ts";
import { isEqual } from "../../../core/schema/compare-values.ts";

/** One place where a definition is not as it was approved; a side that has nothing there is absent. */
export interface DefinitionDifference {
  /** JSON pointer into the definition. */
  readonly path: string;
  readonly before?: unknown;
  readonly after?: unknown;
}

/** A tool that a pin refuses, and why. */
export interface DefinitionChange {
  readonly tool: string;
  /** "new" for one that was never approved. */
  readonly kind: "new" | "changed";
  /** At most 100 differences. */
  readonly diff: readonly DefinitionDifference[];
}

/** Bounds on what a diff tells. */
export const DIFF_LIMITS = {
  /** Differences in all. */
  differences: 100,
  /** Characters of one side, written as JSON; a longer one is cut and becomes text. */
  sideLength: 1_000,
} as const;

/** Lists where two values of plain JSON differ, outermost first, at most 100 places. */
export function diffDefinitions(before: unknown, after: unknown): DefinitionDifference[] {
  const found: DefinitionDifference[] = [];
  compare(before, after, "", found);
  return found;
}

function compare(before: unknown, after: unknown, path: string, found: DefinitionDifference[]): void {
  if (found.length >= DIFF_LIMITS.differences) return;
  if (Array.isArray(before) && Array.isArray(after)) {
    const length = Math.max(before.length, after.length);
    for (let i = 0; i < length; i++) compare(before[i], after[i], joinPointer(path, i), found);
    return;
  }
  if (isPlainObject(before) && isPlainObject(after)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      compare(ownOf(before, key), ownOf(after, key), joinPointer(path, key), found);
    }
    return;
  }
  if (isEqual(before, after)) return;
  found.push({
    path,
    ...(before !== undefined && { before: bounded(before) }),
    ...(after !== undefined && { after: bounded(after) }),
  });
}

function ownOf(source: Record<string, unknown>, key: string): unknown {
  return Object.hasOwn(source, key) ? source[key] : undefined;
}

function bounded(value: unknown): unknown {
  const text = JSON.stringify(value);
  if (text.length <= DIFF_LIMITS.sideLength) return value;
  const shown = typeof value === "string" ? value : text;
  return `${shown.slice(0, DIFF_LIMITS.sideLength).replace(/[\uD800-\uDBFF]$/, "")}…`;
}
