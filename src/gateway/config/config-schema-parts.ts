import { LONGEST_DELAY } from "../../core/execution/cancellation.ts";

/** A JSON Schema (2020-12) as this config uses it: plain data. */
export interface ConfigSchema {
  readonly $schema?: string;
  readonly $id?: string;
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, ConfigSchema>>;
  readonly title?: string;
  readonly description?: string;
  readonly type?: ConfigType | readonly ConfigType[];
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly items?: ConfigSchema;
  readonly properties?: Readonly<Record<string, ConfigSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | ConfigSchema;
  readonly propertyNames?: ConfigSchema;
  readonly anyOf?: readonly ConfigSchema[];
}

/** The types of JSON that fields have. */
export type ConfigType = "string" | "integer" | "number" | "boolean" | "array" | "object";

/** A text that refers to what is kept elsewhere may stand for a number or a flag as well. */
const REFERENCE = "^\\$\\{.+\\}$";

/** A text that is not empty. */
export function text(description: string): ConfigSchema {
  return { description, type: "string", minLength: 1 };
}

/** A text that may be empty. */
export function anyText(description: string): ConfigSchema {
  return { description, type: "string" };
}

/** A whole number. */
export function whole(description: string, minimum: number, maximum = Number.MAX_SAFE_INTEGER): ConfigSchema {
  const type = ["integer", "string"] as const;
  return maximum === Number.MAX_SAFE_INTEGER
    ? { description, type, minimum, pattern: REFERENCE }
    : { description, type, minimum, maximum, pattern: REFERENCE };
}

/** A time in milliseconds, as long as a timer waits: a longer one would be over at once. */
export function delay(description: string, minimum: number): ConfigSchema {
  return whole(description, minimum, LONGEST_DELAY);
}

/** Any number. */
export function number(description: string): ConfigSchema {
  return { description, type: "number" };
}

/** True or false. */
export function flag(description: string): ConfigSchema {
  return { description, type: ["boolean", "string"], pattern: REFERENCE };
}

/** One of a few texts. */
export function choice(description: string, values: readonly string[]): ConfigSchema {
  return { description, enum: values };
}

/** A list. */
export function list(description: string, items: ConfigSchema): ConfigSchema {
  return { description, type: "array", items };
}

/** Values by name. */
export function map(description: string, values: ConfigSchema, names?: ConfigSchema): ConfigSchema {
  const schema: ConfigSchema = { description, type: "object", additionalProperties: values };
  return names === undefined ? schema : { ...schema, propertyNames: names };
}

/** An object with fields of its own. */
export function fields(
  description: string,
  properties: Readonly<Record<string, ConfigSchema>>,
  required: readonly string[] = [],
): ConfigSchema {
  const schema: ConfigSchema = { description, type: "object", properties, additionalProperties: false };
  return required.length === 0 ? schema : { ...schema, required };
}

/** Any of several. */
export function either(description: string, ...anyOf: readonly ConfigSchema[]): ConfigSchema {
  return { description, anyOf };
}

/** What stands under `$defs`, described by where it is used. */
export function definition(name: string, description: string): ConfigSchema {
  return { description, $ref: `#/$defs/${name}` };
}

/** A text, or a list of texts. */
export function texts(description: string): ConfigSchema {
  return either(
    description,
    { type: "string", minLength: 1 },
    { type: "array", items: { type: "string", minLength: 1 } },
  );
}
