import { type ResponseEnvelope, rawData } from "../../../core/envelope/envelope.ts";
import { isPlainObject, MAX_JSON_DEPTH, setOwn, toJsonTextOrNone } from "../../../core/json/json-value.ts";
import { isEqual } from "../../../core/schema/compare-values.ts";
import { toWire } from "../../../core/wire/wire.ts";
import type { KeptReason } from "../../protocol.ts";

/** A value as JSON text, or why there is none. */
export type WrittenJson =
  | { readonly text: string }
  | { readonly omitted: "too-long"; readonly characters: number }
  | { readonly omitted: "not-json" };

/** How far a value that is too long is measured, in lengths of what is allowed. */
const MEASURED_TIMES = 8;

/**
 * Writes a value as JSON, as it is now. What JSON cannot hold takes its wire form; what would be longer than `limit` is measured and
 * not written, and whatever throws while it is read is no JSON. What is written in its place, where that is something else, is made
 * only once it is known to be short enough.
 */
export function writtenJson(
  value: unknown,
  limit: number,
  replace: (value: unknown) => unknown = (same) => same,
): WrittenJson {
  try {
    const characters = measureJson(value, limit * MEASURED_TIMES);
    if (characters > limit) return { omitted: "too-long", characters };
    const shown = replace(value);
    const text = toJsonTextOrNone(shown) ?? JSON.stringify(toWire(shown, { errors: false }));
    if (text.length > limit) return { omitted: "too-long", characters: text.length };
    return { text };
  } catch {
    return { omitted: "not-json" };
  }
}

/**
 * Estimates how many characters a value has as JSON, from below, without writing it: characters that are escaped count once, and a
 * number is one. Stops counting beyond `limit`, so that a huge value costs no more than one of that size. What is nested deeper than is
 * ever read, or holds itself, throws.
 */
function measureJson(value: unknown, limit: number): number {
  return measure(value, limit, 0);
}

function measure(value: unknown, limit: number, level: number): number {
  switch (typeof value) {
    case "string":
      return value.length + 2;
    case "object":
      if (value === null) return 4;
      if (level > MAX_JSON_DEPTH) throw new RangeError("The value is nested too deeply.");
      return measureObject(value, limit, level + 1);
    case "boolean":
      return 4;
    default:
      return 1;
  }
}

function measureObject(value: object, limit: number, level: number): number {
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return Math.ceil(value.byteLength / 3) * 4;
  // Both brackets, and one comma less than there are items.
  let count = 1;
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length && count <= limit; at++) {
      count += 1 + measure(value[at], limit - count, level);
    }
    return count;
  }
  if (value instanceof Map || value instanceof Set) {
    for (const item of value) {
      if (count > limit) break;
      count += 1 + measure(item, limit - count, level);
    }
    return count;
  }
  for (const key in value) {
    if (count > limit) break;
    const member = (value as Record<string, unknown>)[key];
    // Members without a value are not written.
    if (member !== undefined) count += key.length + 4 + measure(member, limit - count, level);
  }
  return count;
}

/** Writes an envelope as a `ResultView`: with the data as it first came back, where that is something else and there is room for both. */
export function writtenResult(envelope: ResponseEnvelope, limit: number): WrittenJson {
  try {
    const { data = null, meta } = envelope;
    const most = limit * MEASURED_TIMES;
    // What is said about it too: all that an MCP server answered is in there.
    const characters = measureJson(data, most) + measureJson(meta, most);
    if (characters > limit) return { omitted: "too-long", characters };
    const before = replacedData(envelope, limit - characters);
    // All of it in one go where JSON can hold it: most results are small, and there are many.
    const view = { envelope: { data, meta }, ...(before !== undefined && { rawData: before.value }) };
    const text = toJsonTextOrNone(view) ?? inPieces({ data, meta }, before, limit);
    if (text === undefined) return { omitted: "not-json" };
    if (text.length <= limit) return { text };
    return before === undefined
      ? { omitted: "too-long", characters: text.length }
      : withoutRaw({ data, meta }, limit);
  } catch {
    return { omitted: "not-json" };
  }
}

type EnvelopeParts = Readonly<Record<"data" | "meta", unknown>>;

interface Replaced {
  readonly value: unknown;
}

function replacedData(envelope: ResponseEnvelope, room: number): Replaced | undefined {
  const value = rawData(envelope);
  const { data } = envelope;
  if (value === data || value === undefined || measureJson(value, room) > room) return undefined;
  return isEqual(value, data) ? undefined : { value };
}

/** The result itself is worth more than what it was made from. */
function withoutRaw(envelope: EnvelopeParts, limit: number): WrittenJson {
  const text = toJsonTextOrNone({ envelope }) ?? inPieces(envelope, undefined, limit);
  if (text === undefined) return { omitted: "not-json" };
  return text.length > limit ? { omitted: "too-long", characters: text.length } : { text };
}

/** Data that JSON cannot hold takes its wire form by itself; what is said about it is ours, and stays as it is. */
function inPieces(
  { data, meta }: EnvelopeParts,
  before: Replaced | undefined,
  limit: number,
): string | undefined {
  const shown = writtenJson(data, limit);
  const raw = before && writtenJson(before.value, limit);
  if (!("text" in shown)) return undefined;
  const rest = raw !== undefined && "text" in raw ? `,"rawData":${raw.text}` : "";
  return `{"envelope":{"data":${shown.text},"meta":${JSON.stringify(meta)}}${rest}}`;
}

/** JSON text that is remembered for as long as there is room, or why there is none. */
export class KeptText {
  /** Absent once it is forgotten, or where it never was. */
  text: string | undefined;
  reason: KeptReason = "forgotten";
  earlier: KeptText | undefined;
  later: KeptText | undefined;

  constructor(text?: string) {
    this.text = text;
  }
}

/** Remembers texts, all of them together within a budget; the oldest are forgotten first. */
export class KeptTexts {
  readonly #most: number;
  #oldest: KeptText | undefined;
  #latest: KeptText | undefined;
  #characters = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Characters that are remembered now. */
  get characters(): number {
    return this.#characters;
  }

  /** Remembers what was written. */
  keep(written: WrittenJson): KeptText {
    if (!("text" in written)) return omitted(written.omitted);
    const kept = new KeptText(written.text);
    kept.earlier = this.#latest;
    if (this.#latest === undefined) this.#oldest = kept;
    else this.#latest.later = kept;
    this.#latest = kept;
    this.#characters += written.text.length;
    while (this.#characters > this.#most && this.#oldest !== undefined) this.forget(this.#oldest);
    return kept;
  }

  /** Lets go of a text. */
  forget(kept: KeptText): void {
    const { text, earlier, later } = kept;
    if (text === undefined) return;
    this.#characters -= text.length;
    kept.text = undefined;
    if (earlier === undefined) this.#oldest = later;
    else earlier.later = later;
    if (later === undefined) this.#latest = earlier;
    else later.earlier = earlier;
    kept.earlier = undefined;
    kept.later = undefined;
  }
}

/** Stands for a text that there never was. */
export function omitted(reason: KeptReason): KeptText {
  const kept = new KeptText();
  kept.reason = reason;
  return kept;
}

/** Reads a text that is remembered, or says why it is not. */
export function readKept<T>(
  kept: KeptText,
  read: (value: unknown) => T,
): T | { readonly omitted: KeptReason } {
  return kept.text === undefined ? { omitted: kept.reason } : read(JSON.parse(kept.text));
}

/**
 * Takes secrets out of JSON text, and leaves JSON. A secret that is found may stand where no text is, in the middle of a number of ours,
 * so then it is taken out of each text by itself, and of numbers that are nothing else.
 */
export function maskJson(text: string, mask: (text: string) => string): string {
  if (mask(text) === text) return text;
  return JSON.stringify(maskValue(JSON.parse(text), mask));
}

function maskValue(value: unknown, mask: (text: string) => string): unknown {
  if (typeof value === "string") return mask(value);
  if (typeof value === "number") {
    const masked = mask(String(value));
    return /^\*+$/.test(masked) ? masked : value;
  }
  if (Array.isArray(value)) return value.map((item) => maskValue(item, mask));
  if (!isPlainObject(value)) return value;
  const masked: Record<string, unknown> = {};
  for (const [key, member] of Object.entries(value)) setOwn(masked, mask(key), maskValue(member, mask));
  return masked;
}
