import { showBytes } from "../parts/show.ts";

/** A text to decode. */
export interface GivenText {
  readonly text: string;
  /** What it is called; it is not edited in the page then. @default it is edited */
  readonly name?: string;
  /** Why another one was not taken over. @default none was refused */
  readonly refused?: string;
}

/** Bytes that are sent at most, as the server has it. */
export const MOST_BYTES = 2 * 1_024 * 1_024;

/** Characters that are edited in the page; browsers stutter with more, so longer ones are shown by their beginning. */
const MOST_EDITED = 300_000;

/** Takes a text over: one that is too long to be edited goes by its name. */
export function toGiven(text: string, name: string): GivenText {
  return text.length <= MOST_EDITED ? { text } : { text, name };
}

/** Says that something is too long to be sent; nothing when it is not. */
export function tooLong(what: string, bytes: number): string | undefined {
  return bytes <= MOST_BYTES
    ? undefined
    : `${what} takes ${showBytes(bytes)}, and ${showBytes(MOST_BYTES)} is the most. "waybill decode" reads longer ones.`;
}

/** Bytes that a text takes on its way to the server: as JSON, in which quotes and line ends take two. */
export function sentBytes(text: string): number {
  if (text.length > MOST_BYTES) return text.length;
  return new TextEncoder().encode(JSON.stringify({ text })).length;
}
