import type { StandardSchemaV1 } from "@standard-schema/spec";
import { CallError } from "../errors/errors.ts";
import type { OperationContext } from "../operation/operation-context.ts";
import type { OperationEntry } from "../registry/operation-entry.ts";
import type { SchemaIssue } from "../schema/schema-issue.ts";
import { toSchemaIssues } from "./standard-issues.ts";
import { turnDown } from "./turned-down.ts";

/** Throws `VALIDATION_ERROR` unless the input passes; gives what the handler gets, defaults filled for a local one. */
export function checkedInput(entry: OperationEntry, input: unknown, context: Asking): unknown {
  const { input: schema } = entry;
  if (!schema.check(input)) throw invalid(entry, schema.errors(input));
  return entry.fillsDefaults ? withinTier(entry, schema.fillDefaults(input), context) : input;
}

/** Who is asking. */
type Asking = Pick<OperationContext, "identity">;

/** Looks once more at an input that defaults or a parser changed: they too may ask for a feature. */
function withinTier(entry: OperationEntry, ready: unknown, context: Asking): unknown {
  if (entry.tiers === undefined) return ready;
  const refusal = entry.tiers.refusal(context.identity, ready);
  if (refusal !== undefined) throw refusal;
  return ready;
}

/** The same for a schema that brings its own parser; a local handler gets what that made of the input. */
export async function parsedInput(
  entry: OperationEntry,
  input: unknown,
  validate: StandardSchemaV1.Props["validate"],
  context: Asking,
): Promise<unknown> {
  // Our own check comes first: it is bounded, and looks at own properties only.
  if (!entry.input.check(input)) throw invalid(entry, entry.input.errors(input));
  const { value, issues } = await validated(entry, input, validate);
  if (issues !== undefined) throw invalid(entry, issues);
  return entry.local ? withinTier(entry, value, context) : input;
}

/** Whatever a parser does or answers, nothing but a verdict leaves this function. */
async function validated(
  entry: OperationEntry,
  input: unknown,
  validate: StandardSchemaV1.Props["validate"],
): Promise<{ readonly value?: unknown; readonly issues?: readonly SchemaIssue[] }> {
  try {
    const result = await validate(input);
    return result.issues ? { issues: toSchemaIssues(result.issues, input) } : { value: result.value };
  } catch (cause) {
    const message = `The schema of "${entry.id}" failed while it read the input.`;
    throw turnDown(new CallError("VALIDATION_ERROR", message, { cause }), entry.id);
  }
}

function invalid(entry: OperationEntry, issues: readonly SchemaIssue[]): CallError {
  const [first] = issues;
  const place = first === undefined || first.pointer === "" ? "" : ` at ${first.pointer}`;
  const reason = first === undefined ? "" : `:${place} expected ${first.expected}, found ${first.found}`;
  const message = `The input of "${entry.id}" does not match its schema${reason}.`;
  return turnDown(
    new CallError("VALIDATION_ERROR", message, { details: { issues }, stack: false }),
    entry.id,
  );
}
