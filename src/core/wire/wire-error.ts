import { errorTraits } from "../errors/error-codes.ts";
import { toErrorDetails } from "../errors/error-details.ts";
import { CallError, detailsToSend, isCallError, toCallError } from "../errors/errors.ts";
import { isPlainObject, type JsonValue } from "../json/json-value.ts";
import { WIRE_LIMITS } from "./wire-walk.ts";

type ErrorPayload = Readonly<Record<string, JsonValue>>;

const FOREIGN_MEMBERS: readonly string[] = ["name", "message"];
const CALL_ERROR_MEMBERS: readonly string[] = [
  "code",
  "message",
  "retryable",
  "correctable",
  "httpStatus",
  "details",
];

/** What of an error crosses a wire: all a `CallError` shows, the name and message of any other; never a stack or cause. */
export function toErrorPayload(error: Error): ErrorPayload {
  if (isCallError(error)) return toCallErrorPayload(toCallError(error));
  const { name, message } = error as { name: unknown; message: unknown };
  return {
    name: typeof name === "string" ? cut(name, WIRE_LIMITS.errorName) : "Error",
    message: typeof message === "string" ? cut(message, WIRE_LIMITS.errorMessage) : "",
  };
}

/** Makes the error again; nothing when the payload is not exactly what `toErrorPayload` writes. */
export function fromErrorPayload(payload: unknown): Error | undefined {
  if (!isPlainObject(payload)) return undefined;
  return Object.hasOwn(payload, "code") ? fromCallErrorPayload(payload) : fromForeignPayload(payload);
}

/** Field by field rather than by `toJSON`, which a subclass may have written anew. */
function toCallErrorPayload(error: CallError): ErrorPayload {
  const { code, message, retryable, correctable, httpStatus } = error;
  const details = toErrorDetails(detailsToSend(error));
  const known = cut(code, WIRE_LIMITS.errorName);
  return {
    code: known,
    message: cut(message, WIRE_LIMITS.errorMessage),
    retryable,
    correctable,
    ...(httpStatus === errorTraits(known).httpStatus ? {} : { httpStatus }),
    ...(details === undefined ? {} : { details }),
  };
}

function fromCallErrorPayload(payload: Readonly<Record<string, unknown>>): CallError | undefined {
  if (!hasOnly(payload, CALL_ERROR_MEMBERS)) return undefined;
  const { code, message, retryable, correctable, httpStatus, details } = payload;
  const usable =
    isText(code, WIRE_LIMITS.errorName) &&
    code !== "" &&
    isText(message, WIRE_LIMITS.errorMessage) &&
    typeof retryable === "boolean" &&
    typeof correctable === "boolean" &&
    (!Object.hasOwn(payload, "httpStatus") || isFailureStatus(httpStatus));
  if (!usable) return undefined;
  const status = isFailureStatus(httpStatus) ? httpStatus : undefined;
  return new CallError(code, message, { retryable, correctable, httpStatus: status, details, stack: false });
}

function fromForeignPayload(payload: Readonly<Record<string, unknown>>): Error | undefined {
  const { name, message } = payload;
  if (!hasOnly(payload, FOREIGN_MEMBERS)) return undefined;
  if (!isText(name, WIRE_LIMITS.errorName) || !isText(message, WIRE_LIMITS.errorMessage)) return undefined;
  const error = new Error(message);
  Object.defineProperty(error, "name", { value: name, writable: true, configurable: true });
  return error;
}

function hasOnly(payload: Readonly<Record<string, unknown>>, members: readonly string[]): boolean {
  return Object.keys(payload).every((key) => members.includes(key));
}

function isText(value: unknown, length: number): value is string {
  return typeof value === "string" && value.length <= length;
}

function isFailureStatus(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 400 && value <= 599;
}

/** The first so many characters, one fewer where the last would be half of a pair. */
function cut(text: string, length: number): string {
  if (text.length <= length) return text;
  const end = (text.codePointAt(length - 1) as number) > 0xffff ? length - 1 : length;
  return text.slice(0, end);
}
