import { isPlainObject } from "../json/json-value.ts";
import { isObject, type JsonSchemaObject } from "./json-schema.ts";
import { SchemaError } from "./schema-error.ts";

const DECLARE = "declare the shape with Type from waybill or as JSON Schema";
const USE = `use TypeBox, zod 4.2 or newer, arktype, or valibot with toStandardJsonSchema, or ${DECLARE}`;

/** Refuses an object of a class, which would be read as a schema without keywords and allow everything. */
export function refuseInstance(value: object, pointer: string): void {
  if (isPlainObject(value)) return;
  if ("~standard" in value) {
    throw new SchemaError(
      "A schema of a library stands inside a JSON Schema; declare the whole schema with one of them.",
      pointer,
    );
  }
  throw new SchemaError(`${nameOf(value)} is not JSON Schema; ${adviceFor(value)}.`, pointer);
}

function nameOf(value: object): string {
  const name: unknown = value.constructor?.name;
  return typeof name === "string" && name !== "" ? `An object of the class ${name}` : "An object of a class";
}

/** Libraries whose schemas are objects of classes and say nothing of Standard Schema, told apart by what every schema of theirs has. */
function adviceFor(value: object): string {
  if ("coercer" in value && "refiner" in value) {
    return `superstruct cannot write JSON Schema: ${DECLARE}, and call assert(value, struct) in the handler`;
  }
  if ("decode" in value && "encode" in value && "validate" in value) {
    return `io-ts cannot write JSON Schema: ${DECLARE}, and call decode in the handler`;
  }
  if ("toTerminals" in value || ("try" in value && "parse" in value)) {
    return `valita cannot write JSON Schema: ${DECLARE}, and call parse in the handler`;
  }
  return USE;
}

/** What every schema of TypeBox 0.34 has that was made by `Type.Transform`. */
const TRANSFORM = Symbol.for("TypeBox.Transform");

/** Refuses what TypeBox checks or converts by functions, which a JSON Schema cannot hold. */
export function refuseFunctions(value: object, pointer: string): void {
  if (Object.hasOwn(value, "~refine") || Object.hasOwn(value, "~codec")) {
    throw new SchemaError(
      "Type.Refine and Type.Codec cannot be written as JSON Schema; check or convert in the handler instead.",
      pointer,
    );
  }
  if (!Object.hasOwn(value, TRANSFORM)) return;
  throw new SchemaError(
    "Type.Transform of TypeBox 0.34 is JSON Schema of the value before it is decoded, and its decode would be ignored; declare that type without Transform and convert in the handler.",
    pointer,
  );
}

/** All keywords of JSON Type Definition (RFC 8927). */
const JTD_KEYWORDS = new Set([
  ...["additionalProperties", "definitions", "discriminator", "elements", "enum", "mapping", "metadata"],
  ...["nullable", "optionalProperties", "properties", "ref", "values"],
]);

/** Refuses a JSON Type Definition, of which JSON Schema would understand half. */
export function refuseTypeDefinition(schema: JsonSchemaObject, root: unknown, pointer: string): void {
  const keyword = typeDefinitionKeyword(schema, root);
  if (keyword === undefined) return;
  throw new SchemaError(
    `"${keyword}" is a keyword of JSON Type Definition (RFC 8927), not of JSON Schema, which would ignore it; write ${JTD_MEANS[keyword]}.`,
    pointer,
  );
}

const JTD_MEANS = {
  optionalProperties: "all properties as properties, and name those that must be there in required",
  elements: '{ "type": "array", "items": … }',
  values: '{ "type": "object", "additionalProperties": … }',
  discriminator: '"oneOf", with a "const" in each alternative',
  ref: '{ "$ref": "#/definitions/…" }',
} as const;

/** Schemas in the wild hold words of their own, so a keyword counts only where all the others are of JSON Type Definition too. */
function typeDefinitionKeyword(schema: JsonSchemaObject, root: unknown): keyof typeof JTD_MEANS | undefined {
  const has = (keyword: string) => Object.hasOwn(schema, keyword);
  const holds = (keyword: string) => has(keyword) && isObject(schema[keyword]);
  const found = holds("optionalProperties")
    ? "optionalProperties"
    : holds("elements")
      ? "elements"
      : holds("values")
        ? "values"
        : has("discriminator") && typeof schema["discriminator"] === "string" && holds("mapping")
          ? "discriminator"
          : isNamed(schema["ref"], root)
            ? "ref"
            : undefined;
  return found !== undefined && Object.keys(schema).every((key) => JTD_KEYWORDS.has(key)) ? found : undefined;
}

function isNamed(ref: unknown, root: unknown): boolean {
  if (typeof ref !== "string" || !isObject(root) || !isObject(root["definitions"])) return false;
  return Object.hasOwn(root["definitions"], ref);
}

/** Says what to do with a Standard Schema that cannot give its JSON Schema. */
export function adviceForStandard(vendor: string, schema: object): string {
  if (vendor === "zod") return adviceForZod(schema);
  return (
    ADVICE.get(vendor) ?? "use a version that implements ~standard.jsonSchema, or pass plain JSON Schema"
  );
}

/** Says what to do with a Standard Schema that failed to write its JSON Schema. */
export function adviceForFailure(vendor: string): string {
  const plain = "declare a plain shape and convert in the handler";
  return vendor === "sury" ? `call S.enableStandardJSONSchema() first; if it was called, ${plain}` : plain;
}

function adviceForZod(schema: object): string {
  if (!("_zod" in schema)) {
    return "zod 3 never does: use zod 4.2 or newer, or pass zodToJsonSchema(schema) of the package zod-to-json-schema";
  }
  // Only the schemas of zod itself have methods such as `optional`.
  if (!("optional" in schema)) {
    return "those of zod/mini never do: pass z.toJSONSchema(schema), which does not run its own checks, or use zod itself";
  }
  return "use zod 4.2 or newer";
}

const ADVICE: ReadonlyMap<string, string> = new Map([
  ["valibot", "wrap it with toStandardJsonSchema from @valibot/to-json-schema"],
  [
    "sury",
    "use sury 11 or newer and call S.enableStandardJSONSchema() first, or pass S.toJSONSchema(schema), which does not run its own checks",
  ],
  ["valita", `valita never does: ${DECLARE}, and call parse in the handler`],
]);
