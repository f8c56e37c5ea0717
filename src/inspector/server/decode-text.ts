import { transcode } from "../../formats/index.ts";
import { describeResult, type ResultReport } from "../../formats/report/describe-result.ts";
import { findResults } from "../../formats/report/find-results.ts";
import type { FoundResult } from "../../formats/report/found-result.ts";
import { ResultTextError } from "../../formats/report/result-text-error.ts";
import type { DecodeAnswer, DecodedView, EnvelopeView, ResultView } from "../protocol.ts";
import { countValues } from "./count-values.ts";
import { badRequest, tooManyValues } from "./failure-of.ts";
import { LOOKED_BODY_BYTES, MOST_DECODED, MOST_LOOKED_VALUES } from "./inspector-limits.ts";
import { writtenJson } from "./written-json.ts";
import { writtenResult } from "./written-result.ts";

const WHAT = "The text";
/** Data may be longer once it is read than it was in the text. */
const MOST_CHARACTERS = LOOKED_BODY_BYTES * 2;

/** Says what the results in a text are. */
export function decodeText(text: string): DecodeAnswer {
  try {
    const found = findResults(text, WHAT);
    if (found.length > MOST_DECODED) {
      throw badRequest(
        `The text holds ${found.length} results; at most ${MOST_DECODED} are read at a time.`,
        413,
      );
    }
    if (countAll(found) > MOST_LOOKED_VALUES) throw tooManyValues(WHAT);
    const results = found.map((one, at) => viewOf(one, placeOf(one, found.length > 1 ? at : undefined)));
    return { results };
  } catch (thrown) {
    if (thrown instanceof ResultTextError) throw badRequest(thrown.message);
    throw thrown;
  }
}

function countAll(found: readonly FoundResult[]): number {
  return countValues(
    found.map((one) => ("failure" in one ? one.error : one.value)),
    MOST_LOOKED_VALUES,
  );
}

function placeOf({ line }: FoundResult, at: number | undefined): string {
  if (line !== undefined) return `Line ${line}`;
  return at === undefined ? WHAT : `Result ${at + 1}`;
}

function viewOf(found: FoundResult, what: string): DecodedView {
  const report = describeResult(found, what, { recoverJson: true });
  const { format, wrapping, line, notes, isError, obtained, text, tool, odd } = report;
  const data = plainJson(report.data);
  const envelope = withRecovered(envelopeOf(found), report, data);
  return {
    format,
    ...candidatesOf(report),
    wrapping,
    ...(line !== undefined && { line }),
    ...(notes !== undefined && { notes }),
    isError,
    ...(data !== undefined && { data }),
    ...(obtained !== undefined && { obtained }),
    text,
    ...(tool !== undefined && { tool }),
    ...errorOf(report),
    odd,
    ...(envelope !== undefined && { envelope }),
  };
}

function candidatesOf({ candidates }: ResultReport): Pick<DecodedView, "candidates"> {
  return candidates === undefined
    ? {}
    : {
        candidates: candidates.map(({ format, obtained }) => ({
          format,
          why: `Its data would be from: ${obtained}.`,
        })),
      };
}

function errorOf({ error }: ResultReport): Pick<DecodedView, "error"> {
  if (error === undefined) return {};
  const { code, message } = error;
  const details = plainJson(error.details);
  return {
    error: { ...(code !== undefined && { code }), message, ...(details !== undefined && { details }) },
  };
}

/** The result as an envelope of ours; nothing where more than one format fits, or there is no result. */
function envelopeOf(found: FoundResult): EnvelopeView | undefined {
  if ("failure" in found) return undefined;
  try {
    const written = writtenResult(transcode(found.value, "response-envelope"), MOST_CHARACTERS);
    return "text" in written ? (JSON.parse(written.text) as ResultView).envelope : undefined;
  } catch {
    return undefined;
  }
}

/** JSON that was found in a text is the data, as in what a source gives that recovers it. */
function withRecovered(
  envelope: EnvelopeView | undefined,
  { obtained }: ResultReport,
  data: unknown,
): EnvelopeView | undefined {
  return envelope !== undefined && obtained === "text-json" ? { ...envelope, data } : envelope;
}

function plainJson(value: unknown): unknown {
  const written = value === undefined ? undefined : writtenJson(value, MOST_CHARACTERS);
  return written !== undefined && "text" in written ? JSON.parse(written.text) : undefined;
}
