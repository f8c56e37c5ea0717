import type { ObtainedFrom } from "../core/envelope/response-meta.ts";
import { isPlainObject } from "../core/json/json-value.ts";
import { joinText } from "../core/result/human-text.ts";
import { type RecoverOptions, recoverJson } from "../core/result/recover-json.ts";
import type { FormatName, ResultError, ToolResult } from "../core/result/tool-result.ts";
import { isOddFlag } from "./carrier.ts";
import type { Oddity, ReadOptions } from "./codec.ts";
import { type Candidate, type Detection, detect } from "./detect.ts";
import { total } from "./format-error.ts";
import { writeData } from "./response-envelope/response-envelope-codec.ts";
import { adviseRetry, type RetryAdvice } from "./retry-advice.ts";
import { envelopeTexts, withoutBlocks } from "./tool-envelope/tool-envelope-codec.ts";

/** How a result is read, and whether JSON is looked for in its text. */
export interface DecodeOptions extends ReadOptions, RecoverOptions {}

/** Why a tool failed, and whether trying again is worth it. */
export type DecodedError = ResultError & RetryAdvice;

/** What a tool result turned out to be. */
export interface DecodedToolResult {
  /** The format found, or that more than one fits. */
  readonly format: FormatName | "ambiguous";
  /** The tool ran and said no. */
  readonly isError: boolean;
  /** Absent when the result is ambiguous, and for an error that carries nothing else. */
  readonly data?: unknown;
  /** How the data was found; absent when the result is ambiguous. */
  readonly obtained?: ObtainedFrom;
  readonly error?: DecodedError;
  /** The text blocks for people, joined by blank lines. */
  readonly text: string;
  /** What a well-behaved writer would not have written, and why an envelope could not be read. */
  readonly odd: readonly Oddity[];
  /** Every reading that fits, when more than one does. */
  readonly candidates?: readonly Candidate[];
  /** Everything the result says; absent when it is ambiguous. */
  readonly result?: ToolResult;
}

/** Finds out what a tool result is: any value gives an answer or a `FormatError`, and nothing is guessed in silence. */
export function decodeToolResult(value: unknown, options: DecodeOptions = {}): DecodedToolResult {
  return total(() => {
    const found = detect(value, options);
    const decoded =
      "candidates" in found ? ambiguous(value, found.candidates, found.odd) : describe(found, options);
    const isOdd = isOddFlag((value as { readonly isError?: unknown }).isError);
    return isOdd ? { ...decoded, odd: [...decoded.odd, ODD_FLAG] } : decoded;
  });
}

type Found = Exclude<Detection, { readonly candidates: unknown }>;

function ambiguous(
  value: unknown,
  candidates: readonly Candidate[],
  odd: readonly Oddity[],
): DecodedToolResult {
  const { isError, content } = value as { isError?: unknown; content?: unknown };
  const text = Array.isArray(content) ? joinText(forPeople(content, false)) : "";
  return { format: "ambiguous", isError: isError === true || isOddFlag(isError), text, odd, candidates };
}

/** The blocks for people: what is for the machine is not, even where it cannot be read. */
function forPeople(content: readonly unknown[], hidesFirst: boolean): readonly unknown[] {
  const texts = envelopeTexts(content);
  if (texts.size === 0) return hidesFirst ? content.slice(1) : content;
  return withoutBlocks(content, [...(hidesFirst ? [0] : []), ...[...texts.values()].flat()]);
}

function describe(found: Found, options: DecodeOptions): DecodedToolResult {
  const { format, decoded: read, data, content, hidesFirst } = found;
  const { result, obtained, odd } = read;
  const { isError } = result;
  const text = joinText(forPeople(content, hidesFirst));
  const decoded: { -readonly [K in keyof DecodedToolResult]: DecodedToolResult[K] } = {
    format,
    isError,
    obtained,
    text,
    odd: !isError && format === "mcp" && readsLikeError(text) ? [...odd, SUSPECT] : odd,
    result,
  };
  if (isError) decoded.error = errorOf(result, text);
  const recovered =
    obtained === "content" && result.data === undefined ? recoverJson(content, options) : undefined;
  if (recovered !== undefined) {
    decoded.data = recovered.data;
    decoded.obtained = "text-json";
  } else if (result.data !== undefined) decoded.data = writeData(result);
  // An error payload is the error, and no data besides.
  else if (obtained !== "envelope-block") decoded.data = data;
  return decoded;
}

const ODD_FLAG: Oddity = {
  code: "odd_flag",
  message: "isError is neither true nor false; it is read as an error.",
};

const SUSPECT: Oddity = {
  code: "error_as_success",
  message: "The text reads like an error, and isError does not say so.",
};

/** Some servers report a failure as a success; that is worth a word, and never changes the outcome. */
function readsLikeError(text: string): boolean {
  return /^(?:❌|#{1,6} error\b|error\b|failed\b)/i.test(text);
}

function errorOf(result: ToolResult, text: string): DecodedError {
  const { error, summary, facts, data } = result;
  const known: ResultError = error ?? {
    message: summary ?? (text === "" ? "The tool failed." : text),
    ...codeIn(facts?.code ?? (isPlainObject(data) ? data["errorCode"] : undefined)),
  };
  return { ...known, ...adviseRetry(known) };
}

function codeIn(code: unknown): { readonly code?: string } {
  return typeof code === "string" ? { code } : {};
}
