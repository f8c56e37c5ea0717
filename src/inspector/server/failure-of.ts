import { CallError, toCallError } from "../../core/errors/errors.ts";
import { forCallers } from "../../gateway/source-error.ts";
import type { CallFailure } from "../protocol.ts";
import { KEPT_NAME_CHARACTERS, MOST_LOOKED_VALUES, MOST_MESSAGE_CHARACTERS } from "./inspector-limits.ts";

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
  const most = MOST_LOOKED_VALUES.toLocaleString("en");
  return badRequest(
    `${what} holds more than ${most} values, the most that are looked at here; "waybill decode" reads larger ones.`,
    413,
  );
}
