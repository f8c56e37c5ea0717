import { isObject } from "../../../core/schema/json-schema.ts";
import { showCount } from "../parts/show.ts";
import { listIn, membersIn, shortJson } from "../parts/show-json.ts";
import type { Field, FieldFacts, ListField, Member, ObjectField, TextField } from "./field.ts";
import { flattenSchema, remember } from "./flatten-schema.ts";
import { type FormObject, showShort } from "./form-json.ts";
import { FILE_OBJECT, readChoices, readTypes } from "./read-variants.ts";

/** A schema that is its own only alternative would be read for ever. */
const DEEPEST = 20;
let depth = 0;

/**
 * Reads one place of a schema. What is below it is read when it is drawn, so that a schema may be endless; the same schema gives the
 * same field every time.
 */
export const readSchema: (schema: unknown, root: unknown) => Field = remember(buildField);

function buildField(schema: unknown, root: unknown): Field {
  const flat = flattenSchema(schema, root);
  const keywords = flat?.keywords ?? {};
  const facts = factsOf(keywords);
  if (flat === undefined) return { ...facts, kind: "never" };
  if (schema === FILE_OBJECT) return { ...facts, kind: "file", isNamed: true };
  if (depth >= DEEPEST) return { ...facts, kind: "json" };
  if (Object.hasOwn(keywords, "const")) return { ...facts, kind: "fixed", value: keywords["const"] };
  if (Array.isArray(keywords["enum"])) return readEnum(facts, keywords["enum"]);
  depth += 1;
  const field = readChoices(flat, { facts, root, read: readSchema });
  depth -= 1;
  return field ?? readTyped(keywords, facts, root);
}

function factsOf(keywords: FormObject): FieldFacts {
  const { title, description, example, examples, deprecated, nullable } = keywords;
  return {
    ...(typeof title === "string" && title.trim() !== "" && { title }),
    ...(typeof description === "string" && description.trim() !== "" && { description }),
    isDeprecated: deprecated === true,
    isNullable: nullable === true,
    ...(Object.hasOwn(keywords, "default") && { default: { value: keywords["default"] } }),
    examples: Array.isArray(examples) ? examples.slice(0, 20) : example === undefined ? [] : [example],
    hints: hintsOf(keywords),
  };
}

function readEnum(facts: FieldFacts, values: readonly unknown[]): Field {
  const isNullable = facts.isNullable || values.includes(null);
  const rest = values.filter((value) => value !== null);
  if (values.length === 0) return { ...facts, kind: "never" };
  if (values.length === 1 && !facts.isNullable) return { ...facts, kind: "fixed", value: values[0] };
  // Quotes tell texts from others, where there are both.
  const areTexts = rest.every((value) => typeof value === "string" && value !== "");
  const options = rest.map((value) => ({
    label: areTexts ? showShort(value) : shortJson(value, 80),
    value,
  }));
  return { ...facts, kind: "choice", isNullable, options };
}

function readTyped(keywords: FormObject, given: FieldFacts, root: unknown): Field {
  const types = schemaTypes(keywords);
  const facts = { ...given, isNullable: given.isNullable || types.includes("null") };
  const rest = types.filter((type) => type !== "null");
  const [type] = rest;
  if (rest.length > 1) return readTypes(keywords, rest, facts);
  switch (type) {
    case "object":
      return readObject(keywords, facts, root);
    case "array":
      return readList(keywords, facts);
    case "string":
      return readText(keywords, facts);
    case "number":
    case "integer":
      return { ...facts, kind: "number", isInteger: type === "integer", start: startOf(keywords) };
    case "boolean":
      return { ...facts, kind: "boolean" };
    default:
      return types.length > 0 && type === undefined
        ? { ...facts, kind: "fixed", value: null }
        : { ...facts, kind: "json" };
  }
}

/** Keywords that tell the type where none is named. */
const SIGNS: readonly (readonly [type: string, keywords: RegExp])[] = [
  ["object", /^(properties|patternProperties|additionalProperties|required|propertyNames)$/],
  ["array", /^(items|prefixItems|m(in|ax)Items)$/],
  ["string", /^(m(in|ax)Length|pattern|format|content(Encoding|MediaType))$/],
  ["number", /^(minimum|maximum|multipleOf|exclusiveM(in|ax)imum)$/],
];

/** The types that are named, or the one that the rules are about. */
export function schemaTypes(keywords: FormObject): readonly string[] {
  const named = new Set([keywords["type"]].flat().filter((type) => typeof type === "string"));
  if (named.has("number")) named.delete("integer");
  if (named.size > 0) return [...named];
  const names = Object.keys(keywords);
  return SIGNS.filter(([, signs]) => names.some((name) => signs.test(name)))
    .slice(0, 1)
    .map(([type]) => type);
}

function startOf({ minimum, maximum, exclusiveMinimum }: FormObject): number {
  if (typeof exclusiveMinimum === "number" && exclusiveMinimum >= 0) return exclusiveMinimum + 1;
  if (typeof minimum === "number" && minimum > 0) return minimum;
  return typeof maximum === "number" && maximum < 0 ? maximum : 0;
}

function readObject(keywords: FormObject, facts: FieldFacts, root: unknown): ObjectField {
  const { additionalProperties, patternProperties } = keywords;
  const properties = membersIn(keywords["properties"]);
  const required = new Set(listIn(keywords["required"]));
  const others = othersOf(keywords);
  const members: Member[] = Object.entries(properties)
    // Those that are only in answers are left out.
    .filter(([, schema]) => schema !== false && flattenSchema(schema, root)?.keywords["readOnly"] !== true)
    .map(([name, schema]) => ({ name, schema, isRequired: required.has(name) }));
  for (const name of required) {
    if (typeof name === "string" && !Object.hasOwn(properties, name)) {
      members.push({ name, schema: others, isRequired: true });
    }
  }
  const isSaid = (additionalProperties ?? false) !== false || isObject(patternProperties);
  // One that names no members, and does not say that there are none, is for any.
  const isFree = members.length === 0 && (keywords["properties"] ?? additionalProperties) === undefined;
  return {
    ...facts,
    kind: "object",
    members,
    known: new Set(members.map(({ name }) => name)),
    others,
    isOpen: isSaid || isFree,
  };
}

/** Patterns are never run: one made for it would stop the page. Any of their schemas may hold. */
function othersOf({ additionalProperties, patternProperties }: FormObject): unknown {
  const patterns = isObject(patternProperties) ? Object.values(patternProperties) : [];
  const others = isObject(additionalProperties) ? [...patterns, additionalProperties] : patterns;
  if (others.length === 0 || additionalProperties === true) return true;
  return others.length === 1 ? others[0] : { anyOf: others };
}

function readList(keywords: FormObject, facts: FieldFacts): ListField {
  const { items, prefixItems, additionalItems, minItems, maxItems } = keywords;
  const places = Array.isArray(items) ? items : prefixItems;
  const first = listIn(places);
  const rest = Array.isArray(items) ? additionalItems : items;
  const most = typeof maxItems === "number" ? maxItems : Number.POSITIVE_INFINITY;
  return {
    ...facts,
    kind: "list",
    first,
    items: rest ?? true,
    min: typeof minItems === "number" ? minItems : 0,
    max: rest === false ? Math.min(first.length, most) : most,
  };
}

/** Texts that may be longer get more than a line. */
const LINE = 200;

const FILES = /^(application\/(octet-stream|pdf|zip|gzip)$|(audio|font|image|video)\/)/i;

const TYPES = new Map<unknown, TextField["type"]>([
  ["password", "password"],
  ["date", "date"],
  ["email", "email"],
  ["uri", "url"],
  ["url", "url"],
]);

/** Reads what kind of text is asked for. */
function readText(keywords: FormObject, facts: FieldFacts): Field {
  const { format, contentEncoding, contentMediaType, maxLength, pattern, writeOnly } = keywords;
  const media = typeof contentMediaType === "string" ? contentMediaType : "";
  if (
    String(contentEncoding).toLowerCase() === "base64" ||
    format === "binary" ||
    format === "byte" ||
    (contentEncoding === undefined && FILES.test(media))
  ) {
    const isType = /^[\w.+-]+\/[\w.+*-]+$/.test(media);
    return { ...facts, kind: "file", isNamed: false, ...(isType && { accept: media }) };
  }
  const type = writeOnly === true ? "password" : (TYPES.get(format) ?? "text");
  const isShort = typeof maxLength === "number" && maxLength <= LINE;
  return {
    ...facts,
    kind: "text",
    type,
    mayBreak: type === "text" && !isShort && format === undefined && pattern === undefined,
    ...(format === "date-time" && facts.examples.length === 0 && { examples: [new Date().toISOString()] }),
  };
}

/** Formats that inputs of their own show. */
const SEEN = /^(|date|password|binary|byte)$/;

/** Says the rules of a schema in words. */
export function hintsOf(keywords: FormObject): readonly string[] {
  const { pattern, format, multipleOf, uniqueItems, default: preset } = keywords;
  const { minimum, maximum, exclusiveMinimum: above, exclusiveMaximum: below } = keywords;
  return [
    between(keywords["minLength"], keywords["maxLength"], "character"),
    // Draft 4 says with `true` that a limit itself is out.
    above === true ? limit("more than", minimum) : limit("more than", above),
    below === true ? limit("less than", maximum) : limit("less than", below),
    between(above === true ? undefined : minimum, below === true ? undefined : maximum),
    multipleOf === 1 ? "" : limit("a multiple of", multipleOf),
    between(keywords["minItems"], keywords["maxItems"], "item"),
    uniqueItems === true ? "no item twice" : "",
    between(keywords["minProperties"], keywords["maxProperties"], "member"),
    typeof format === "string" && !SEEN.test(format) ? `format ${showShort(format)}` : "",
    typeof pattern === "string" ? `pattern ${showShort(pattern, 200)}` : "",
    Object.hasOwn(keywords, "default") ? `default ${preset === "" ? "empty text" : showShort(preset)}` : "",
  ].filter((hint) => hint !== "");
}

function limit(words: string, value: unknown, noun?: string): string {
  if (typeof value !== "number") return "";
  return `${words} ${noun === undefined ? value : showCount(value, noun)}`.trim();
}

/** No count is less than nothing. */
function between(min: unknown, max: unknown, noun?: string): string {
  const least = noun !== undefined && min === 0 ? undefined : min;
  if (typeof least !== "number") return limit("at most", max, noun);
  if (typeof max !== "number") return limit("at least", least, noun);
  return limit(least === max ? "exactly" : `${least} to`, max, noun);
}
