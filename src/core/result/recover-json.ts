import { parseJsonTextOrNone } from "../json/json-value.ts";
import { type AnySchema, toOperationSchema } from "../schema/any-schema.ts";
import { textOf } from "./tool-result.ts";

/** When JSON in a text block counts as data. */
export interface RecoverOptions {
  /** Takes a single text block that is a JSON object or array for the data. @default false */
  readonly recoverJson?: boolean | undefined;
  /** Takes a single text block for the data when its JSON, of any kind, fits this schema. */
  readonly schema?: AnySchema | undefined;
}

/** Finds data in the one text block of a result, if the caller asked for it. */
export function recoverJson(
  content: readonly unknown[],
  { recoverJson: isWanted = false, schema }: RecoverOptions,
): { readonly data: unknown } | undefined {
  if (!isWanted && schema === undefined) return undefined;
  const text = content.length === 1 ? textOf(content[0]) : undefined;
  if (text === undefined) return undefined;
  const data = parseJsonTextOrNone(text);
  if (data === undefined) return undefined;
  const fits =
    schema === undefined ? typeof data === "object" && data !== null : fitsSchema(data, text, schema);
  return fits ? { data } : undefined;
}

/** Text that fits as it stands is text: `"42"` becomes a number only where the schema wants one. */
function fitsSchema(data: unknown, text: string, schema: AnySchema): boolean {
  const compiled = toOperationSchema(schema, "output");
  return compiled.check(data) && !compiled.check(text);
}
