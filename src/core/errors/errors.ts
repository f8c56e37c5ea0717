import { isPlainObject, type JsonValue } from "../json/json-value.ts";
import { didYouMean, nearestName } from "../text/nearest-name.ts";
import { ERROR_CODES, type ErrorCode, type ErrorTraits, errorTraits, isErrorCode } from "./error-codes.ts";
import { toErrorDetails } from "./error-details.ts";
import type { FailureCause } from "./failure.ts";

/** What a `CallError` may be told beyond its code and message. */
export interface CallErrorOptions {
  /** The original failure; stays in this process. */
  readonly cause?: unknown;
  /** Facts for the caller, copied into bounded JSON. */
  readonly details?: unknown;
  /** From 400 to 599. @default the code's own */
  readonly httpStatus?: number | undefined;
  /** @default the code's own */
  readonly retryable?: boolean | undefined;
  /** @default the code's own */
  readonly correctable?: boolean | undefined;
  /** Members of `details` that stay in this process, such as what a foreign server said. @default none */
  readonly local?: readonly string[] | undefined;
  /** Why, for programs of this process; never sent. @default not said */
  readonly failure?: FailureCause | undefined;
  /** False leaves the stack out, which makes the error some ten times cheaper. @default true */
  readonly stack?: boolean;
}

/** What a `CallError` shows on a wire. */
export interface CallErrorJSON {
  readonly code: ErrorCode | (string & {});
  readonly message: string;
  readonly retryable: boolean;
  readonly correctable: boolean;
  readonly details?: JsonValue;
}

const NONE: readonly string[] = [];

const OPTIONS: Readonly<Record<keyof CallErrorOptions, true>> = {
  cause: true,
  details: true,
  httpStatus: true,
  retryable: true,
  correctable: true,
  local: true,
  failure: true,
  stack: true,
};

/** Shared by every copy of this package in a process; JSON cannot hold it. */
const BRAND = Symbol.for("waybill.CallError");

let isOwn: (value: object) => value is CallError;
let localOf: (error: CallError) => readonly string[];

/** Knows how to be created without a stack, whose capture is most of the cost of an error. */
class TraceableError extends Error {
  constructor(message: string, options: ErrorOptions | undefined, traced: boolean) {
    const limit = Error.stackTraceLimit;
    try {
      // `Reflect.set` rather than an assignment: the property is read-only in hardened environments.
      if (!traced) Reflect.set(Error, "stackTraceLimit", 0);
      super(message, options);
    } finally {
      if (!traced) Reflect.set(Error, "stackTraceLimit", limit);
    }
  }
}

/** A call that never ran or broke: a code of the one table or a declared domain code, and a sentence for people. */
export class CallError extends TraceableError {
  readonly code: ErrorCode | (string & {});
  readonly retryable: boolean;
  readonly correctable: boolean;
  readonly httpStatus: number;
  readonly details: JsonValue | undefined;
  readonly #local: readonly string[];
  readonly #failure: FailureCause | undefined;
  /** Private, so that a proxy around an error does not pass for one. */
  readonly #own = true;

  static {
    isOwn = (value): value is CallError => #own in value;
    localOf = (error) => (#local in error ? error.#local : NONE);
    Object.defineProperties(CallError.prototype, {
      name: { value: "CallError", writable: true, configurable: true },
      [BRAND]: { value: true },
    });
  }

  /** Throws a `TypeError` for an option that there is not: details given in place of the options would be lost. */
  constructor(code: ErrorCode | (string & {}), message?: string, options: CallErrorOptions = {}) {
    checkErrorOptions(options);
    const known = typeof code === "string" && code !== "" ? code : "UNKNOWN_ERROR";
    const traits = errorTraits(known);
    const text = typeof message === "string" && message !== "" ? message : traits.message;
    super(text, "cause" in options ? { cause: options.cause } : undefined, options.stack !== false);
    this.code = known;
    this.retryable = flag(options.retryable, traits.retryable);
    this.correctable = flag(options.correctable, traits.correctable);
    this.httpStatus = statusOf(traits, options.httpStatus);
    this.details = toErrorDetails(options.details);
    this.#local = options.local ?? NONE;
    this.#failure = options.failure;
  }

  /** Why, for programs of this process; never sent. */
  get failure(): FailureCause | undefined {
    return #failure in this ? this.#failure : undefined;
  }

  /** Gives what may leave the process: never the cause, the stack, a path, or details that are local. */
  toJSON(): CallErrorJSON {
    const { code, message, retryable, correctable } = this;
    const details = detailsToSend(this);
    return details === undefined
      ? { code, message, retryable, correctable }
      : { code, message, retryable, correctable, details };
  }
}

/** Gives the same error in other words or with other details; what is local stays so. */
export function changedError(
  error: CallError,
  change: { readonly message?: string; readonly details?: unknown; readonly cause?: unknown },
): CallError {
  const { code, message, details, httpStatus, retryable, correctable } = error;
  return new CallError(code, change.message ?? message, {
    details: "details" in change ? change.details : details,
    httpStatus,
    retryable,
    correctable,
    local: localOf(error),
    failure: error.failure,
    ...("cause" in error && { cause: "cause" in change ? change.cause : error.cause }),
    stack: false,
  });
}

/** Gives the details that may leave the process: all but those that are local. */
export function detailsToSend(error: CallError): JsonValue | undefined {
  const { details } = error;
  const names = localOf(error);
  if (names.length === 0 || !isPlainObject(details)) return details;
  const kept = Object.entries(details).filter(([name]) => !names.includes(name));
  return kept.length === 0 ? undefined : (Object.fromEntries(kept) as JsonValue);
}

function checkErrorOptions(options: CallErrorOptions): void {
  for (const name in options) {
    switch (name) {
      case "cause":
      case "details":
      case "httpStatus":
      case "retryable":
      case "correctable":
      case "local":
      case "failure":
      case "stack":
        continue;
      default:
        refuseOption(options, name);
    }
  }
}

function refuseOption(options: object, name: string): void {
  if (!Object.hasOwn(options, name) || (options as Record<string, unknown>)[name] === undefined) return;
  const shown = JSON.stringify(name.slice(0, 80));
  const hint = didYouMean(nearestName(name, Object.keys(OPTIONS)));
  throw new TypeError(
    `There is no option ${shown} of a CallError${hint} Facts for the caller go into details: { details: { ${shown}: … } }.`,
  );
}

function flag(given: unknown, otherwise: boolean): boolean {
  return typeof given === "boolean" ? given : otherwise;
}

function statusOf(traits: ErrorTraits, given: number = traits.httpStatus): number {
  return Number.isInteger(given) && given >= 400 && given <= 599 ? given : traits.httpStatus;
}

/** Recognises a thrown `CallError`, of another copy of this package too; never throws. */
export function isCallError(value: unknown): value is CallError {
  if (typeof value !== "object" || value === null) return false;
  return isOwn(value) || isOfOtherCopy(value);
}

function isOfOtherCopy(value: object): boolean {
  try {
    const { [BRAND]: brand, code, message, toJSON } = value as CallError & { [BRAND]?: unknown };
    return (
      brand === true &&
      value instanceof Error &&
      typeof code === "string" &&
      typeof message === "string" &&
      typeof toJSON === "function"
    );
  } catch {
    return false;
  }
}

/** Turns anything thrown into a `CallError`; foreign text stays in `cause`, off the wire. */
export function toCallError(thrown: unknown): CallError {
  if (typeof thrown === "object" && thrown !== null && isOwn(thrown)) return thrown;
  try {
    if (isCallError(thrown)) return fromOtherCopy(thrown);
    return failure(codeOfForeign(thrown), thrown);
  } catch {
    return failure("EXECUTION_ERROR", thrown);
  }
}

function failure(code: ErrorCode, cause: unknown): CallError {
  return new CallError(code, undefined, { cause, stack: false });
}

/** Rebuilt rather than passed on: an older copy may not promise what this one does. */
function fromOtherCopy(other: CallError): CallError {
  const { code, message, details, httpStatus, retryable, correctable } = other;
  return new CallError(code, message, {
    cause: other,
    details,
    httpStatus,
    retryable,
    correctable,
    stack: false,
  });
}

/** Understands the platform's own words for a call that was stopped, and no others. */
function codeOfForeign(thrown: unknown): ErrorCode {
  const name = thrown instanceof Error ? thrown.name : "";
  if (name === "AbortError") return "ABORTED";
  return name === "TimeoutError" ? "TIMEOUT" : "EXECUTION_ERROR";
}

const failedCalls = new WeakMap<CallError, string>();

/**
 * Remembers which operation's call an error of the runtime speaks of. To who made that call it says what to mend; where that was a
 * handler, its own caller can mend nothing, and may not even know of the operation the handler called.
 */
export function turnDown(error: CallError, operationId: string): CallError {
  failedCalls.set(error, operationId);
  return error;
}

/** Tells whether the runtime itself turned this very call down; what a handler throws never counts. */
export function isTurnedDown(error: CallError, operationId: string): boolean {
  return failedCalls.get(error) === operationId;
}

/** Tells whether an error speaks of a call of some other operation than this one. */
export function isOfAnotherCall(error: CallError, operationId: string): boolean {
  return (failedCalls.get(error) ?? operationId) !== operationId;
}

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
