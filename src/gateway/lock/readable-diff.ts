import { isPlainObject } from "../../core/json/json-value.ts";
import { safeText } from "../../core/text/safe-text.ts";
import type { DefinitionDifference } from "../../mcp/client/lock/definition-diff.ts";
import { visibleJson, visibleText } from "./visible-text.ts";

/** One place of a definition, by JSON pointer, as it was approved and as it is; what hides is made visible. */
export interface ToolDifference {
  readonly path: string;
  readonly before?: string;
  readonly after?: string;
}

/** How much of a diff is told. */
export interface ReadableDiffLimits {
  /** Places in all. @default every one */
  readonly differences?: number;
  /** Characters of one side; a longer one ends in "…". @default all of them */
  readonly characters?: number;
}

/** Says where a definition differs, in texts that show everything that is in it; a new tool is shown field by field. */
export function toReadableDiff(
  places: readonly DefinitionDifference[],
  mask: (text: string) => string,
  limits: ReadableDiffLimits = {},
): readonly ToolDifference[] {
  const { differences = Number.POSITIVE_INFINITY, characters = Number.POSITIVE_INFINITY } = limits;
  const clean = (value: unknown): string => {
    // Masked before and after: what is made visible could have stood in the middle of a secret.
    const masked = mask(typeof value === "string" ? value : (JSON.stringify(value) ?? "null"));
    // Cut before it is made visible as well: one character more, so that the end is known to be none.
    const kept = masked.length > characters ? masked.slice(0, characters + 1) : masked;
    return cut(mask(safeText(typeof value === "string" ? visibleText(kept) : visibleJson(kept))), characters);
  };
  const fields = places.flatMap(fieldsOf);
  return fields.slice(0, Math.min(fields.length, differences)).map(({ path, before, after }) => ({
    path: clean(path) || "/",
    ...(before !== undefined && { before: clean(before) }),
    ...(after !== undefined && { after: clean(after) }),
  }));
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

/** What was never seen has no single place: each of its fields is one. */
function fieldsOf({ path, before, after }: DefinitionDifference): DefinitionDifference[] {
  if (path !== "" || before !== undefined || !isPlainObject(after)) {
    return [{ path, ...(before !== undefined && { before }), ...(after !== undefined && { after }) }];
  }
  return Object.entries(after)
    .filter(([field]) => field !== "name")
    .map(([field, value]) => ({ path: `/${field}`, after: value }));
}
