import { type ResponseEnvelope, rawData } from "../../core/envelope/envelope.ts";
import { toJsonTextOrNone } from "../../core/json/json-text.ts";
import { isEqual } from "../../core/schema/compare-values.ts";
import { measureJson } from "./measure-json.ts";
import { MEASURED_TIMES, type WrittenJson, writtenJson } from "./written-json.ts";

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
    const text = toJsonTextOrNone(view) ?? inPieces(data, meta, before, limit);
    if (text === undefined) return { omitted: "not-json" };
    if (text.length <= limit) return { text };
    return before === undefined
      ? { omitted: "too-long", characters: text.length }
      : withoutRaw(data, meta, limit);
  } catch {
    return { omitted: "not-json" };
  }
}

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
function withoutRaw(data: unknown, meta: unknown, limit: number): WrittenJson {
  const text = toJsonTextOrNone({ envelope: { data, meta } }) ?? inPieces(data, meta, undefined, limit);
  if (text === undefined) return { omitted: "not-json" };
  return text.length > limit ? { omitted: "too-long", characters: text.length } : { text };
}

/** Data that JSON cannot hold takes its wire form by itself; what is said about it is ours, and stays as it is. */
function inPieces(
  data: unknown,
  meta: unknown,
  before: Replaced | undefined,
  limit: number,
): string | undefined {
  const shown = writtenJson(data, limit);
  const raw = before && writtenJson(before.value, limit);
  if (!("text" in shown)) return undefined;
  const rest = raw !== undefined && "text" in raw ? `,"rawData":${raw.text}` : "";
  return `{"envelope":{"data":${shown.text},"meta":${JSON.stringify(meta)}}${rest}}`;
}
