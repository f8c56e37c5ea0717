import { isFormatError } from "../format-error.ts";

/** How a result was wrapped in what was given. */
export type Wrapping =
  | "none"
  | "json-rpc"
  | "event-stream"
  | "fixture"
  | "bare-envelope"
  | "envelope-line"
  | "content-block"
  | "content-list"
  | "text";

/** What stands in place of a result: an error of JSON-RPC, an HTTP problem, or the error that a fixture recorded. */
export type FailureKind = "json-rpc-error" | "problem" | "call-error";

/** Where something was found, and what is worth knowing about that. */
export interface FoundPlace {
  readonly wrapping: Wrapping;
  /** In which line it stood, where there are several. */
  readonly line?: number;
  /** What was taken off or left out on the way, a sentence each. @default nothing to say */
  readonly notes?: readonly string[];
}

/** A result that can be decoded. */
export interface FoundValue extends FoundPlace {
  readonly value: unknown;
}

/** An answer that holds no result: the call failed. */
export interface FoundFailure extends FoundPlace {
  readonly failure: FailureKind;
  /** As it was given. */
  readonly error: Readonly<Record<string, unknown>>;
}

/** One thing that was given: a result, or a failure in its place. */
export type FoundResult = FoundValue | FoundFailure;

/** Says how and where something was found. */
export function foundPlaceOf({ wrapping, line, notes }: FoundPlace): FoundPlace {
  return { wrapping, ...(line !== undefined && { line }), ...(notes !== undefined && { notes }) };
}

/** A text in which no tool result can be found: a sentence for people that names the text and the fix. */
export class ResultTextError extends Error {
  override readonly name = "ResultTextError";
}

/** Makes one message of a result that cannot be read or written; anything else stays what it is. */
export function toResultTextError(thrown: unknown, what: string): unknown {
  if (!isFormatError(thrown)) return thrown;
  return new ResultTextError(`${what} cannot be used: ${thrown.message} (${thrown.code})`, { cause: thrown });
}
