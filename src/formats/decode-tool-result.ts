import { isResponseEnvelope, mcpEnvelope, type SaidFacts } from "../core/envelope/envelope.ts";
import type { ObtainedFrom, ResponseEnvelope } from "../core/envelope/response-meta.ts";
import { CallError } from "../core/errors/errors.ts";
import { isPlainObject, parseJsonTextOrNone } from "../core/json/json-value.ts";
import { joinText } from "../core/result/human-text.ts";
import { type RecoverOptions, recoverJson } from "../core/result/recover-json.ts";
import type { ReadResult, ResultReader } from "../core/result/result-reader.ts";
import {
  type FormatName,
  type ResultError,
  type ToolResult,
  textOf,
  toFacts,
} from "../core/result/tool-result.ts";
import { isEqual } from "../core/schema/compare-values.ts";
import { isObject, type JsonSchema, type JsonSchemaObject } from "../core/schema/json-schema.ts";
import { toLocalEnvelope } from "./authored.ts";
import { type Carrier, type Contract, findContract, isOddFlag, readCarrier } from "./carrier.ts";
import type { Decoded, Oddity, ReadOptions } from "./codec.ts";
import { isFormatError, total } from "./format-error.ts";
import { derivedContent, readPlain } from "./plain/plain-codec.ts";
import { applyResidual } from "./residual.ts";
import {
  readCarriedEnvelope,
  readEnvelope,
  toKnownBlock,
  writeData,
} from "./response-envelope/response-envelope-codec.ts";
import { adviseRetry, type RetryAdvice } from "./retry-advice.ts";
import { isStatusEnvelope, readStatusEnvelope } from "./status-envelope/status-envelope-codec.ts";
import { isTieredEnvelope } from "./tiered-envelope/tiered-envelope.ts";
import { readTieredEnvelope } from "./tiered-envelope/tiered-envelope-codec.ts";
import { ENVELOPE_LIMITS, parseEnvelopeBlock } from "./tool-envelope/envelope-block.ts";
import {
  envelopeTexts,
  type FoundEnvelope,
  readToolEnvelope,
  withoutBlocks,
} from "./tool-envelope/tool-envelope-codec.ts";

/** How a result is read, and whether JSON is looked for in its text. */
export interface DecodeOptions extends ReadOptions, RecoverOptions {}

/** Why a tool failed, and whether trying again is worth it. */
export type DecodedError = ResultError & RetryAdvice;

/** What a tool result turned out to be. */
export interface DecodedToolResult {
  /** The format found, or that more than one fits. */
  readonly format: FormatName | "ambiguous";
  /** The tool ran and reported an error. */
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

/**
 * Tells whether a result is MCP's own and says nothing beyond its blocks and its structured content, as most are: then there is nothing
 * to decode. False for what cannot be looked at.
 */
function isPlainResult(value: unknown, options: DecodeOptions): boolean {
  try {
    if (isBareEnvelope(value)) return false;
    const carrier = readCarrier(value);
    const mayHoldData =
      !carrier.hasStructured && (options.recoverJson === true || options.schema !== undefined);
    if (mayHoldData || carrier.residual !== undefined) return false;
    if (envelopeTexts(carrier.content).size > 0) return false;
    const contract = findContract(carrier, options);
    return contract === undefined || contractReadings(carrier, contract, options).length === 0;
  } catch {
    return false;
  }
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

/** One way to read a result that can be read in several. */
export interface Candidate {
  readonly format: FormatName;
  readonly data: unknown;
  readonly obtained: ObtainedFrom;
}

/** A candidate, and how to read the result that way. */
interface Reading extends Candidate {
  read(): Decoded;
  /** Tells whether the first block is for the machine; asked once, of the reading that is taken. */
  hidesFirst?(): boolean;
}

/** The one format that fits, or all that do. */
export type Detection =
  | {
      readonly format: FormatName;
      readonly decoded: Decoded;
      /** The data as it stood there. */
      readonly data: unknown;
      /** Every block, as it came. */
      readonly content: readonly unknown[];
      /** The first block is for the machine. */
      readonly hidesFirst: boolean;
    }
  | { readonly candidates: readonly Candidate[]; readonly odd: readonly Oddity[] };

/** Finds the format of a result; what is no result at all throws a `FormatError`. */
export function detect(value: unknown, options: ReadOptions): Detection {
  if (isBareEnvelope(value)) return detectBare(value);
  const carrier = readCarrier(value);
  const texts = envelopeTexts(carrier.content);
  const contract = findContract(carrier, options);
  // Most results are neither, and need no more than this.
  if (texts.size === 0 && contract === undefined)
    return conclude(plainReading(carrier), carrier, { decoded: readPlain(carrier) });
  const { envelopes, odd, isConflict } = readEnvelopes(texts, options);
  const readings = [
    ...envelopes.map((found) => envelopeReading(carrier, found)),
    ...(contract === undefined ? [] : contractReadings(carrier, contract, options)),
  ];
  const chosen = choose(carrier, readings, isConflict);
  if (chosen === undefined) return { candidates: candidatesOf(carrier, readings), odd };
  const { reading } = chosen;
  const { result, obtained, odd: noticed } = reading.read();
  const all = join(join(odd, noticed), chosen.odd);
  const decoded = { result, obtained, odd: all };
  return conclude(reading, carrier, { decoded, hidesFirst: reading.hidesFirst?.() });
}

/** Restores what the residual holds. */
function conclude(
  { format, data }: Pick<Candidate, "format" | "data">,
  { residual, content }: Pick<Carrier, "residual" | "content">,
  { decoded, hidesFirst = false }: { readonly decoded: Decoded; readonly hidesFirst?: boolean | undefined },
): Detection {
  if (residual === undefined) return { format, decoded, data, content, hidesFirst };
  const { result, odd } = applyResidual(decoded.result, residual);
  return {
    format,
    decoded: { result, obtained: decoded.obtained, odd: join(decoded.odd, odd) },
    data,
    content,
    hidesFirst,
  };
}

function join(some: readonly Oddity[], more: readonly Oddity[]): readonly Oddity[] {
  return some.length === 0 ? more : [...some, ...more];
}

function isBareEnvelope(value: unknown): value is ResponseEnvelope {
  if (!isPlainObject(value) || Array.isArray(value["content"]) || "structuredContent" in value) return false;
  return isResponseEnvelope(value);
}

function detectBare(envelope: ResponseEnvelope): Detection {
  const read = readEnvelope(envelope);
  const content = envelope.meta.source === "mcp" ? envelope.meta.content : [];
  const { data } = envelope;
  return conclude(
    { format: "response-envelope", data },
    { residual: read.residual, content },
    { decoded: read },
  );
}

/** The envelope blocks that can be read, and why others cannot. */
function readEnvelopes(
  texts: ReadonlyMap<string, readonly number[]>,
  options: ReadOptions,
): {
  readonly envelopes: readonly FoundEnvelope[];
  readonly odd: readonly Oddity[];
  readonly isConflict: boolean;
} {
  const envelopes: FoundEnvelope[] = [];
  const odd: Oddity[] = [];
  for (const [text, at] of texts) {
    // Two that can be read are enough to know that neither can be believed.
    if (envelopes.length === 2) break;
    try {
      envelopes.push({ envelope: parseEnvelopeBlock(text, options), at });
    } catch (error) {
      if (!isFormatError(error)) throw error;
      odd.push({ code: error.code, message: error.message });
    }
  }
  const isConflict = texts.size > 1 && envelopes.length > 0;
  if (isConflict) {
    odd.push({ code: "conflicting_envelopes", message: "The result holds different envelope blocks." });
  }
  return { envelopes, odd, isConflict };
}

function envelopeReading(carrier: Carrier, found: FoundEnvelope): Reading {
  return {
    format: "tool-envelope",
    data: found.envelope.payload,
    obtained: "envelope-block",
    read: () => readToolEnvelope(carrier, found),
  };
}

/** Each envelope that a value is the shape of. */
function contractReadings(
  carrier: Carrier,
  contract: Contract,
  { maxBytes = ENVELOPE_LIMITS.bytes }: ReadOptions,
): readonly Reading[] {
  const { value, obtained } = contract;
  if (!isPlainObject(value) || !Object.hasOwn(value, "data")) return [];
  const { data } = value;
  const readings: Reading[] = [];
  if (isTieredEnvelope(value)) {
    const hidesFirst = () => holdsJson(carrier.content[0], value, maxBytes);
    const read = () => readTieredEnvelope(carrier, contract);
    readings.push({ format: "tiered-envelope", data, obtained, hidesFirst, read });
  }
  const hidesFirst = () => obtained === "contract-json";
  if (isStatusEnvelope(value)) {
    const read = () => readStatusEnvelope(carrier, contract);
    readings.push({ format: "status-envelope", data, obtained, hidesFirst, read });
  }
  if (isResponseEnvelope(value)) {
    const read = () => readCarriedEnvelope(carrier, value, obtained);
    readings.push({ format: "response-envelope", data, obtained, hidesFirst, read });
  }
  return readings;
}

/** Tells whether a block is the JSON of a value, however it is spaced; one that is too long is not looked into. */
function holdsJson(block: unknown, value: unknown, maxBytes: number): boolean {
  const text = textOf(block);
  if (text === undefined || !text.startsWith("{") || text.length > maxBytes) return false;
  return isEqual(parseJsonTextOrNone(text), value);
}

/** The reading that needs no guess: the only one, or the one the residual names where nothing contradicts it. */
function choose(
  carrier: Carrier,
  readings: readonly Reading[],
  isConflict: boolean,
): { readonly reading: Reading; readonly odd: readonly Oddity[] } | undefined {
  const alone = onlyReading(carrier, readings, isConflict);
  const hint = isPlainObject(carrier.residual) ? carrier.residual["format"] : undefined;
  if (hint === undefined || hint === alone?.format) return alone && { reading: alone, odd: [] };
  const claimed = hint === "mcp" ? plainReading(carrier) : readings.find(({ format }) => format === hint);
  // A claim does not settle which of two blocks is right, nor whether a block or the structured content is.
  const isContested = hint === "tool-envelope" && (isConflict || carrier.hasStructured);
  const reading = isContested ? alone : (claimed ?? alone);
  return reading && { reading, odd: reading === alone ? [] : [FORMAT_CLAIMED] };
}

const FORMAT_CLAIMED: Oddity = {
  code: "format_claimed",
  message: "The residual says in which format the result is; by itself it would be read otherwise.",
};

function onlyReading(
  carrier: Carrier,
  readings: readonly Reading[],
  isConflict: boolean,
): Reading | undefined {
  const [only, second] = readings;
  if (only === undefined) return plainReading(carrier);
  if (second !== undefined || isConflict) return undefined;
  const isContradicted = only.format === "tool-envelope" && carrier.hasStructured;
  return isContradicted && !isEqual(only.data, carrier.structured) ? undefined : only;
}

function plainReading(carrier: Carrier): Reading {
  return {
    format: "mcp",
    data: carrier.hasStructured ? carrier.structured : carrier.content,
    obtained: carrier.hasStructured ? "structured-content" : "content",
    read: () => readPlain(carrier),
  };
}

function candidatesOf(carrier: Carrier, readings: readonly Reading[]): readonly Candidate[] {
  const all = readings.length > 1 ? readings : [...readings, plainReading(carrier)];
  return all.map(({ format, data, obtained }) => ({ format, data, obtained }));
}

/** How published envelopes are read, and whether JSON in text counts as data. */
export interface ResultReaderOptions extends ReadOptions {
  /** Takes a single text block that is a JSON object or array for the data. @default false */
  readonly recoverJson?: boolean | undefined;
}

/** A reader that can be an operation's `returns` too. */
export type ReturnedResultReader = ResultReader & Required<Pick<ResultReader, "toEnvelope">>;

/**
 * Makes a reader of all published formats: for importers of tools, who are left what is ambiguous or unreadable, and for operations
 * whose handlers return tool results (`returns`).
 */
export function createResultReader(options: ResultReaderOptions = {}): ReturnedResultReader {
  return Object.freeze<ReturnedResultReader>({
    read(result, schema) {
      try {
        return readPublished(result, { ...options, schema });
      } catch (error) {
        if (isFormatError(error)) return undefined;
        throw error;
      }
    },
    toEnvelope: (returned, schema) => toEnvelope(returned, { ...options, schema }),
    dataSchema: (advertised) => (isEnvelopeSchema(advertised) ? dataOf(advertised) : advertised),
  });
}

function readPublished(result: unknown, options: DecodeOptions): ReadResult | undefined {
  if (isPlainResult(result, options)) return undefined;
  const { format, data, obtained, error, result: decoded } = decodeToolResult(result, options);
  if (format === "ambiguous" || obtained === undefined) return undefined;
  const isPlain = format === "mcp" || format === "response-envelope";
  const said = decoded && saidIn(decoded);
  if (isPlain && obtained !== "text-json" && said === undefined) return undefined;
  return {
    data,
    obtained,
    format,
    ...(error && { code: error.code, message: error.message, details: error.details }),
    // The blocks as they came show what the envelope says; those that are more than that are named.
    ...(said !== undefined && { said: { ...said, content: decoded?.content ?? [] } }),
  };
}

/** What a result says beyond its data and content; nothing where that is nothing. */
function saidIn(result: ToolResult): SaidFacts | undefined {
  const { content: _, _meta: __, extra: ___, ...fields } = result;
  return toFacts(fields, { content: false })?.said;
}

/** Reads any tool result as the envelope of the operation that returned it. */
function toEnvelope(returned: unknown, options: DecodeOptions): ResponseEnvelope {
  const decoded = decodeReturned(returned, options);
  const { format, isError, data, obtained, result } = decoded;
  if (result === undefined || obtained === undefined) throw unreadable(AMBIGUOUS);
  if (format === "mcp") return toPlainEnvelope(decoded, result);
  return toLocalEnvelope({ ...result, isError, data }, obtained);
}

/** MCP's own result: the blocks stay as they are, and are the data where there is no other. */
function toPlainEnvelope(
  { isError, data, obtained }: DecodedToolResult,
  result: ToolResult,
): ResponseEnvelope {
  const content = (result.content ?? derivedContent(result)).map(toKnownBlock);
  const isContent = obtained === "content";
  return mcpEnvelope(isContent ? content : data, {
    isError,
    content,
    ...(obtained === "structured-content" && { structuredContent: data }),
    ...(result._meta !== undefined && { _meta: result._meta }),
    ...(obtained !== undefined && { waybill: { obtained } }),
  });
}

function decodeReturned(returned: unknown, options: DecodeOptions): DecodedToolResult {
  try {
    return decodeToolResult(returned, options);
  } catch (cause) {
    if (!isFormatError(cause)) throw cause;
    throw unreadable("it is no object with a list of content blocks", cause);
  }
}

const AMBIGUOUS = "it can be read in more than one way";

function unreadable(reason: string, cause?: unknown): CallError {
  const message = `What the handler returned is read as a tool result, and cannot be: ${reason}.`;
  return new CallError("OUTPUT_INVALID", message, { cause });
}

/** The fields by which the schema of an envelope is known. */
const SIGNATURES = [
  { properties: ["tier", "tool_version", "tool_id", "request_id", "error", "data"] },
  { properties: ["meta", "data"], meta: ["status", "summary"] },
] as const;

function isEnvelopeSchema(schema: JsonSchema): schema is JsonSchemaObject {
  if (!isObject(schema)) return false;
  return SIGNATURES.some((signature) => {
    const hasFields = signature.properties.every((name) => propertyOf(schema, name) !== undefined);
    if (!hasFields || !("meta" in signature)) return hasFields;
    const meta = propertyOf(schema, "meta");
    return signature.meta.every((name) => propertyOf(meta, name) !== undefined);
  });
}

function propertyOf(schema: unknown, name: string): unknown {
  const properties = isObject(schema) ? schema["properties"] : undefined;
  return isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined;
}

const ENVELOPE_ID = "urn:waybill:envelope";

/** Points into the schema of the envelope, which is kept whole so that its own references go on working. */
function dataOf(envelope: JsonSchemaObject): JsonSchemaObject {
  const { $schema } = envelope;
  const id = typeof envelope["$id"] === "string" ? envelope["$id"] : ENVELOPE_ID;
  const place =
    isObject(envelope["$defs"]) && Object.hasOwn(envelope["$defs"], "data")
      ? "/$defs/data"
      : "/properties/data";
  return {
    ...($schema !== undefined && { $schema }),
    allOf: [{ $ref: `${id}#${place}` }],
    $defs: { envelope: { ...envelope, $id: id } },
  };
}
