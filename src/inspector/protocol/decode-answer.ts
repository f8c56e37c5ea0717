import type { FormatName } from "../../core/result/tool-result.ts";
import type { EnvelopeView } from "./call-view.ts";

/** A text somebody pasted. */
export interface DecodeAsk {
  readonly text: string;
}

/** The results in it. */
export interface DecodeAnswer {
  readonly results: readonly DecodedView[];
}

/** What one result turned out to be. */
export interface DecodedView {
  /** The format it is in, that more than one fits, or what stands in place of a result where the call failed. */
  readonly format: FormatName | "ambiguous" | "json-rpc-error" | "problem" | "call-error";
  /** Those that fit, when more than one does. */
  readonly candidates?: readonly { readonly format: FormatName; readonly why?: string }[];
  /** How it was wrapped in the text. */
  readonly wrapping: string;
  /** The line it stood in, where there are several. */
  readonly line?: number;
  /** What was taken off or left out on the way to it, a sentence each. */
  readonly notes?: readonly string[];
  readonly isError: boolean;
  readonly data?: unknown;
  /** How the data was found. */
  readonly obtained?: string;
  readonly text: string;
  readonly tool?: string;
  readonly error?: { readonly code?: string; readonly message?: string; readonly details?: unknown };
  readonly odd: readonly { readonly code: string; readonly message: string }[];
  /** The result as an envelope of our own, for all that is shown of envelopes; absent where there is none to make. */
  readonly envelope?: EnvelopeView;
}
