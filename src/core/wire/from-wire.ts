import { isPlainObject } from "../json/json-value.ts";
import { decodeBase64 } from "./base64.ts";
import { fromErrorPayload } from "./wire-error.ts";
import {
  type Convert,
  enter,
  mapItems,
  mapMembers,
  refuse,
  runWalk,
  WIRE_KEY,
  WIRE_LIMITS,
  type WireOptions,
  type WireWalk,
} from "./wire-walk.ts";

/** Turns what `toWire` made back into the value it was; throws nothing but `CallError`, whatever it is given. */
export function fromWire(value: unknown, options: WireOptions = {}): unknown {
  return runWalk(decode, value, options);
}

function decode(value: unknown, depth: number, walk: WireWalk): unknown {
  if (value === null) return null;
  switch (typeof value) {
    case "string":
    case "boolean":
    case "number":
      return value;
    case "object":
      return decodeObject(value, depth, walk);
    default:
      return refuse(walk, depth, "it is not JSON");
  }
}

function decodeObject(value: object, depth: number, walk: WireWalk): unknown {
  if (Array.isArray(value)) {
    enter(value, depth, walk);
    return mapItems(value, depth, walk, decode);
  }
  if (!isPlainObject(value)) return refuse(walk, depth, "it is not JSON");
  if (Object.hasOwn(value, WIRE_KEY)) return decodeTag(value, depth, walk);
  enter(value, depth, walk);
  return mapMembers(value, depth, walk, decode);
}

function decodeTag(value: Record<string, unknown>, depth: number, walk: WireWalk): unknown {
  const content = value[WIRE_KEY];
  if (Object.keys(value).length !== 1 || !Array.isArray(content)) return refuseTag(walk, depth);
  const [kind, payload] = content as readonly unknown[];
  if (kind === "undefined") return content.length === 1 ? undefined : refuseTag(walk, depth);
  const decodePayload = content.length === 2 ? DECODERS.get(kind) : undefined;
  return decodePayload === undefined ? refuseTag(walk, depth) : decodePayload(payload, depth, walk);
}

function refuseTag(walk: WireWalk, depth: number): never {
  return refuse(walk, depth, `its "${WIRE_KEY}" tag is malformed; write it with toWire`);
}

const NUMBERS = new Map<unknown, number>([
  ["NaN", Number.NaN],
  ["Infinity", Number.POSITIVE_INFINITY],
  ["-Infinity", Number.NEGATIVE_INFINITY],
  ["-0", -0],
]);

const BIGINT = /^(?:0|-?[1-9][0-9]*)$/;

const DECODERS = new Map<unknown, Convert>([
  ["number", (payload, depth, walk) => NUMBERS.get(payload) ?? refuseTag(walk, depth)],
  ["bigint", decodeBigint],
  ["date", decodeDate],
  ["bytes", decodeBytes],
  ["map", decodeMap],
  ["set", decodeSet],
  ["error", (payload, depth, walk) => fromErrorPayload(payload) ?? refuseTag(walk, depth)],
  ["object", decodeEscaped],
]);

function decodeBigint(payload: unknown, depth: number, walk: WireWalk): bigint {
  if (typeof payload !== "string" || payload.length > WIRE_LIMITS.bigintDigits) return refuseTag(walk, depth);
  return BIGINT.test(payload) ? BigInt(payload) : refuseTag(walk, depth);
}

function decodeDate(payload: unknown, depth: number, walk: WireWalk): Date {
  if (typeof payload !== "string") return refuseTag(walk, depth);
  const date = new Date(payload);
  // The parser takes far more than ISO 8601; only what it would write itself counts.
  const exact = !Number.isNaN(date.getTime()) && date.toISOString() === payload;
  return exact ? date : refuseTag(walk, depth);
}

function decodeBytes(payload: unknown, depth: number, walk: WireWalk): Uint8Array {
  const bytes = typeof payload === "string" ? decodeBase64(payload) : undefined;
  return bytes ?? refuseTag(walk, depth);
}

/** In one function, without `mapItems`: the deepest map allowed has to fit the stack, also where its frames are larger, as on Node 22. */
function decodeMap(payload: unknown, depth: number, walk: WireWalk): Map<unknown, unknown> {
  if (!Array.isArray(payload)) return refuseTag(walk, depth);
  enter(payload, depth, walk);
  const map = new Map<unknown, unknown>();
  for (let i = 0; i < payload.length; i++) {
    walk.path[depth] = i;
    const entry: unknown = payload[i];
    if (!Array.isArray(entry) || entry.length !== 2) return refuseTag(walk, depth + 1);
    map.set(decode(entry[0], depth + 1, walk), decode(entry[1], depth + 1, walk));
  }
  return map.size === payload.length ? map : refuseTag(walk, depth);
}

function decodeSet(payload: unknown, depth: number, walk: WireWalk): Set<unknown> {
  if (!Array.isArray(payload)) return refuseTag(walk, depth);
  enter(payload, depth, walk);
  const set = new Set(mapItems(payload, depth, walk, decode));
  return set.size === payload.length ? set : refuseTag(walk, depth);
}

/** An ordinary object that happens to have the reserved key; an escape around anything else is not ours. */
function decodeEscaped(payload: unknown, depth: number, walk: WireWalk): unknown {
  if (!isPlainObject(payload) || !Object.hasOwn(payload, WIRE_KEY)) return refuseTag(walk, depth);
  enter(payload, depth, walk);
  return mapMembers(payload, depth, walk, decode);
}
