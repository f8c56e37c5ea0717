import type { FormatName } from "../../core/result/tool-result.ts";
import type { EnvelopeView } from "./call-view.ts";

/** Asks how a result reads in each format. */
export interface FormatsAsk {
  readonly envelope: EnvelopeView;
  /** The operation that answered. @default none */
  readonly operation?: string;
}

/** How it reads in each. */
export interface FormatsAnswer {
  readonly formats: readonly FormatView[];
}

/** A result in one format, and where it would read differently there. */
export interface FormatView {
  readonly format: FormatName;
  /** As it goes out; absent where the format cannot hold the result. */
  readonly encoded?: unknown;
  /** Why it cannot. */
  readonly refused?: string;
  /** Of the encoded text, in UTF-8. */
  readonly bytes?: number;
  /** What the format has no place for, or holds otherwise. */
  readonly lost: readonly DifferenceView[];
  /** What the format asks for and the result does not say. */
  readonly madeUp: readonly DifferenceView[];
}

/** One place where a result reads differently once it was written in a format. */
export interface DifferenceView {
  /** JSON pointer into the canonical result. */
  readonly pointer: string;
  /** The beginning, as JSON, of what is lost or made up there. */
  readonly text: string;
}
