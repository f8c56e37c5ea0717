import { isPlainObject, setOwn } from "../../core/json/json-value.ts";
import type { CompiledSchema } from "../../core/schema/compile-schema.ts";
import { sampleValues } from "../../openapi/server/document/sample-value.ts";

type Input = Readonly<Record<string, unknown>>;

/** An input made from a schema, always the same; nothing where none is found that passes. With what must be there alone, if that passes. */
export function sampleInput(schema: CompiledSchema): Input | undefined {
  const samples = [...sampleValues(schema.json)].reverse();
  return samples.filter(isPlainObject).find((sample) => schema.check(sample));
}

/** Members that are tried, so that a schema of thousands costs no more than a few. */
const MOST_SPOILED = 20;
const WRONG_VALUES: readonly unknown[] = [{ "waybill check": [true] }, 12.5, "\u0001", null];

/** An input that misses a schema: without what must be there, or with a value of another type; nothing where everything passes. */
export function spoiledInput(schema: CompiledSchema): Input | undefined {
  if (!schema.check({})) return {};
  const { json } = schema;
  const properties = isPlainObject(json) && isPlainObject(json["properties"]) ? json["properties"] : {};
  for (const name of Object.keys(properties).slice(0, MOST_SPOILED)) {
    for (const wrong of WRONG_VALUES) {
      const input: Record<string, unknown> = {};
      setOwn(input, name, wrong);
      if (!schema.check(input)) return input;
    }
  }
  return undefined;
}
