import { CallError } from "../../core/errors/errors.ts";
import { toSchemaIssues } from "../../core/execution/standard-issues.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { type OperationSchema, toOperationSchema } from "../../core/schema/any-schema.ts";
import type { IssueView } from "../protocol.ts";

/** Says where an input misses the schema of an operation; nothing is run but the check of the schema's own library, where it has one. */
export async function validateInput(operation: AnyOperation, input: unknown): Promise<readonly IssueView[]> {
  if (operation.inputSchema === undefined) return [];
  const schema = compiled(operation);
  if (!schema.check(input)) return schema.errors(input);
  if (schema.validate === undefined) return [];
  try {
    const { issues } = await schema.validate(input);
    return issues === undefined ? [] : toSchemaIssues(issues, input);
  } catch (cause) {
    const message = `The schema of "${operation.id}" failed while it read the input.`;
    throw new CallError("VALIDATION_ERROR", message, { cause, stack: false });
  }
}

function compiled({ id, inputSchema = {} }: AnyOperation): OperationSchema {
  try {
    return toOperationSchema(inputSchema, "input");
  } catch (cause) {
    throw new CallError("NOT_IMPLEMENTED", `The input schema of "${id}" cannot be used.`, {
      cause,
      stack: false,
    });
  }
}
