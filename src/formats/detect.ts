import { isResponseEnvelope } from "../core/envelope/envelope.ts";
import type { ObtainedFrom, ResponseEnvelope } from "../core/envelope/response-meta.ts";
import { parseJsonTextOrNone } from "../core/json/json-text.ts";
import { isPlainObject } from "../core/json/json-value.ts";
import { textOf } from "../core/result/call-tool-result.ts";
import type { FormatName } from "../core/result/tool-result.ts";
import { isEqual } from "../core/schema/compare-values.ts";
import { type Carrier, readCarrier } from "./carrier.ts";
import type { Decoded, Oddity, ReadOptions } from "./codec.ts";
import { type Contract, findContract } from "./contract.ts";
import { isFormatError } from "./format-error.ts";
import { readPlain } from "./plain/plain-codec.ts";
import { applyResidual } from "./residual.ts";
import { readCarriedEnvelope } from "./response-envelope/carried-envelope.ts";
import { readEnvelope } from "./response-envelope/response-envelope-codec.ts";
import { isStatusEnvelope, readStatusEnvelope } from "./status-envelope/status-envelope-codec.ts";
import { isTieredEnvelope } from "./tiered-envelope/tiered-envelope.ts";
import { readTieredEnvelope } from "./tiered-envelope/tiered-envelope-codec.ts";
import { ENVELOPE_LIMITS, parseEnvelopeBlock } from "./tool-envelope/envelope-block.ts";
import { envelopeTexts, type FoundEnvelope, readToolEnvelope } from "./tool-envelope/tool-envelope-codec.ts";

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
    return conclude(plainReading(carrier), carrier, readPlain(carrier));
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
  return conclude(reading, carrier, { result, obtained, odd: all }, reading.hidesFirst?.());
}

/** Restores what the residual holds. */
function conclude(
  { format, data }: Pick<Candidate, "format" | "data">,
  { residual, content }: Pick<Carrier, "residual" | "content">,
  decoded: Decoded,
  hidesFirst = false,
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
  return conclude({ format: "response-envelope", data }, { residual: read.residual, content }, read);
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
