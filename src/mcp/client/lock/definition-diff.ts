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
  /** Characters of one side, written as JSON; a longer one is cut around the first that differs, and becomes text. */
  sideLength: 1_000,
} as const;

/** Characters before the first that differs that a cut side keeps. */
const LEAD_LENGTH = 200;

/** Lists where two values of plain JSON differ, outermost first, within the limits. */
export function diffDefinitions(
  before: unknown,
  after: unknown,
  limits: Readonly<Record<keyof typeof DIFF_LIMITS, number>> = DIFF_LIMITS,
): DefinitionDifference[] {
  const found: DefinitionDifference[] = [];
  compare(before, after, "", { found, most: limits.differences });
  return found.map((difference) => bounded(difference, limits.sideLength));
}

interface Search {
  readonly found: DefinitionDifference[];
  readonly most: number;
}

function compare(before: unknown, after: unknown, path: string, search: Search): void {
  const { found, most } = search;
  if (found.length >= most) return;
  if (Array.isArray(before) && Array.isArray(after)) {
    const length = Math.max(before.length, after.length);
    for (let i = 0; i < length; i++) compare(before[i], after[i], joinPointer(path, i), search);
    return;
  }
  if (isPlainObject(before) && isPlainObject(after)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      compare(ownOf(before, key), ownOf(after, key), joinPointer(path, key), search);
    }
    return;
  }
  if (isEqual(before, after)) return;
  found.push({ path, ...(before !== undefined && { before }), ...(after !== undefined && { after }) });
}

function ownOf(source: Record<string, unknown>, key: string): unknown {
  return Object.hasOwn(source, key) ? source[key] : undefined;
}

/** Cuts both sides from the same place on, so that what differs is in what is left. */
function bounded({ path, before, after }: DefinitionDifference, most: number): DefinitionDifference {
  const from = Math.max(0, firstDifference(textOf(before), textOf(after)) - LEAD_LENGTH);
  const cut = (value: unknown): unknown => {
    const text = textOf(value);
    const written = typeof value === "string" ? JSON.stringify(value) : text;
    if (written.length <= most) return value;
    const kept = text.slice(from, from + most).replace(/^[\uDC00-\uDFFF]|[\uD800-\uDBFF]$/g, "");
    return `${from > 0 ? "…" : ""}${kept}${from + most < text.length ? "…" : ""}`;
  };
  return {
    path,
    ...(before !== undefined && { before: cut(before) }),
    ...(after !== undefined && { after: cut(after) }),
  };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

function firstDifference(one: string, other: string): number {
  const length = Math.min(one.length, other.length);
  let at = 0;
  while (at < length && one.charCodeAt(at) === other.charCodeAt(at)) at++;
  return at;
}
