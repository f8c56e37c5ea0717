import { compileSchema } from "../../../core/schema/compile-schema.ts";
import { isObject, type JsonSchema, type JsonSchemaObject } from "../../../core/schema/json-schema.ts";
import { hasPointingKey } from "./exact-schema.ts";
import { sampleValues } from "./sample-value.ts";
import type { SchemaComponents } from "./schema-components.ts";
import { takeCompiled } from "./schema-json.ts";

/** What can be told about the values of a schema by trying some. */
interface TriedSchema {
  /** A value that passes; nothing where none was found. */
  readonly example: unknown;
  readonly mayBeNothing: boolean;
  readonly mayBeBytes: boolean;
}

/** What a document says about values of a schema. */
export interface DescribedData extends TriedSchema {
  /** Refers to the schema among the components. */
  readonly schema: JsonSchemaObject;
}

/** Puts a schema among the components and finds out what it takes; `shown` is an example to prefer. */
export function describeData(
  name: string,
  json: JsonSchema | undefined,
  { components, shown }: { readonly components: SchemaComponents; readonly shown?: unknown },
): DescribedData {
  if (json === undefined)
    return { schema: {}, example: writable(shown), mayBeNothing: true, mayBeBytes: true };
  const schema = components.add(name, json);
  return { ...trySchema(json), example: findExample(json, shown), schema };
}

/** The example that is given, where it passes; one made for the schema, where none is given. */
export function findExample(json: JsonSchema, shown: unknown): unknown {
  if (shown === undefined) return trySchema(json).example;
  const passes = writable(shown) !== undefined && interpreted(json).check(shown);
  return passes ? shown : undefined;
}

/** One schema is described once for each view of an API, and tried once. */
const tried = new WeakMap<JsonSchemaObject, TriedSchema>();

function trySchema(json: JsonSchema): TriedSchema {
  const known = isObject(json) ? tried.get(json) : undefined;
  if (known !== undefined) return known;
  const compiled = (isObject(json) ? takeCompiled(json) : undefined) ?? interpreted(json);
  const found = {
    example: sampleValues(json).find((value) => isShort(value) && compiled.check(value)),
    mayBeNothing: compiled.check(undefined),
    mayBeBytes: compiled.check(new Uint8Array()),
  };
  if (isObject(json)) tried.set(json, found);
  return found;
}

/** A few values are not worth the code that would be made for them. */
function interpreted(json: JsonSchema): ReturnType<typeof compileSchema> {
  return compileSchema(json, { codegen: false });
}

/** Characters of an example that is made up, or taken from the schema, which says it anyway. */
const MAX_EXAMPLE = 2_000;

function isShort(value: unknown): boolean {
  return writable(value) !== undefined && (JSON.stringify(value)?.length ?? 0) <= MAX_EXAMPLE;
}

/** Tools would take some keys of an example for references. */
function writable(value: unknown): unknown {
  return hasPointingKey(value) ? undefined : value;
}
