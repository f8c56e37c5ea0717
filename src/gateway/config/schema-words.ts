import type { ConfigSchema, ConfigType } from "./schema-parts.ts";

/** The types a schema names, those of its alternatives included. */
export function typesOf(schema: ConfigSchema): readonly ConfigType[] {
  if (schema.anyOf !== undefined) return schema.anyOf.flatMap(typesOf);
  if (schema.enum !== undefined) return ["string"];
  return typeof schema.type === "string" ? [schema.type] : (schema.type ?? []);
}

/** Chooses the alternative that a value is meant to be, so that what is wrong with it can be said; none when it is of no such type. */
export function chooseAlternative(
  value: unknown,
  alternatives: readonly ConfigSchema[],
): ConfigSchema | undefined {
  const type = typeOf(value);
  const fitting = alternatives.filter((schema) => typesOf(schema)[0] === type);
  if (type !== "object") return fitting[0];
  const known = (schema: ConfigSchema): number =>
    Object.keys(value as object).filter((name) => Object.hasOwn(schema.properties ?? {}, name)).length;
  return fitting.sort((a, b) => known(b) - known(a))[0];
}

function typeOf(value: unknown): ConfigType | undefined {
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return "integer";
  if (typeof value === "string" || typeof value === "boolean") return typeof value as ConfigType;
  return typeof value === "object" && value !== null ? "object" : undefined;
}

/** Says what a schema takes, for people: `a whole number from 0 to 65535`. */
export function describeSchema(schema: ConfigSchema): string {
  if (schema.anyOf !== undefined) return [...new Set(schema.anyOf.map(describeSchema))].join(" or ");
  if (schema.enum !== undefined) return describeChoice(schema.enum);
  const [type] = typesOf(schema);
  switch (type) {
    case "integer":
      return describeNumber(schema);
    case "boolean":
      return "true or false";
    case "array":
      return schema.items !== undefined && typesOf(schema.items)[0] === "string"
        ? "a list of texts"
        : "a list";
    case "object":
      return schema.required === undefined ? "an object" : `an object with ${schema.required.join(" and ")}`;
    case "string":
    case undefined:
      break;
  }
  return "a text";
}

function describeChoice(values: readonly string[]): string {
  const quoted = values.map((value) => JSON.stringify(value));
  return quoted.length === 1 ? (quoted[0] as string) : `one of ${quoted.join(", ")}`;
}

function describeNumber({ minimum, maximum }: ConfigSchema): string {
  if (maximum !== undefined) return `a whole number from ${minimum} to ${maximum}`;
  return minimum === undefined ? "a whole number" : `a whole number, ${minimum} or more`;
}
