import { isObject, isSchema, type JsonSchema } from "../../../core/schema/json-schema.ts";
import { parseSendableType } from "../../media-types.ts";
import { isFramingHeader, isHeaderValue, isToken } from "../header-rules.ts";
import type { EncodingPlan, MediaPlan, OperationPlan } from "../plan.ts";
import { followReference, isBinary } from "./binary-schema.ts";
import { separatorOf } from "./parameter-text.ts";

/** How one part of a multipart body is written. */
export interface PartRule {
  /** The type that the document gives it. */
  readonly declared?: string | undefined;
  /** Text is its bytes. */
  readonly isBinary: boolean;
  /** Text stands for bytes, such as base64. */
  readonly isEncoded: boolean;
  /** Header lines, each with its end. */
  readonly headers: string;
  /** Joins a list into one part; without it, each item is a part. */
  readonly separator?: string | undefined;
}

/** Gives the rule of a part: by its name, or by its place where parts have none. */
export type PartRules = (part: string | number) => PartRule;

/** Headers of a part that are written from the value. */
const OWN_HEADERS = new Set(["content-type", "content-disposition", "content-transfer-encoding"]);

const NO_RULE: PartRule = { isBinary: false, isEncoded: false, headers: "" };

/** Reads what is known of the parts of a body, once. */
export function createPartRules(
  media: MediaPlan | undefined,
  definitions: OperationPlan["definitions"],
): PartRules {
  const follow = (schema: unknown) => (isSchema(schema) ? followReference(schema, definitions) : undefined);
  const whole = follow(media?.schema);
  const {
    properties,
    prefixItems,
    items = media?.itemSchema,
  } = isObject(whole) ? whole : { properties: undefined, prefixItems: undefined };
  const schemas = isObject(properties) ? properties : {};
  const { encoding = {}, prefixEncoding = [], itemEncoding } = media ?? {};
  const named = new Map<string, PartRule>();
  for (const name of new Set([...Object.keys(schemas), ...Object.keys(encoding)])) {
    const schema = follow(Object.hasOwn(schemas, name) ? schemas[name] : undefined);
    const each = isObject(schema) && schema["type"] === "array" ? follow(schema["items"]) : schema;
    named.set(name, toRule(Object.hasOwn(encoding, name) ? encoding[name] : undefined, each));
  }
  const first: readonly unknown[] = Array.isArray(prefixItems) ? prefixItems : [];
  const rest = toRule(itemEncoding, follow(items));
  const placed = Array.from({ length: Math.max(first.length, prefixEncoding.length) }, (_, index) =>
    toRule(prefixEncoding[index] ?? itemEncoding, follow(first[index] ?? items)),
  );
  return (part) => (typeof part === "string" ? (named.get(part) ?? NO_RULE) : (placed[part] ?? rest));
}

function toRule(encoding: EncodingPlan = {}, schema: JsonSchema | undefined): PartRule {
  return {
    declared: concreteType(encoding.contentType),
    isBinary: isObject(schema) && isBinary(schema),
    isEncoded: isObject(schema) && typeof schema["contentEncoding"] === "string",
    headers: fixedHeaders(encoding),
    separator: partSeparator(encoding),
  };
}

/** Lists are repeated unless something is said about how they are written. */
function partSeparator({ style, explode, separator }: EncodingPlan): string | undefined {
  if (separator === undefined && style === undefined && explode === undefined) return undefined;
  const way = style ?? "form";
  return separatorOf({ style: way, explode: explode ?? way === "form", separator });
}

/** The first type of a list that is no range. */
function concreteType(contentType: string | undefined): string | undefined {
  const types = contentType?.split(",").map((each) => each.trim()) ?? [];
  return types.find((each) => parseSendableType(each) !== undefined && !each.includes("*"));
}

/** Headers that the document gives one value for; there is no other place to take them from. */
function fixedHeaders({ headers = {} }: EncodingPlan): string {
  let lines = "";
  for (const [name, schema] of Object.entries(headers)) {
    const lower = name.toLowerCase();
    const value = onlyValueOf(schema);
    if (!isToken(name) || OWN_HEADERS.has(lower) || isFramingHeader(lower)) continue;
    if (value !== undefined && isHeaderValue(value)) lines += `${name}: ${value}\r\n`;
  }
  return lines;
}

function onlyValueOf(schema: JsonSchema): string | undefined {
  if (!isObject(schema)) return undefined;
  const { const: only, default: otherwise, enum: several } = schema;
  const value =
    only ?? otherwise ?? (Array.isArray(several) && several.length === 1 ? several[0] : undefined);
  return ["string", "number", "boolean"].includes(typeof value) ? String(value) : undefined;
}
