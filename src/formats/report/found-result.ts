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
export function placeOf({ wrapping, line, notes }: FoundPlace): FoundPlace {
  return { wrapping, ...(line !== undefined && { line }), ...(notes !== undefined && { notes }) };
}
