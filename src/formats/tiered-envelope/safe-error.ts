import { ERROR_CODES, errorTraits, isErrorCode } from "../../core/errors/error-codes.ts";
import { parsePointer } from "../../core/json/json-pointer.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { AnyOperation, ErrorDeclaration } from "../../core/operation/operation-types.ts";
import type { ResultError, ToolResult, UpgradeHint } from "../../core/result/tool-result.ts";
import { toOperationSchema } from "../../core/schema/any-schema.ts";
import { forEachSubschema, isObject, type JsonSchema } from "../../core/schema/json-schema.ts";

/** What an error may say about itself on purpose. */
export interface ExposedError {
  readonly message?: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** Decides what of an error leaves, beyond what is always safe; it sees the error as it is. */
export type ExposeError = (error: ResultError) => ExposedError | undefined;

/** Most issues shown. */
const MAX_ISSUES = 20;

/**
 * Keeps code out of a failed result: what a handler wrote into messages and details may quote the code it was working
 * on, so only sentences of ours and of the operation's own declaration leave, and of an input only where it is wrong.
 * `data` is what the handler returned on purpose, and stays.
 */
export function withSafeError(
  result: ToolResult,
  operation: AnyOperation | undefined,
  expose: ExposeError | undefined,
): ToolResult {
  if (!result.isError) return result;
  const { error, content: _, facts: __, _meta: ___, ...kept } = result;
  const given = error ?? { message: "", code: "EXECUTION_ERROR" };
  const { code = "EXECUTION_ERROR", category = errorTraits(code).category, recoverable } = given;
  const exposed = expose?.(given) ?? {};
  const details = exposed.details ?? safeDetails(given, operation);
  const hints = kept.upgradeHints ?? requiredHints(code, operation);
  return {
    ...kept,
    error: {
      message: exposed.message ?? sentenceFor(code, operation),
      code,
      category,
      ...(details !== undefined && { details }),
      ...(recoverable !== undefined && { recoverable }),
    },
    ...(hints !== undefined && { upgradeHints: hints }),
  };
}

/** The sentence of the table, or what the operation's author declared about a code of their own. */
function sentenceFor(code: string, operation: AnyOperation | undefined): string {
  if (isErrorCode(code)) return ERROR_CODES[code].message;
  return declarationOf(code, operation)?.description ?? ERROR_CODES.EXECUTION_ERROR.message;
}

function declarationOf(
  code: string,
  operation: AnyOperation | undefined,
): Omit<ErrorDeclaration, "code"> | undefined {
  const errors = operation?.errors ?? [];
  if (Array.isArray(errors)) return errors.find((declared: ErrorDeclaration) => declared.code === code);
  const byCode = errors as Readonly<Record<string, Omit<ErrorDeclaration, "code">>>;
  return Object.hasOwn(byCode, code) ? byCode[code] : undefined;
}

/** An error that asks for a higher tier always says for what. */
function requiredHints(
  code: string,
  operation: AnyOperation | undefined,
): readonly UpgradeHint[] | undefined {
  if (code !== "UPGRADE_REQUIRED") return undefined;
  const tier = operation?.tier ?? "pro";
  const feature = operation?.id ?? "unknown";
  return [{ feature, tier, reason: ERROR_CODES.UPGRADE_REQUIRED.message }];
}

/** Where an input is wrong, and what was expected there: both in the words of the schema. */
function safeDetails(
  { code, details }: ResultError,
  operation: AnyOperation | undefined,
): Readonly<Record<string, unknown>> | undefined {
  if (code !== "VALIDATION_ERROR" || operation?.inputSchema === undefined) return undefined;
  const issues = isPlainObject(details) ? details["issues"] : undefined;
  if (!Array.isArray(issues)) return undefined;
  const names = propertyNames(toOperationSchema(operation.inputSchema, "input").json);
  const known = issues.filter(isPlainObject).slice(0, MAX_ISSUES);
  return { issues: known.map(({ pointer }) => ({ pointer: safePointer(String(pointer), names) })) };
}

/** A name that only the input knows may be anything. */
function safePointer(pointer: string, names: ReadonlySet<string>): string {
  const tokens = parsePointer(pointer).map((token) =>
    names.has(token) || /^\d{1,9}$/.test(token) ? token : "*",
  );
  return tokens.map((token) => `/${token.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

function propertyNames(schema: JsonSchema, names = new Set<string>()): ReadonlySet<string> {
  if (!isObject(schema)) return names;
  forEachSubschema(schema, (subschema, keyword, key) => {
    if (keyword === "properties") names.add(String(key));
    propertyNames(subschema, names);
  });
  return names;
}
