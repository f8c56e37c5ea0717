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
