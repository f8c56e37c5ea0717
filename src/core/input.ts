import { CallError } from "./errors.ts";
import type { OperationEntry } from "./operation-entry.ts";
import { joinPointer } from "./schema/json-pointer.ts";
import type { SchemaIssue } from "./schema/schema-issue.ts";

/** Throws `VALIDATION_ERROR` unless the input passes; gives what the handler gets: as it was, or with defaults filled. */
export function checkedInput(entry: OperationEntry, input: unknown): unknown {
  const { input: schema } = entry;
  let passes = false;
  try {
    passes = schema.check(input);
    if (passes) return entry.fillsDefaults ? schema.fillDefaults(input) : input;
  } catch (cause) {
    throw unreadable(entry, cause);
  }
  throw invalid(entry, schema.errors(input));
}
