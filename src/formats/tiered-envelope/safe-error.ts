import { ERROR_CODES, errorTraits, isErrorCode } from "../../core/errors/error-codes.ts";
import { parsePointer } from "../../core/json/json-pointer.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { declarationOf } from "../../core/result/human-text.ts";
import type { ResultError, ToolResult, UpgradeHint } from "../../core/result/tool-result.ts";
import { toOperationSchema } from "../../core/schema/any-schema.ts";
import { forEachSubschema, isObject, type JsonSchema } from "../../core/schema/json-schema.ts";
import { toTieredCode } from "../retry-advice.ts";

/** What an error may say about itself on purpose. */
export interface ExposedError {
  readonly message?: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** Decides what of an error leaves, beyond what is always safe; it sees the error as it is. */
export type ExposeError = (error: ResultError) => ExposedError | undefined;

/** What is known about a failed call. */
export interface SafetyOptions {
  readonly operation: AnyOperation | undefined;
  /** The registry itself turned the call down, so that the details are its own. */
  readonly isOwnRefusal: boolean;
  readonly expose: ExposeError | undefined;
}

/** Most issues shown. */
const MAX_ISSUES = 20;

/**
 * Keeps code out of a failed result: what a handler wrote into messages and details may quote the code it was working
 * on, so only sentences of ours and of the operation's own declaration leave, and of an input only where it is wrong.
 * `data` is what the handler returned on purpose, and stays.
 */
export function withSafeError(
  result: ToolResult,
  { operation, isOwnRefusal, expose }: SafetyOptions,
): ToolResult {
  if (!result.isError) return result;
  const { error, isError, data, durationMs, requestId, tool, toolVersion, upgradeHints } = result;
  const given = error ?? { message: "" };
  const code = safeCode(given.code, operation);
  const { recoverable } = given;
  const exposed = exposedOf(given, expose);
  const details = exposed.details ?? (isOwnRefusal ? safeDetails(given, operation) : undefined);
  const hints = code === "UPGRADE_REQUIRED" ? safeHints(upgradeHints ?? [], operation) : undefined;
  // Field by field: nothing that is added to results one day gets out by itself.
  return {
    isError,
    ...(data !== undefined && { data }),
    ...(tool !== undefined && { tool }),
    ...(toolVersion !== undefined && { toolVersion }),
    ...(requestId !== undefined && { requestId }),
    ...(durationMs !== undefined && { durationMs }),
    error: {
      message: exposed.message ?? sentenceFor(code, operation),
      code,
      category: errorTraits(code).category,
      ...(details !== undefined && { details }),
      ...(recoverable !== undefined && { recoverable }),
    },
    upgradeHints: hints ?? [],
  };
}

/**
 * Leaves an error as its author wrote it, but for what the server's `exposeError` makes of it, and for the hint without which nobody may ask
 * for a higher tier.
 */
export function withAuthoredError(
  result: ToolResult,
  { operation, expose }: Omit<SafetyOptions, "isOwnRefusal">,
): ToolResult {
  const { error, upgradeHints = [] } = result;
  if (error === undefined) return result;
  const needsHint =
    toTieredCode(error.code, error.category) === "upgrade_required" && upgradeHints.length === 0;
  return {
    ...result,
    error: { ...error, ...exposedOf(error, expose) },
    ...(needsHint && { upgradeHints: safeHints([], operation) }),
  };
}

/** What an author's function says, as far as it is what it should be; one that fails exposes nothing. */
function exposedOf(error: ResultError, expose: ExposeError | undefined): ExposedError {
  try {
    const { message, details }: ExposedError = expose?.(error) ?? {};
    return {
      ...(typeof message === "string" && { message }),
      ...(isPlainObject(details) && { details }),
    };
  } catch {
    return {};
  }
}

/** A code that is neither in the table nor declared is text like any other. */
function safeCode(code: string | undefined, operation: AnyOperation | undefined): string {
  const isKnown = isErrorCode(code) || (code !== undefined && declarationOf(code, operation) !== undefined);
  return isKnown ? code : "EXECUTION_ERROR";
}

/** The sentence of the table, or what the operation's author declared about a code of their own. */
function sentenceFor(code: string, operation: AnyOperation | undefined): string {
  if (isErrorCode(code)) return ERROR_CODES[code].message;
  return declarationOf(code, operation)?.description ?? ERROR_CODES.EXECUTION_ERROR.message;
}

/** An error that asks for a higher tier always says for what, in the words of the declaration. */
function safeHints(
  given: readonly UpgradeHint[],
  operation: AnyOperation | undefined,
): readonly UpgradeHint[] {
  const { id = "unknown", tier = "pro", features = [] } = operation ?? {};
  const whole = { feature: id, tier, reason: `"${id}" is part of the ${tier} tier.` };
  const declared = features.map(
    ({ name, tier: needed, reason = `"${name}" is part of the ${needed} tier.` }) => ({
      feature: name,
      tier: needed,
      reason,
    }),
  );
  const known = declared.filter(({ feature }) => given.some((hint) => hint.feature === feature));
  return known.length > 0 ? known : [whole];
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
  const pointers = issues
    .map((issue: unknown) => (isPlainObject(issue) ? issue["pointer"] : undefined))
    .filter((pointer) => typeof pointer === "string");
  return {
    issues: pointers.slice(0, MAX_ISSUES).map((pointer) => ({ pointer: safePointer(pointer, names) })),
  };
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
