import { adoptEnvelope, isResponseEnvelope } from "../../../core/envelope/envelope.ts";
import { type CallError, toCallError } from "../../../core/errors/errors.ts";
import { isPlainObject } from "../../../core/json/json-value.ts";
import type { FormatName, ToolResult } from "../../../core/result/tool-result.ts";
import { SecretMask } from "../../../core/secrets/secret-mask.ts";
import { FORMAT_NAMES, FORMATS, isFormatError, transcode } from "../../../formats/index.ts";
import { type ResultReport, reportResult } from "../../../formats/report/describe-result.ts";
import { findResults } from "../../../formats/report/find-results.ts";
import type { FoundResult } from "../../../formats/report/found-result.ts";
import { ResultTextError } from "../../../formats/report/found-result.ts";
import { differences } from "../../../formats/residual.ts";
import { encodeWithLosses } from "../../../formats/transcode.ts";
import type {
  DecodeAnswer,
  DecodedView,
  DecodeRequest,
  DifferenceView,
  EnvelopeView,
  FormatsAnswer,
  FormatsRequest,
  FormatView,
  ResultView,
} from "../../protocol.ts";
import { badRequest, tooManyValues } from "../answers.ts";
import { maskJson, writtenJson, writtenResult } from "../calls/written-json.ts";
import {
  DECODED_BODY_BYTES,
  MOST_DECODED,
  MOST_DECODED_VALUES,
  MOST_RESULT_CHARACTERS,
} from "../inspector-limits.ts";
import { idIn, type Posted, parsePosted, textIn } from "../read-posted.ts";

/** A result or text to decode, as it is sent to the worker thread. */
export interface DecodeJob {
  readonly kind: "formats" | "decode";
  /** What a page posted. */
  readonly posted: Uint8Array;
  /** What must not be shown. */
  readonly secrets: readonly string[];
}

/** The answer to a job: JSON without secrets, or why there is none. */
export type DecodeOutcome =
  | { readonly json: Uint8Array<ArrayBuffer> }
  | { readonly refused: Pick<CallError, "code" | "message" | "httpStatus"> };

const DECODERS: Readonly<Record<DecodeJob["kind"], (posted: Posted) => unknown>> = {
  formats: (posted) => {
    const operation =
      posted["operation"] === undefined ? undefined : idIn<FormatsRequest>(posted, "operation");
    return formatsOfResult(posted["envelope"], operation);
  },
  decode: (posted) => decodeText(textIn<DecodeRequest>(posted, "text")),
};

/** Decodes what a page posted; never throws, because the answer goes to another thread. */
export function runDecodeJob({ kind, posted, secrets }: DecodeJob): DecodeOutcome {
  try {
    const json = JSON.stringify(DECODERS[kind](parsePosted(posted)));
    return { json: new TextEncoder().encode(maskJson(json, maskOf(secrets))) };
  } catch (thrown) {
    const { code, message, httpStatus } = toCallError(thrown);
    return { refused: { code, message, httpStatus } };
  }
}

function maskOf(secrets: readonly string[]): (text: string) => string {
  const mask = new SecretMask();
  for (const secret of secrets) mask.add(secret);
  return (text) => mask.mask(text);
}

const WHAT = "The text";
/** Data may be longer once it is read than it was in the text. */
const MOST_CHARACTERS = DECODED_BODY_BYTES * 2;

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
    if (countAll(found) > MOST_DECODED_VALUES) throw tooManyValues(WHAT);
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
    MOST_DECODED_VALUES,
  );
}

function placeOf({ line }: FoundResult, at: number | undefined): string {
  if (line !== undefined) return `Line ${line}`;
  return at === undefined ? WHAT : `Result ${at + 1}`;
}

function viewOf(found: FoundResult, what: string): DecodedView {
  const report = reportResult(found, what, { recoverJson: true });
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

const ENVELOPE_LINE = /^\s*__ENVELOPE_V\d+__:/;
const JSON_START = /^\s*[[{]/;

/**
 * Counts the values in JSON that was read, and those that its texts may hold where they look like JSON, or like an envelope block, and
 * are read in turn. Stops beyond `most`: it is for refusing what would take too long, and must not take long itself.
 */
export function countValues(value: unknown, most: number): number {
  const left: unknown[] = [value];
  let count = 0;
  while (left.length > 0 && count <= most) {
    const next = left.pop();
    count += 1;
    if (typeof next === "string") count += countInText(next);
    else if (Array.isArray(next) || isPlainObject(next)) {
      const members = Array.isArray(next) ? next : Object.values(next);
      if (count + left.length + members.length > most) return most + 1;
      for (const member of members) left.push(member);
    }
  }
  return count;
}

function countInText(text: string): number {
  if (JSON_START.test(text)) return countInJson(text);
  if (!ENVELOPE_LINE.test(text)) return 0;
  return countInJson(Buffer.from(text.slice(text.indexOf(":") + 1), "base64").toString("latin1"));
}

const COMMA = 44;
const OPENING = 123;
const CURLY = 32;

/** As many as there can be: signs within strings count too. */
function countInJson(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === COMMA || (code | CURLY) === OPENING) count += 1;
  }
  return count;
}

/** Characters that are told of what is lost or made up; pages show less. */
const MOST_TOLD = 200;

/** Says how a result reads in each format, what each would lose, and what it would make up. */
export function formatsOfResult(envelope: unknown, operation: string | undefined): FormatsAnswer {
  if (countValues(envelope, MOST_DECODED_VALUES) > MOST_DECODED_VALUES) throw tooManyValues("The result");
  if (!isResponseEnvelope(envelope)) {
    throw badRequest('This is no envelope: it has "data", and "meta" as its source wants it.');
  }
  const { result } = FORMATS["response-envelope"].decode(adoptEnvelope(envelope));
  return { formats: FORMAT_NAMES.map((format) => formatViewOf(result, format, operation)) };
}

function formatViewOf(result: ToolResult, format: FormatName, tool = result.tool): FormatView {
  try {
    const codec = FORMATS[format];
    const named: ToolResult = tool === undefined ? result : { ...result, tool };
    let told: Pick<FormatView, "lost" | "madeUp"> = { lost: [], madeUp: [] };
    // What is made up may be another each time: it is read from the very text that is shown.
    const encoded = encodeWithLosses(named, format, (carrier) => {
      const back = codec.decode(carrier).result;
      const losses = differences(named, back);
      told = tellDifferences(result, back, losses);
      return losses;
    });
    const text = JSON.stringify(encoded);
    const view = { format, bytes: Buffer.byteLength(text), ...told };
    if (text.length > MOST_RESULT_CHARACTERS) return { ...view, refused: "It is too long to be shown." };
    return { ...view, encoded };
  } catch (thrown) {
    if (!isFormatError(thrown)) throw thrown;
    return { format, refused: thrown.message, lost: [], madeUp: [] };
  }
}

/** Tells what the result said and is lost from what it never said and is there. A name that we gave it is neither. */
function tellDifferences(
  result: ToolResult,
  back: ToolResult,
  pointers: readonly string[],
): Pick<FormatView, "lost" | "madeUp"> {
  const lost: DifferenceView[] = [];
  const madeUp: DifferenceView[] = [];
  for (const pointer of pointers) {
    const had = valueAt(result, pointer);
    const told = JSON.stringify(had === undefined ? valueAt(back, pointer) : had);
    if (told === undefined) continue;
    (had === undefined ? madeUp : lost).push({ pointer, text: told.slice(0, MOST_TOLD) });
  }
  return { lost, madeUp };
}

/** Reads a field, or a member of one: pointers of differences lead no deeper. */
function valueAt(result: ToolResult, pointer: string): unknown {
  let value: unknown = result;
  for (const name of pointer.split("/").slice(1)) {
    value = isPlainObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  }
  return value;
}
