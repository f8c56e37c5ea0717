import type { CallFailure } from "./call-failure.ts";
import type { CallRow } from "./live-event.ts";

/** All that is remembered of one call. */
export interface CallView {
  readonly row: CallRow;
  readonly input: Kept;
  /** One for a call that returned; the last ones of a subscription. */
  readonly results: readonly KeptResult[];
  /** How many earlier values of a subscription are not kept. */
  readonly earlier: number;
  readonly error?: CallFailure;
  /** What the source answered where that became the error; operators only. */
  readonly raw?: Kept;
  /** The whole family, as far as it is remembered: the call nobody here made, and all below it, by `seq`. */
  readonly family: readonly CallRow[];
}

/** A value that was kept, or why it was not. */
export type Kept = { readonly value: unknown } | { readonly omitted: KeptReason };

/** Why a value was not kept: longer than is kept, pushed out by later ones, not JSON, or there was none. */
export type KeptReason = "too-long" | "forgotten" | "not-json" | "none";

/** A result that was kept, or why it was not. */
export type KeptResult = ResultView | { readonly omitted: KeptReason };

/** One result, from all sides. */
export interface ResultView {
  readonly envelope: EnvelopeView;
  /** The data before it was normalised, where that is something else. */
  readonly rawData?: unknown;
}

/** An envelope as JSON; the members of `meta` depend on its source (see the types of the package). */
export interface EnvelopeView {
  readonly data: unknown;
  readonly meta: { readonly source: "local" | "http" | "mcp"; readonly [member: string]: unknown };
}
