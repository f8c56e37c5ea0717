import type { ServerResponse } from "node:http";
import { CallError, toCallError } from "../../core/errors/errors.ts";
import { forCallers } from "../../gateway/missing-operation.ts";
import type { CallFailure } from "../protocol.ts";
import { KEPT_NAME_CHARACTERS, MOST_DECODED_VALUES, MOST_MESSAGE_CHARACTERS } from "./inspector-limits.ts";

/** Says what a page is told about something thrown: what any caller from elsewhere is. */
export function failureOf(thrown: unknown): CallFailure {
  const { code, message, ...rest } = toCallError(forCallers(thrown)).toJSON();
  // Details are bounded by the error itself.
  return {
    code: code.slice(0, KEPT_NAME_CHARACTERS),
    message: message.slice(0, MOST_MESSAGE_CHARACTERS),
    ...rest,
  };
}

/** The refusal of a request that makes no sense. */
export function badRequest(message: string, httpStatus = 400): CallError {
  return new CallError("VALIDATION_ERROR", message, { httpStatus, stack: false });
}

/** What somebody is told who was let in by rules that are no longer in force. */
export function noLongerLetIn(): CallError {
  return new CallError("UNAUTHENTICATED", "Who may use this gateway has changed meanwhile; ask again.", {
    stack: false,
  });
}

/** The refusal of JSON that would take too long to be looked at from all sides. */
export function tooManyValues(what: string): CallError {
  const most = MOST_DECODED_VALUES.toLocaleString("en");
  return badRequest(
    `${what} holds more than ${most} values, the most that are looked at here; "waybill decode" reads larger ones.`,
    413,
  );
}

/** What every answer of the inspector says to browsers: nothing from elsewhere, nothing inline, in no frame. */
export const SAFE_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data: blob:",
    "media-src data: blob:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; "),
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "x-frame-options": "DENY",
};

/** What an answer of the API says besides. */
export const JSON_HEADERS: Readonly<Record<string, string>> = {
  ...SAFE_HEADERS,
  "content-type": "application/json; charset=utf-8",
  "cache-control": "no-store",
};

/** What a stream of events says: nobody on the way is to hold it back. */
export const LINES_HEADERS: Readonly<Record<string, string>> = {
  ...SAFE_HEADERS,
  "content-type": "application/x-ndjson; charset=utf-8",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
};

/** Cuts a client off that has not taken the rest of its answer in time: what waits for it is held in memory. */
export function limitTime(response: ServerResponse, timeoutMs: number): void {
  if (response.destroyed || response.writableFinished) return;
  const timer = setTimeout(() => response.destroy(), timeoutMs).unref();
  response.once("close", () => clearTimeout(timer));
}
