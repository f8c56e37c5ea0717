import {
  type Candidate,
  decodeToolResult,
  type FormatErrorCode,
  isFormatError,
  parseEnvelopeBlock,
} from "../src/formats/index.ts";
import type { BlockCase } from "./envelope-mutations.ts";
import type { ResultCase } from "./tool-result-mutations.ts";

/** Options as vectors and cases write them; a policy is the list of versions it accepts. */
export interface ReadingOptions {
  readonly lenient?: boolean;
  readonly maxBytes?: number;
  readonly acceptVersions?: readonly number[];
}

/** The codes with which a block is refused, in the order in which they are looked for. */
export const BLOCK_CODES = [
  "not_an_envelope",
  "unsupported_version",
  "too_large",
  "bad_base64",
  "bad_utf8",
  "bad_json",
  "bad_shape",
  "version_mismatch",
] as const satisfies readonly FormatErrorCode[];

/** Turns options of a vector or case into those of the readers. */
export function readOptions({ lenient, maxBytes, acceptVersions }: ReadingOptions) {
  return {
    ...(lenient !== undefined && { lenient }),
    ...(maxBytes !== undefined && { maxBytes }),
    ...(acceptVersions !== undefined && {
      acceptVersion: (version: number) => acceptVersions.includes(version),
    }),
  };
}

/** Gives the code a reader refuses with; undefined when it does not refuse, and any other error is passed on. */
export function codeOf(read: () => unknown): string | undefined {
  try {
    read();
    return undefined;
  } catch (thrown) {
    if (isFormatError(thrown)) return thrown.code;
    throw thrown;
  }
}

/** Gives the code because of which an envelope block was not used. */
export function fallbackReason(odd: readonly { readonly code: string }[]): string | undefined {
  const codes: readonly string[] = BLOCK_CODES;
  return odd.find(({ code }) => codes.includes(code))?.code;
}

/** Names the formats an ambiguous result could be, each once. */
export function formatsOf(candidates: readonly Candidate[] = []): readonly string[] {
  return [...new Set(candidates.map(({ format }) => format))];
}

/** What a reader makes of a case; fields as the Python judge names them. */
export interface Verdict {
  readonly code?: string;
  readonly bug?: string;
  readonly format?: string;
  readonly isError?: boolean;
  readonly tolerated?: readonly string[];
  readonly [field: string]: unknown;
}

/** Judges a case the way the Python judge does. */
export function judge(given: BlockCase | ResultCase): Verdict {
  try {
    return given.kind === "block" ? judgeBlock(given) : judgeResult(given);
  } catch (thrown) {
    return isFormatError(thrown) ? { code: thrown.code } : { bug: String(thrown) };
  }
}

function judgeBlock(given: BlockCase): Verdict {
  const { payload, meta, extra = {}, tolerated = [] } = parseEnvelopeBlock(given.text, readOptions(given));
  return { payload, meta, extra, tolerated };
}

function judgeResult(given: ResultCase): Verdict {
  const decoded = decodeToolResult(JSON.parse(given.json), readOptions(given));
  const { format, isError, obtained, candidates, data = null, text, odd } = decoded;
  return {
    format,
    isError,
    obtained,
    reason: fallbackReason(odd) ?? null,
    candidates: formatsOf(candidates),
    data,
    text,
  };
}
