import { isPlainObject } from "../../../core/json/json-value.ts";
import { type AnySchema, type SchemaDirection, toOperationSchema } from "../../../core/schema/any-schema.ts";
import type { CompiledSchema } from "../../../core/schema/compile-schema.ts";
import { isObject, type JsonSchema, type JsonSchemaObject } from "../../../core/schema/json-schema.ts";

/** What was read of schemas: one operation is described in several places, and once for each view of an API. */
const read = new WeakMap<object, Partial<Record<SchemaDirection, JsonSchema>>>();

/** What the JSON was compiled to, until values are tried: nothing of it is needed after that. */
const untried = new WeakMap<JsonSchemaObject, CompiledSchema>();

/**
 * The JSON of a schema that an operation declares; nothing for one that cannot be read or is refused, of which `onRefused` hears:
 * calls are told so, and no other operation suffers from it.
 */
export function schemaJson(
  declared: () => AnySchema | undefined,
  direction: SchemaDirection,
  onRefused?: (cause: unknown) => void,
): JsonSchema | undefined {
  try {
    const schema = declared();
    return schema === undefined ? undefined : readJson(schema, direction);
  } catch (cause) {
    onRefused?.(cause);
    return undefined;
  }
}

/** Gives what the JSON of a schema was compiled to, without generated code, where nobody has taken it yet. */
export function takeCompiled(json: JsonSchemaObject): CompiledSchema | undefined {
  const compiled = untried.get(json);
  untried.delete(json);
  return compiled;
}

function readJson(schema: AnySchema, direction: SchemaDirection): JsonSchema {
  const isKey = (typeof schema === "object" && schema !== null) || typeof schema === "function";
  const known = isKey ? read.get(schema) : undefined;
  const before = known?.[direction];
  if (before !== undefined) return before;
  // Options of its own are a key of its own, so that what is compiled is not kept.
  const compiled = toOperationSchema(schema, direction, { codegen: false });
  if (isKey) read.set(schema, { ...known, [direction]: compiled.json });
  if (isObject(compiled.json)) untried.set(compiled.json, compiled);
  return compiled.json;
}

/** Levels of a document that are written member by member: at the second are its paths, at the third its schemas. */
const SPLIT_LEVELS = 3;

/** Characters that are handed over at a time, at least. */
const BLOCK_CHARACTERS = 65_536;

/** Writes a document as `JSON.stringify` does, step by step; `onBlock` gets the text in UTF-8, bit by bit. */
export function* writeJsonBlocks(
  document: object,
  onBlock: (bytes: Uint8Array) => void,
): Generator<undefined, void, undefined> {
  let block = "";
  for (const piece of piecesOf(document as Readonly<Record<string, unknown>>, SPLIT_LEVELS)) {
    block += piece;
    if (block.length < BLOCK_CHARACTERS) continue;
    onBlock(Buffer.from(block));
    block = "";
    yield;
  }
  onBlock(Buffer.from(block));
}

function* piecesOf(value: Readonly<Record<string, unknown>>, levels: number): Generator<string, void> {
  let before = "{";
  for (const name of Object.keys(value)) {
    const member = value[name];
    if (member === undefined) continue;
    yield `${before}${JSON.stringify(name)}:`;
    before = ",";
    if (levels > 1 && isPlainObject(member)) yield* piecesOf(member, levels - 1);
    else yield JSON.stringify(member);
  }
  yield before === "{" ? "{}" : "}";
}
