import { toWire } from "../wire/wire.ts";
import { isPlainJson, toJsonTextOrNone } from "./json-text.ts";

/**
 * Data as JSON writes it: a member that is undefined is left out, a date is text. That is what the schema of a tool describes;
 * only what JSON cannot hold at all takes its wire form.
 */
export function asJson(data: unknown): unknown {
  if (isPlainJson(data)) return data;
  const text = toJsonTextOrNone(data);
  return text === undefined ? toWire(data, { errors: false }) : JSON.parse(text);
}
