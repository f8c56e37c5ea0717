import { FORMAT_NAMES, type FormatName } from "../../core/result/tool-result.ts";
import type { Oddity } from "../codec.ts";
import { type DecodedToolResult, type DecodeOptions, decodeToolResult } from "../decode-tool-result.ts";
import { FORMATS } from "../formats.ts";
import { describeFailure } from "./describe-failure.ts";
import { findContradiction } from "./find-contradiction.ts";
import { type FailureKind, type FoundResult, placeOf, type Wrapping } from "./found-result.ts";
import { hiddenIn } from "./hidden-in-result.ts";
import { ResultTextError, toResultTextError } from "./result-text-error.ts";

/** All that is known of one result, as `--json` prints it. */
export interface ResultReport extends Omit<DecodedToolResult, "format" | "result"> {
  readonly format: DecodedToolResult["format"] | FailureKind;
  /** How the result was wrapped in what was given. */
  readonly wrapping: Wrapping;
  /** The line it stood in, where there are several. */
  readonly line?: number;
  /** What was taken off or left out on the way to it, a sentence each. */
  readonly notes?: readonly string[];
  /** Who answered, as far as the result says. */
  readonly tool?: string;
  /** What each other format has no place for, as pointers into the canonical result. */
  readonly losses?: Readonly<Partial<Record<FormatName, readonly string[]>>>;
}

/** How results are looked at. */
export interface DescribeOptions extends DecodeOptions {
  /** Tells what each other format would lose. @default false */
  readonly losses?: boolean | undefined;
}

/** Finds out what was given; what is no result at all is a `ResultTextError`. */
export function describeResult(found: FoundResult, what: string, options: DescribeOptions): ResultReport {
  if ("failure" in found) return describeFailure(found);
  const { losses, ...reading } = options;
  const { result, ...decoded } = decodeOrRefuse(found.value, what, reading);
  if (found.wrapping === "bare-envelope" && decoded.format === "mcp") throw notAnEnvelope(what);
  return {
    ...decoded,
    odd: [...decoded.odd, ...contradictionsIn(found.value), ...hiddenIn(decoded)],
    ...placeOf(found),
    ...(result?.tool !== undefined && { tool: result.tool }),
    ...(losses === true && result !== undefined && { losses: lossesOf(result, decoded.format) }),
  };
}

function decodeOrRefuse(value: unknown, what: string, options: DecodeOptions): DecodedToolResult {
  try {
    return decodeToolResult(value, options);
  } catch (thrown) {
    throw toResultTextError(thrown, what);
  }
}

function notAnEnvelope(what: string): ResultTextError {
  return new ResultTextError(
    `${what} looks like an envelope without a result around it, and is of no known format; "waybill encode" makes a result of data.`,
  );
}

function contradictionsIn(value: unknown): readonly Oddity[] {
  const found = findContradiction(value);
  return found === undefined ? [] : [found];
}

function lossesOf(
  result: NonNullable<DecodedToolResult["result"]>,
  found: DecodedToolResult["format"],
): Partial<Record<FormatName, readonly string[]>> {
  const others = FORMAT_NAMES.filter((format) => format !== found);
  return Object.fromEntries(others.map((format) => [format, FORMATS[format].losses(result)]));
}
