import fc from "fast-check";

/** How deep a sample goes before optional parts are left out. */
const DEPTH = 12;

/** How many parts a sample has before it is broken off: schemas that need themselves have no end. */
const PARTS = 5_000;
let left = 0;

const FORMATS = {
  "date-time": "2024-05-06T07:08:09Z",
  date: "2024-05-06",
  time: "07:08:09Z",
  duration: "P1D",
  email: "someone@example.com",
  "idn-email": "someone@example.com",
  hostname: "example.com",
  ipv4: "192.0.2.1",
  ip: "192.0.2.1",
  ipv6: "2001:db8::1",
  uri: "https://example.com/a",
  url: "https://example.com/a",
  "uri-reference": "/a",
  uuid: "123e4567-e89b-42d3-a456-426614174000",
  byte: "aGVsbG8=",
  base64: "aGVsbG8=",
};

/**
 * Makes a value for a schema of OpenAPI 2.0 to 3.2 or JSON Schema; `resolve` follows a reference. It tries to be right, and
 * nothing here knows how Waybill reads schemas.
 */
export function sampleValue(schema, resolve, direction, depth = 0) {
  left = depth === 0 ? PARTS : left - 1;
  const flat = flatten(schema, resolve, direction, depth);
  if (flat === true || typeof flat !== "object" || flat === null) return "sample";
  if ("const" in flat) return flat.const;
  if (Array.isArray(flat.enum) && flat.enum.length > 0) return fittingEnum(flat);
  switch (typeOf(flat)) {
    case "object":
      return sampleObject(flat, resolve, direction, depth);
    case "array":
      return sampleArray(flat, resolve, direction, depth);
    case "integer":
      return sampleNumber(flat, true);
    case "number":
      return sampleNumber(flat, false);
    case "boolean":
      return true;
    case "null":
      return null;
    default:
      return sampleString(flat);
  }
}

/** Several types may be allowed, and an enum may hold values of none of them. */
function fittingEnum({ enum: values, type }) {
  const types = [type ?? []].flat();
  const fits = (value) =>
    types.length === 0 ||
    types.includes(value === null ? "null" : Array.isArray(value) ? "array" : typeof value) ||
    (types.includes("integer") && Number.isInteger(value));
  return values.find((value) => value !== null && fits(value)) ?? values[0];
}

/** Follows references and puts `allOf` and the first of `oneOf` and `anyOf` into one schema. */
function flatten(schema, resolve, direction, depth, seen = new Set()) {
  left -= 1;
  if (left <= 0 || typeof schema !== "object" || schema === null) return schema !== false;
  let flat = schema;
  if (typeof flat.$ref === "string") {
    if (seen.has(flat.$ref)) return true;
    const { $ref, ...rest } = flat;
    const target = flatten(resolve($ref), resolve, direction, depth, new Set([...seen, $ref]));
    flat = merge(typeof target === "object" && target !== null ? target : {}, rest);
  }
  for (const part of Array.isArray(flat.allOf) ? flat.allOf : []) {
    const { allOf, ...rest } = flat;
    flat = merge(rest, flatten(part, resolve, direction, depth, seen));
    if (allOf) delete flat.allOf;
  }
  for (const keyword of ["oneOf", "anyOf"]) {
    const choices = flat[keyword];
    if (!Array.isArray(choices) || choices.length === 0) continue;
    const { [keyword]: _, ...rest } = flat;
    const flats = choices.map((choice) => flatten(choice, resolve, direction, depth + 1, seen));
    const chosen = flats.find((choice) => choice?.type !== "null" && choice !== true) ?? flats[0];
    flat = merge(rest, chosen);
  }
  return flat;
}

function merge(a, b) {
  if (typeof b !== "object" || b === null) return a;
  const both = { ...a, ...b };
  if (a.properties || b.properties) {
    both.properties = { ...a.properties };
    for (const [name, schema] of Object.entries(b.properties ?? {})) {
      const before = Object.hasOwn(both.properties, name) ? both.properties[name] : undefined;
      both.properties[name] = before && typeof before === "object" ? { allOf: [before, schema] } : schema;
    }
  }
  const required = [a.required, b.required].filter(Array.isArray).flat();
  if (required.length > 0) both.required = [...new Set(required)];
  if (Array.isArray(a.enum) && Array.isArray(b.enum)) {
    const shared = a.enum.filter((value) => b.enum.includes(value));
    if (shared.length > 0) both.enum = shared;
  }
  for (const keyword of ["minimum", "minLength", "minItems", "minProperties"]) {
    if (typeof a[keyword] === "number" && typeof b[keyword] === "number")
      both[keyword] = Math.max(a[keyword], b[keyword]);
  }
  return both;
}

function typeOf(flat) {
  const types = [flat.type ?? []].flat().filter((type) => type !== "null");
  if (types.length > 0) return types[0];
  if (flat.type === "null" || (Array.isArray(flat.type) && flat.type.includes("null"))) return "null";
  if (flat.properties || flat.additionalProperties || flat.required) return "object";
  if (flat.items || flat.prefixItems) return "array";
  if (["minimum", "maximum", "multipleOf"].some((keyword) => keyword in flat)) return "number";
  return "string";
}

function sampleObject(flat, resolve, direction, depth) {
  const properties = flat.properties ?? {};
  const required = Array.isArray(flat.required) ? flat.required : [];
  const value = {};
  for (const name of required) {
    const schema = Object.hasOwn(properties, name) ? properties[name] : (flat.additionalProperties ?? true);
    if (schema === false) continue;
    Object.defineProperty(value, name, {
      value: sampleValue(schema, resolve, direction, depth + 1),
      enumerable: true,
      writable: true,
      configurable: true,
    });
    if (depth > DEPTH * 2 || left <= 0) break;
  }
  const wanted = Math.min(flat.minProperties ?? 0, 50);
  for (const name of Object.keys(properties)) {
    const isEnough = Object.keys(value).length >= wanted;
    if (isEnough && (depth > 0 || direction === "request")) break;
    if (!Object.hasOwn(value, name) && isShown(properties[name], direction) && depth < DEPTH)
      value[name] = sampleValue(properties[name], resolve, direction, depth + 1);
  }
  // An object that is a parameter would be sent as nothing at all.
  const [first] = Object.keys(properties);
  if (direction === "request" && depth === 1 && first !== undefined && Object.keys(value).length === 0)
    value[first] = sampleValue(properties[first], resolve, direction, depth + 1);
  for (let n = 0; Object.keys(value).length < wanted; n++) {
    const extra = typeof flat.additionalProperties === "object" ? flat.additionalProperties : true;
    value[`key${n}`] = sampleValue(extra, resolve, direction, depth + 1);
  }
  return value;
}

function isShown(schema, direction) {
  if (typeof schema !== "object" || schema === null) return true;
  return direction === "request" ? schema.readOnly !== true : schema.writeOnly !== true;
}

function sampleArray(flat, resolve, direction, depth) {
  const items = Array.isArray(flat.prefixItems) ? flat.prefixItems : [];
  const least = Math.min(flat.minItems ?? 0, 200);
  const isWanted = direction === "response" ? depth < 4 : depth < 2;
  const count = Math.max(least, items.length, isWanted && flat.maxItems !== 0 ? 1 : 0);
  return Array.from({ length: left <= 0 ? 0 : count }, (_, index) => {
    const item = sampleValue(items[index] ?? flat.items ?? true, resolve, direction, depth + 1);
    if (flat.uniqueItems !== true || index === 0) return item;
    return typeof item === "number" ? item + index : typeof item === "string" ? `${item}${index}` : item;
  });
}

function sampleNumber(flat, isWhole) {
  const step = typeof flat.multipleOf === "number" && flat.multipleOf > 0 ? flat.multipleOf : undefined;
  let low = Number(flat.minimum ?? Number.NEGATIVE_INFINITY);
  let high = Number(flat.maximum ?? Number.POSITIVE_INFINITY);
  if (typeof flat.exclusiveMinimum === "number")
    low = Math.max(low, flat.exclusiveMinimum + (isWhole ? 1 : 1e-6));
  if (flat.exclusiveMinimum === true) low += isWhole ? 1 : 1e-6;
  if (typeof flat.exclusiveMaximum === "number")
    high = Math.min(high, flat.exclusiveMaximum - (isWhole ? 1 : 1e-6));
  if (flat.exclusiveMaximum === true) high -= isWhole ? 1 : 1e-6;
  let value = Math.min(Math.max(low, 1), high);
  if (isWhole) value = Math.ceil(value) <= high ? Math.ceil(value) : Math.floor(value);
  return step === undefined ? value : Math.ceil(value / step) * step;
}

function sampleString(flat) {
  if (typeof flat.pattern === "string") {
    const found = samplePattern(flat);
    if (found !== undefined) return found;
  }
  const least = flat.minLength ?? 0;
  const most = flat.maxLength ?? Number.POSITIVE_INFINITY;
  const format = Object.hasOwn(FORMATS, flat.format) ? FORMATS[flat.format] : undefined;
  const text = format ?? "sample";
  if (text.length >= least && text.length <= most) return text;
  return text.length > most ? text.slice(0, Math.max(most, 0)) : text.padEnd(Math.min(least, 100_000), "x");
}

/** A repetition of nothing but a repetition, which the platform's engine may take for ever over. */
const NESTED = /\((?:\?:)?(?:\[[^\]]*\]|\\?.)[*+]\)[*+{]/;

function samplePattern(flat) {
  const { pattern: text, minLength = 0, maxLength = 1e6 } = flat;
  const isNested = NESTED.test(text);
  for (const flags of ["u", ""]) {
    try {
      const pattern = new RegExp(text, flags);
      const isLong = (value) => value.length >= minLength && value.length <= maxLength;
      const fits = (value) => isLong(value) && (isNested || pattern.test(value));
      const told = [flat.example, flat.default, "sample", "1", "a", "A", "a.bc"];
      const simple = told.find(
        (value) => typeof value === "string" && value !== "" && !isNested && fits(value),
      );
      if (simple !== undefined) return simple;
      // What may stand in front of the rest is left out: it makes most samples too long.
      const drawn = fc.sample(fc.stringMatching(new RegExp(text.replace(/^\^?\.\*/, ""), flags)), DRAWS);
      return drawn.find((value) => value !== "" && fits(value)) ?? lengthened(drawn, minLength, fits);
    } catch {
      // Not a pattern in this mode.
    }
  }
  return undefined;
}

const DRAWS = { numRuns: 200, seed: 7 };

/** Long texts are seldom drawn: repeats a character of a short one until it is long enough. */
function lengthened(drawn, least, fits) {
  for (const text of drawn.slice(0, 50)) {
    const missing = least - text.length;
    if (missing <= 0) continue;
    for (let at = 1; at <= text.length; at++) {
      const longer = text.slice(0, at) + text.charAt(at - 1).repeat(missing) + text.slice(at);
      if (fits(longer)) return longer;
    }
  }
  return undefined;
}
