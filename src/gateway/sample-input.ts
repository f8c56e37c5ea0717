import { compileSchema } from "../core/schema/compile-schema.ts";
import type { JsonSchemaObject } from "../core/schema/json-schema.ts";
import { sampleValues } from "../openapi/server/document/sample-value.ts";

/** An input made from a schema, always the same; one that is not accepted may still show what is wanted. */
export interface SampleInput {
  readonly value: unknown;
  readonly isAccepted: boolean;
}

/** Makes the simplest input that is accepted: only what must be there, if that is enough. */
export function sampleInput(schema: JsonSchemaObject): SampleInput {
  const samples = [...sampleValues(schema)].reverse();
  try {
    const compiled = compileSchema(schema);
    const at = samples.findIndex((sample) => compiled.check(sample));
    return { value: samples[Math.max(at, 0)], isAccepted: at !== -1 };
  } catch {
    return { value: samples[0], isAccepted: false };
  }
}
