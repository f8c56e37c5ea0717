import { isPlainObject, type JsonValue } from "../json/json-value.ts";
import { encodeBase64 } from "./base64.ts";
import { toErrorPayload } from "./wire-error.ts";
import {
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

/**
 * Turns a value into plain JSON that `fromWire` turns back: bytes, bigints, dates, maps, sets, `undefined`, `NaN`,
 * the infinities, `-0` and errors become tagged objects. The same object comes back when nothing needs changing. An
 * instance goes as its `toJSON()`, else as its own fields; symbol keys are left out, as JSON does. Of an error that is no
 * `CallError` its name and message go, never its stack or cause. Functions, symbols, cycles and objects with no fields to
 * show are refused.
 */
export function toWire(value: unknown, options: WireOptions = {}): JsonValue {
  return runWalk(encode, value, options) as JsonValue;
}

function tag(kind: string, ...payload: readonly unknown[]): object {
  return { [WIRE_KEY]: [kind, ...payload] };
}

function encode(value: unknown, depth: number, walk: WireWalk): unknown {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      return encodeNumber(value);
    case "undefined":
      return tag("undefined");
    case "bigint":
      return encodeBigint(value, depth, walk);
    case "object":
      return value === null ? null : encodeObject(value, depth, walk);
    case "function":
      return refuse(walk, depth, "it is a function; send what it returns, or leave it out");
    case "symbol":
      return refuse(walk, depth, "it is a symbol; send a string instead");
  }
}

function encodeNumber(value: number): unknown {
  if (Object.is(value, -0)) return tag("number", "-0");
  return Number.isFinite(value) ? value : tag("number", String(value));
}

function encodeBigint(value: bigint, depth: number, walk: WireWalk): unknown {
  const text = String(value);
  if (text.length > WIRE_LIMITS.bigintDigits) {
    refuse(walk, depth, `it is a bigint of more than ${WIRE_LIMITS.bigintDigits} digits; send it as bytes`);
  }
  return tag("bigint", text);
}

function encodeObject(value: object, depth: number, walk: WireWalk): unknown {
  const builtIn = encodeBuiltIn(value, depth, walk);
  if (builtIn !== undefined) return builtIn;
  const { toJSON } = value as { toJSON?: unknown };
  if (typeof toJSON !== "function") return encodeFields(value, depth, walk, false);
  const json: unknown = toJSON.call(value, String(walk.path[depth - 1] ?? ""));
  if (typeof json !== "object" || json === null) return encode(json, depth, walk);
  // Asked once, as JSON does; a copy, so that writing the text does not ask again.
  return encodeBuiltIn(json, depth, walk) ?? encodeFields(json, depth, walk, true);
}

/** Encodes what the language itself defines; undefined for everything else. */
function encodeBuiltIn(value: object, depth: number, walk: WireWalk): unknown {
  if (isPlainObject(value) || Array.isArray(value)) return undefined;
  if (value instanceof Date) return encodeDate(value, depth, walk);
  if (value instanceof ArrayBuffer) return tag("bytes", encodeBase64(new Uint8Array(value)));
  if (ArrayBuffer.isView(value)) {
    return tag("bytes", encodeBase64(new Uint8Array(value.buffer, value.byteOffset, value.byteLength)));
  }
  if (value instanceof Map) {
    enter(value, depth, walk);
    return tag("map", mapItems([...value], depth, walk, encodeEntry));
  }
  if (value instanceof Set) {
    enter(value, depth, walk);
    return tag("set", mapItems([...value], depth, walk, encode));
  }
  if (!(value instanceof Error)) return undefined;
  if (walk.errors) return tag("error", toErrorPayload(value));
  return refuse(walk, depth, "it is an error; throw it, or send its message as a string");
}

function encodeDate(value: Date, depth: number, walk: WireWalk): unknown {
  if (Number.isNaN(value.getTime())) refuse(walk, depth, "it is an invalid date; send null instead");
  return tag("date", Date.prototype.toISOString.call(value));
}

/** A key and its value share the depth of their map. */
function encodeEntry(entry: unknown, depth: number, walk: WireWalk): unknown {
  const [key, value] = entry as [unknown, unknown];
  return [encode(key, depth, walk), encode(value, depth, walk)];
}

function encodeFields(value: object, depth: number, walk: WireWalk, copy: boolean): unknown {
  enter(value, depth, walk);
  if (Array.isArray(value)) return mapItems(value, depth, walk, encode, copy);
  const source = value as Record<string, unknown>;
  const instance = !isPlainObject(value);
  if (typeof Blob !== "undefined" && value instanceof Blob) {
    refuse(walk, depth, "it is a Blob; send its bytes, new Uint8Array(await blob.arrayBuffer())");
  }
  if (instance && Object.keys(source).length === 0) {
    refuse(walk, depth, "it is an object without fields to show; give it a toJSON method");
  }
  const members = mapMembers(source, depth, walk, encode, copy || instance);
  return Object.hasOwn(source, WIRE_KEY) ? tag("object", members) : members;
}
