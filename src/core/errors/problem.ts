import type { JsonValue } from "../json/json-value.ts";
import { ERROR_CODES, isErrorCode } from "./error-codes.ts";
import type { CallError } from "./errors.ts";

/** An RFC 9457 problem, with the members of a `CallError` beside the standard ones. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly instance?: string;
  readonly code: string;
  readonly retryable: boolean;
  readonly correctable: boolean;
  readonly details?: JsonValue;
}

/** Codes an operation declares share one type; `code` tells them apart. */
const DECLARED = {
  problemType: "https://waybill.dev/problems/declared-error",
  title: "Error declared by the operation",
} as const;

/** Gives the RFC 9457 problem of an error; `instance` is a URI for this occurrence. */
export function toProblem(error: CallError, instance?: string): Problem {
  const { code, message, ...rest } = error.toJSON();
  const { problemType, title } = isErrorCode(code) ? ERROR_CODES[code] : DECLARED;
  const problem = { type: problemType, title, status: error.httpStatus, detail: message, code, ...rest };
  return instance === undefined ? problem : { ...problem, instance };
}
