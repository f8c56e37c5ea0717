import { parseJsonTextOrNone } from "../../core/json/json-text.ts";
import type { JsonSchema, JsonSchemaObject } from "../../core/schema/json-schema.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { CommandError } from "../io.ts";
import { partsOf, typesOf } from "./input-schema.ts";
import { parseGivenJson } from "./parse-json.ts";

/**
 * Turns the text of `key=text` into the value that the schema there asks for. What fits no type stays text, so that the call says
 * what is wrong with it.
 */
export function valueOfText(
  text: string,
  parts: readonly JsonSchemaObject[],
  root: JsonSchema,
  key: string,
): unknown {
  const listed = listedValue(text, parts);
  if (listed !== undefined) return listed.value;
  const types = typesOf(parts);
  if (types.size === 0) return guessedValue(text);
  if (types.has("null") && text === "null") return null;
  if (types.has("boolean") && (text === "true" || text === "false")) return text === "true";
  if ((types.has("number") || types.has("integer")) && isNumber(text)) return numberOf(text, types, key);
  if (types.has("object") && text.startsWith("{")) return parseGivenJson(text, `The value of "${key}"`);
  if (types.has("array")) return listOf(text, parts, root, key);
  return text;
}

/** A value that `enum` or `const` names. */
function listedValue(
  text: string,
  parts: readonly JsonSchemaObject[],
): { readonly value: unknown } | undefined {
  const values = parts.flatMap((part) => {
    const { enum: listed } = part;
    return [
      ...(Array.isArray(listed) ? listed : []),
      ...(Object.hasOwn(part, "const") ? [part["const"]] : []),
    ];
  });
  const exact = values.find((value) => value === text);
  const found = exact ?? values.find((value) => typeof value !== "object" && String(value) === text);
  return found === undefined ? undefined : { value: found };
}

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

function isNumber(text: string): boolean {
  return NUMBER.test(text.trim());
}

function numberOf(text: string, types: ReadonlySet<string>, key: string): unknown {
  const value = Number(text);
  if (/^-?\d+$/.test(text.trim()) && !Number.isSafeInteger(value)) {
    if (types.has("string")) return text;
    throw new CommandError(
      `"${safeLine(key, 80)}" is ${safeLine(text, 40)}, which a number cannot hold exactly.`,
    );
  }
  return value;
}

/** Where nothing is known: JSON when it is JSON, else text. */
function guessedValue(text: string): unknown {
  if (/^[[{]/.test(text) || isNumber(text) || /^(?:true|false|null)$/.test(text)) {
    const value = parseJsonTextOrNone(text);
    const isExact = typeof value !== "number" || Number.isSafeInteger(value) || !/^-?\d+$/.test(text);
    if (value !== undefined && isExact) return value;
  }
  return text;
}

/** A list is written as JSON, or as the only one of its items. */
function listOf(text: string, parts: readonly JsonSchemaObject[], root: JsonSchema, key: string): unknown {
  if (text.startsWith("[")) return parseGivenJson(text, `The value of "${key}"`);
  if (typesOf(parts).has("string")) return text;
  return [itemOf(text, parts, root, key)];
}

/** One item of a list. */
export function itemOf(
  text: string,
  parts: readonly JsonSchemaObject[],
  root: JsonSchema,
  key: string,
): unknown {
  const items = parts.flatMap(({ items, prefixItems }) => {
    const first = Array.isArray(prefixItems) ? prefixItems[0] : Array.isArray(items) ? items[0] : items;
    return partsOf(first, root);
  });
  return valueOfText(text, items, root, key);
}

/** Tells whether text there stands for bytes, and how they are written. */
export function bytesForm(parts: readonly JsonSchemaObject[]): "text" | "object" | undefined {
  if (parts.some(({ contentEncoding, format }) => contentEncoding === "base64" || format === "byte"))
    return "text";
  const takesBytes = parts.some(
    ({ format, description }) =>
      format === "binary" ||
      (typeof description === "string" && description.startsWith("Bytes: a Uint8Array")),
  );
  return takesBytes ? "object" : undefined;
}
