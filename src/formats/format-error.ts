import * as json from "../core/json/json-value.ts";
import type { FormatName } from "../core/result/tool-result.ts";

/** Why something could not be read or written as the format it was taken for. */
export type FormatErrorCode =
  | "not_a_tool_result"
  | "not_an_envelope"
  | "too_large"
  | "bad_base64"
  | "bad_utf8"
  | "bad_json"
  | "bad_shape"
  | "version_mismatch"
  | "unsupported_version"
  | "conflicting_envelopes"
  | "ambiguous"
  | "unreadable"
  | "not_json";

/** A result that is not what it should be: a code for programs, a sentence for people. */
export class FormatError extends Error {
  override readonly name = "FormatError";
  readonly code: FormatErrorCode;
  readonly format: FormatName | undefined;

  constructor(
    code: FormatErrorCode,
    message: string,
    options: { format?: FormatName; cause?: unknown } = {},
  ) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.code = code;
    this.format = options.format;
  }
}

/** Recognises a `FormatError`. */
export function isFormatError(value: unknown): value is FormatError {
  return value instanceof FormatError;
}

/** Runs a reader and lets nothing out but a `FormatError`: hostile getters and proxies throw what they like. */
export function total<T>(read: () => T): T {
  try {
    return read();
  } catch (thrown) {
    if (isFormatError(thrown)) throw thrown;
    throw new FormatError("unreadable", "The result cannot be read: looking at it throws.", {
      cause: thrown,
    });
  }
}

/** Reads JSON text; anything else, or anything nested too deeply, is a `bad_json` error. */
export function parseFormatJson(text: string, openings?: number): unknown {
  return asFormatError(() => json.parseJsonText(text, openings));
}

/** Writes a value as compact JSON; what JSON cannot hold, or nobody would read, is a `not_json` error. */
export function writeFormatJson(value: unknown): string {
  return asFormatError(() => json.toJsonText(value));
}

/** The same for a piece of a value whose depth is looked at as a whole. */
export function writeFormatPiece(value: unknown): string {
  return asFormatError(() => json.toJsonPiece(value));
}

function asFormatError<T>(run: () => T): T {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof json.JsonTextError)) throw error;
    throw new FormatError(error.code, error.message, "cause" in error ? { cause: error.cause } : {});
  }
}
