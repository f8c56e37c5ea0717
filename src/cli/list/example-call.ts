import { isPlainObject } from "../../core/json/json-value.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { JsonSchemaObject } from "../../core/schema/json-schema.ts";
import { sampleInput } from "../../gateway/sample-input.ts";
import { schemaOf } from "../../gateway/schema-of.ts";
import { memberSchemas, partsOf } from "../call/input-schema.ts";
import { valueOfText } from "../call/value-of-text.ts";

/** A command line that calls an operation with an input its schema takes; `command` is how Waybill is started. */
export function exampleCall(operation: AnyOperation, command = "waybill", flags = ""): string {
  const schema = schemaOf(operation, "input");
  const input = schema === undefined ? undefined : sampleInput(schema).value;
  const words = input === undefined || schema === undefined ? [] : inputWords(input, schema);
  return [command, "call", shellWord(operation.id), ...words, ...(flags === "" ? [] : [flags])].join(" ");
}

function inputWords(input: unknown, schema: JsonSchemaObject): readonly string[] {
  if (!isPlainObject(input)) return [shellWord(JSON.stringify(input))];
  const entries = Object.entries(input);
  const words = entries.map(([key, value]) => memberWord(key, value, schema));
  if (words.includes(undefined)) return [shellWord(JSON.stringify(input))];
  return words as string[];
}

/** `key=value` where that is read back as the value, else `key:=json`; nothing for a key that cannot be written so. */
function memberWord(key: string, value: unknown, schema: JsonSchemaObject): string | undefined {
  if (/[=@:.\s"'{[]/.test(key) || key === "" || key.startsWith("-")) return undefined;
  const parts = memberSchemas(partsOf(schema, schema), key, schema) as JsonSchemaObject[];
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const isPlain = typeof value !== "object" && !text.startsWith("@");
  if (isPlain && valueOfText(text, parts, schema, key) === value) return shellWord(`${key}=${text}`);
  return shellWord(`${key}:=${JSON.stringify(value)}`);
}

/** A word as a shell takes it. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
