import { createHash } from "node:crypto";
import { setOwn } from "../../../core/json/json-value.ts";
import {
  isObject,
  type JsonSchema,
  type JsonSchemaObject,
  subschemasOf,
} from "../../../core/schema/json-schema.ts";
import {
  changeReferences,
  isResource,
  movedReference,
  rewriteSchema,
} from "../../../core/schema/rewrite-schema.ts";
import { findReference, jsonTypeOf } from "../../../core/schema/schema-view.ts";
import { spelledOut, toPortableSchema } from "./portable-schema.ts";

/** How input reaches an operation: as the arguments themselves, or as their one member `input`. */
export interface ServedInput {
  readonly schema: JsonSchemaObject;
  /** Whether the input is the member `input` of the arguments, because it need not be an object. */
  readonly wrapped: boolean;
}

const ANY_OBJECT: JsonSchemaObject = Object.freeze({ type: "object" });

/** The kinds of JSON values a schema may accept; a schema that does not say accepts all of them. */
type Kinds = ReadonlySet<string>;

const ALL: Kinds = new Set(["object", "array", "string", "number", "boolean", "null"]);
const NONE: Kinds = new Set();
const OBJECT: Kinds = new Set(["object"]);

/** A schema that speaks of members means objects, whatever else the letter of it lets through. */
const OBJECT_KEYWORDS = [
  "properties",
  "required",
  "additionalProperties",
  "patternProperties",
  "propertyNames",
  "minProperties",
  "maxProperties",
  "dependentRequired",
  "dependentSchemas",
  "unevaluatedProperties",
];

/**
 * The input schema of a tool, whose root MCP wants to be an object: a schema for objects is served as it is, one that says
 * nothing about the kind of value becomes one for objects, and one that takes other kinds of values too is wrapped.
 */
export function toServedInput(json: JsonSchema | undefined): ServedInput {
  if (json === undefined || json === true) return { schema: ANY_OBJECT, wrapped: false };
  if (json === false) return { schema: { type: "object", not: {} }, wrapped: false };
  // Clients do not compile what describes their own input, so it may say what it is written in.
  const modern = withMembersSpelledOut(toModernSchema(json));
  if (modern["type"] === "object") return { schema: modern, wrapped: false };
  const kinds = kindsOf(modern, { root: modern, byKeyword: true }, 0);
  if (kinds.size === ALL.size || (kinds.size === 1 && kinds.has("object"))) {
    return { schema: { ...modern, type: "object" }, wrapped: false };
  }
  return { schema: embedSchema(modern, "input"), wrapped: true };
}

/** Clients of the first SDK lose the whole list over a member whose schema is a boolean. */
function withMembersSpelledOut(schema: JsonSchemaObject): JsonSchemaObject {
  const { properties } = schema;
  if (!isObject(properties) || Object.values(properties).every(isObject)) return schema;
  const members: Record<string, unknown> = {};
  for (const name of Object.keys(properties)) {
    setOwn(members, name, spelledOut(properties[name] as JsonSchema));
  }
  return { ...schema, properties: members };
}

/**
 * The output schema of a tool. Clients compile it, some of them all of a list at once, and throw away results that miss it: what
 * their validators would refuse or read otherwise is loosened. 2025 clients want an object at its root: for them any other is
 * wrapped as `{ result }`, which is what the SDK makes of the results then.
 */
export function toServedOutput(
  json: JsonSchema | undefined,
  era: "legacy" | "modern",
): JsonSchemaObject | undefined {
  const natural = toNaturalOutput(json);
  if (natural === undefined || era === "modern") return natural;
  const loose = toPortableOrNone(natural, "legacy");
  return loose === undefined || natural["type"] === "object" ? loose : embedSchema(loose, "result");
}

/** The output schema before any wrapping, with a root that says `object` where it can accept nothing else. */
export function toNaturalOutput(json: JsonSchema | undefined): JsonSchemaObject | undefined {
  if (json === undefined || typeof json === "boolean") return undefined;
  const modern = toPortableOrNone(json, "modern");
  if (modern === undefined || modern["type"] !== undefined) return modern;
  // Adding a type must not refuse what was accepted, so only what is said outright counts.
  const kinds = kindsOf(modern, { root: modern, byKeyword: false }, 0);
  return kinds.size === 1 && kinds.has("object") ? { ...modern, type: "object" } : modern;
}

function toPortableOrNone(schema: JsonSchemaObject, era: "legacy" | "modern"): JsonSchemaObject | undefined {
  try {
    return toPortableSchema(schema, era);
  } catch {
    return undefined;
  }
}

/** Where references are looked up, and whether speaking of members counts as meaning objects. */
interface Reading {
  readonly root: JsonSchemaObject;
  readonly byKeyword: boolean;
}

const MAX_DEPTH = 32;

function kindsOf(schema: unknown, reading: Reading, depth: number): Kinds {
  if (schema === false) return NONE;
  if (!isObject(schema) || depth > MAX_DEPTH) return ALL;
  let kinds = ownKinds(schema);
  const both = (others: Kinds): void => {
    kinds = intersect(kinds, others);
  };
  if (typeof schema["$ref"] === "string")
    both(kindsOf(findReference(schema["$ref"], reading.root), reading, depth + 1));
  for (const branch of listOf(schema["allOf"])) both(kindsOf(branch, reading, depth + 1));
  for (const keyword of ["anyOf", "oneOf"]) {
    const branches = listOf(schema[keyword]);
    if (branches.length > 0) both(union(branches.map((branch) => kindsOf(branch, reading, depth + 1))));
  }
  const isObjects = reading.byKeyword && kinds.size === ALL.size;
  return isObjects && OBJECT_KEYWORDS.some((word) => schema[word] !== undefined) ? OBJECT : kinds;
}

function ownKinds(schema: Readonly<Record<string, unknown>>): Kinds {
  const { type } = schema;
  let kinds = ALL;
  if (typeof type === "string" || Array.isArray(type)) {
    kinds = new Set([type].flat().map((name) => (name === "integer" ? "number" : String(name))));
  }
  if (Object.hasOwn(schema, "const")) kinds = intersect(kinds, new Set([jsonTypeOf(schema["const"])]));
  if (Array.isArray(schema["enum"])) kinds = intersect(kinds, new Set(schema["enum"].map(jsonTypeOf)));
  return kinds;
}

function intersect(a: Kinds, b: Kinds): Kinds {
  if (a === ALL) return b;
  return b === ALL ? a : new Set([...a].filter((kind) => b.has(kind)));
}

function union(all: readonly Kinds[]): Kinds {
  const kinds = new Set(all.flatMap((some) => [...some]));
  return kinds.size === ALL.size ? ALL : kinds;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Puts a schema under one required member of an object schema; its references within the document still find what they meant. */
function embedSchema(schema: JsonSchemaObject, member: string): JsonSchemaObject {
  const { $schema, ...rest } = schema;
  return {
    ...(typeof $schema === "string" && { $schema }),
    type: "object",
    properties: { [member]: moveSchema(rest, `#/properties/${member}`) },
    required: [member],
  };
}

/** The schema as it reads at a place further down in a document, a JSON pointer that begins with `#`. */
export function moveSchema(schema: JsonSchemaObject, place: string): JsonSchemaObject {
  if (isResource(schema)) return schema;
  const text = JSON.stringify(schema);
  // What `$recursiveRef` means depends on the root of its resource: it keeps one of its own, which no other schema has.
  if (text.includes('"$recursiveRef"')) {
    return { $id: `urn:sha256:${createHash("sha256").update(text).digest("hex")}`, ...schema };
  }
  return changeReferences(schema, (keyword, reference) => [keyword, movedReference(reference, place)]);
}

const TODAY = /^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/;
const BEFORE = /^https?:\/\/json-schema\.org\/(?:draft-0[3-7]|draft\/2019-09)\/schema#?$/;

/** Keywords that only 2019-09 and later have: a validator of an older dialect passes over them. References into `$defs` work in all. */
const NEWER = [
  ...["prefixItems", "unevaluatedProperties", "unevaluatedItems", "minContains", "maxContains"],
  ...["dependentSchemas", "dependentRequired", "$dynamicRef", "$dynamicAnchor", "$anchor"],
];

/**
 * Rewrites a schema as 2020-12, which is what MCP takes a schema for that does not say. `$schema` is left out where every dialect reads
 * the schema alike: clients whose validator knows another dialect alone refuse one that names this. Where it matters, it stays. A schema
 * of another dialect without a counterpart keeps it, and says so.
 */
export function toModernSchema(schema: JsonSchemaObject): JsonSchemaObject {
  const { $schema } = schema;
  const isOld = typeof $schema === "string" && BEFORE.test($schema);
  const isToday = typeof $schema !== "string" || TODAY.test($schema);
  if (!isOld && !(isToday && hasOldForms(schema))) return withoutDialect(schema);
  try {
    return toPortableSchema(schema, "exact") ?? schema;
  } catch {
    return schema;
  }
}

/** Leaves out `$schema` wherever it names today's dialect and nothing depends on that. */
function withoutDialect(root: JsonSchemaObject): JsonSchemaObject {
  for (const schema of subschemasOf(root)) if (NEWER.some((keyword) => keyword in schema)) return root;
  return rewriteSchema(root, {
    keywords: (schema) => {
      const { $schema, ...rest } = schema;
      return typeof $schema === "string" && TODAY.test($schema) ? rest : schema;
    },
  });
}

/** What older dialects wrote otherwise, and some libraries still do without naming one. */
function hasOldForms(root: JsonSchemaObject): boolean {
  return [...subschemasOf(root)].some(
    ({ items, dependencies, exclusiveMinimum, exclusiveMaximum }) =>
      Array.isArray(items) ||
      dependencies !== undefined ||
      typeof exclusiveMinimum === "boolean" ||
      typeof exclusiveMaximum === "boolean",
  );
}
