import { STATUS_CODES } from "node:http";
import type { ErrorCode } from "../../../core/errors/error-codes.ts";

const CODES: ReadonlyMap<number, ErrorCode> = new Map<number, ErrorCode>([
  [400, "VALIDATION_ERROR"],
  [401, "UNAUTHENTICATED"],
  [402, "UPGRADE_REQUIRED"],
  [403, "ACCESS_DENIED"],
  [404, "NOT_FOUND"],
  [408, "TIMEOUT"],
  [409, "CONFLICT"],
  [410, "NOT_FOUND"],
  [412, "CONFLICT"],
  [413, "TOO_LARGE"],
  [422, "VALIDATION_ERROR"],
  [429, "RATE_LIMITED"],
  [501, "NOT_IMPLEMENTED"],
  [502, "UNAVAILABLE"],
  [503, "UNAVAILABLE"],
  [504, "TIMEOUT"],
  [507, "RESOURCE_EXHAUSTED"],
]);

/** Gives the code of an error status; one without a meaning of its own is a failed execution. */
export function codeOfStatus(status: number): ErrorCode {
  return CODES.get(status) ?? "EXECUTION_ERROR";
}

/** Writes a status with its standard phrase, such as `404 Not Found`; never with the server's. */
export function nameStatus(status: number): string {
  const phrase = STATUS_CODES[status];
  return phrase === undefined ? String(status) : `${status} ${phrase}`;
}
