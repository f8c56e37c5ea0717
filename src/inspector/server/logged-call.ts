import type { CallRow } from "../protocol.ts";
import { type KeptText, omitted } from "./kept-text.ts";

/** A row that gets its outcome later: whoever was to be told that the call began, and was not yet, is told its end. */
export type GrowingRow = { -readonly [K in keyof CallRow]: CallRow[K] };

/** One call as it is remembered. */
export interface LoggedCall {
  readonly seq: number;
  /** The key of whoever made it, which decides who may see the call. Absent where the subject is too long to be kept. */
  readonly caller: string | undefined;
  /** As it is told: first when it begins, then when it has ended. */
  readonly row: GrowingRow;
  input: KeptText;
  results: KeptText[];
  /** Values of a subscription that are not remembered any more. */
  earlier: number;
  /** Values that a subscription gave so far. */
  values: number;
  error: KeptText | undefined;
  /** What whoever made the call was told, where that is less than what is known here. */
  toldMessage: KeptText | undefined;
  /** What the source answered, where that became the error. */
  raw: KeptText | undefined;
}

/** What a call begins with. */
export const NO_TEXT: KeptText = omitted("none");

/** Tells whether a call still runs. */
export function isRunning({ row }: LoggedCall): boolean {
  return row.outcome === undefined;
}
