import { isPlainObject } from "../../core/json/json-value.ts";
import type { DefinitionDifference } from "../../mcp/client/lock/definition-diff.ts";
import { safeText } from "../terminal/safe-text.ts";
import type { ToolState } from "./lock-state.ts";
import { visibleJson, visibleText } from "./visible-text.ts";

/** Says where a definition differs, in texts that show everything that is in it; a new tool is shown field by field. */
export function toReadableDiff(
  places: readonly DefinitionDifference[],
  mask: (text: string) => string,
): ToolState["diff"] {
  // Masked before and after: what is made visible could have stood in the middle of a secret.
  const clean = (value: unknown): string =>
    mask(
      safeText(
        typeof value === "string"
          ? visibleText(mask(value))
          : visibleJson(mask(JSON.stringify(value) ?? "null")),
      ),
    );
  return places.flatMap(fieldsOf).map(({ path, before, after }) => ({
    path: clean(path) || "/",
    ...(before !== undefined && { before: clean(before) }),
    ...(after !== undefined && { after: clean(after) }),
  }));
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
