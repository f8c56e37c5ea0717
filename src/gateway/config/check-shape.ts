import { setOwn } from "../../core/json/json-value.ts";
import { didYouMean, nearestName } from "../../core/text/nearest-name.ts";
import { type ConfigPath, pathKey, showPath, showValue } from "./config-path.ts";
import { CONFIG_SCHEMA } from "./config-schema.ts";
import type { ConfigSchema, ConfigType } from "./config-schema-parts.ts";

/** Something to say about a place of a config. */
export interface ConfigIssue {
  readonly path: ConfigPath;
  readonly at: "key" | "value";
  /** A whole sentence that names the path. */
  readonly message: string;
}

/** What is known about the values of a config besides what they are. */
export interface ValueFacts {
  /** Places of texts that came from references: numbers and flags may come as text there, and are not shown. */
  readonly referenced: ReadonlySet<string>;
  /** Places of texts with references that lead nowhere; they are not looked at. */
  readonly unresolved: ReadonlySet<string>;
}

/** What a check found. */
export interface Findings {
  readonly issues: ConfigIssue[];
  readonly warnings: ConfigIssue[];
}

/** Checks a config against its schema; returns it with numbers and flags that came as text from references. */
export function checkShape(config: unknown, facts: ValueFacts, findings: Findings): unknown {
  return new ShapeCheck(facts, findings).check(config, CONFIG_SCHEMA, []);
}

class ShapeCheck {
  readonly #facts: ValueFacts;
  readonly #findings: Findings;

  constructor(facts: ValueFacts, findings: Findings) {
    this.#facts = facts;
    this.#findings = findings;
  }

  check(given: unknown, schema: ConfigSchema, path: ConfigPath): unknown {
    if (this.#facts.unresolved.has(pathKey(path))) return given;
    const exact = schema.$ref === undefined ? schema : resolveReference(schema.$ref);
    const value = this.#convert(given, exact, path);
    if (exact.anyOf !== undefined) {
      const chosen = chooseAlternative(value, exact.anyOf);
      return chosen === undefined ? this.#refuse(value, exact, path) : this.check(value, chosen, path);
    }
    if (exact.enum !== undefined) return this.#checkChoice(value, exact, path);
    if (!isOfType(value, typesOf(exact)[0])) return this.#refuse(value, exact, path);
    if (typeof value === "number") return this.#checkNumber(value, exact, path);
    if (typeof value === "string") return this.#checkText(value, exact, path);
    if (Array.isArray(value)) {
      const { items } = exact;
      return items === undefined ? value : value.map((item, i) => this.check(item, items, [...path, i]));
    }
    return typeof value === "object"
      ? this.#checkMembers(value as Record<string, unknown>, exact, path)
      : value;
  }

  #convert(value: unknown, schema: ConfigSchema, path: ConfigPath): unknown {
    if (typeof value !== "string" || !this.#facts.referenced.has(pathKey(path))) return value;
    const types = typesOf(schema);
    if (types.includes("boolean") && (value === "true" || value === "false")) return value === "true";
    return types.includes("integer") && /^\d{1,15}$/.test(value) ? Number(value) : value;
  }

  #checkChoice(value: unknown, schema: ConfigSchema, path: ConfigPath): unknown {
    if (typeof value === "string" && schema.enum?.includes(value)) return value;
    return this.#refuse(value, schema, path);
  }

  #checkNumber(value: number, schema: ConfigSchema, path: ConfigPath): unknown {
    const { minimum = -Infinity, maximum = Infinity } = schema;
    return value >= minimum && value <= maximum ? value : this.#refuse(value, schema, path);
  }

  #checkText(value: string, schema: ConfigSchema, path: ConfigPath): unknown {
    const { minLength = 0, maxLength = Infinity } = schema;
    if (value.length < minLength) this.#report(path, "value", `${showPath(path)} must not be empty.`);
    if (value.length > maxLength) {
      this.#report(
        path,
        "value",
        `${showPath(path)} must have at most ${maxLength} characters; it has ${value.length}.`,
      );
    }
    return value;
  }

  #checkMembers(value: Record<string, unknown>, schema: ConfigSchema, path: ConfigPath): unknown {
    const { properties, additionalProperties, required = [] } = schema;
    for (const name of required) {
      if (!Object.hasOwn(value, name))
        this.#report(path, "value", `${showPath([...path, name])} is missing.`);
    }
    for (const [name, member] of Object.entries(value)) {
      const at = [...path, name];
      const known =
        properties !== undefined && Object.hasOwn(properties, name) ? properties[name] : undefined;
      if (known !== undefined) setOwn(value, name, this.check(member, known, at));
      else if (typeof additionalProperties === "object") {
        this.#checkName(name, schema.propertyNames, at);
        setOwn(value, name, this.check(member, additionalProperties, at));
      } else if (properties !== undefined) this.#reportUnknown(name, schema, path);
    }
    return value;
  }

  #checkName(name: string, schema: ConfigSchema | undefined, path: ConfigPath): void {
    const { minLength = 0, maxLength = Infinity } = schema ?? {};
    if (name.length < minLength)
      this.#report(path, "key", `A name in ${showPath(path.slice(0, -1))} is empty.`);
    if (name.length > maxLength) {
      const where = showPath(path.slice(0, -1));
      this.#report(
        path,
        "key",
        `A name in ${where} has ${name.length} characters; at most ${maxLength} are read.`,
      );
    }
  }

  /** Where other hosts have members of their own, only what looks like a slip, or had another name once, is a mistake. */
  #reportUnknown(name: string, schema: ConfigSchema, path: ConfigPath): void {
    const near = nearestName(name, Object.keys(schema.properties ?? {}));
    const at = [...path, name];
    const shown = showPath(at);
    const renamed = newSpelling(name, schema);
    if (renamed !== undefined) this.#report(at, "key", `${shown} is spelled ${renamed} now.`);
    else if (near !== undefined) this.#report(at, "key", `There is no ${shown}${didYouMean(near)}`);
    else if (schema.additionalProperties === false) this.#report(at, "key", `There is no ${shown}.`);
    else this.#findings.warnings.push({ path: at, at: "key", message: `${shown} is not used by Waybill.` });
  }

  #refuse(value: unknown, schema: ConfigSchema, path: ConfigPath): unknown {
    const shown = showValue(value, path, this.#facts.referenced.has(pathKey(path)));
    const what = path.length === 0 ? "The config" : showPath(path);
    this.#report(path, "value", `${what} must be ${describeSchema(schema)}; it is ${shown}.`);
    return value;
  }

  #report(path: ConfigPath, at: "key" | "value", message: string): void {
    this.#findings.issues.push({ path, at, message });
  }
}

/** What members were called in earlier versions, by where they stand. */
const RENAMED: readonly {
  readonly within: ConfigSchema | undefined;
  readonly names: Readonly<Record<string, string>>;
}[] = [
  { within: CONFIG_SCHEMA.$defs?.["operationPolicy"], names: { retries: "retry" } },
  { within: CONFIG_SCHEMA.$defs?.["sourcePolicy"], names: { retries: "retry" } },
];

function newSpelling(name: string, schema: ConfigSchema): string | undefined {
  const names = RENAMED.find(({ within }) => within === schema)?.names ?? {};
  return Object.hasOwn(names, name) ? names[name] : undefined;
}

function resolveReference(reference: string): ConfigSchema {
  return CONFIG_SCHEMA.$defs?.[reference.slice("#/$defs/".length)] as ConfigSchema;
}

function isOfType(value: unknown, type: ConfigType | undefined): boolean {
  switch (type) {
    case "integer":
      return Number.isSafeInteger(value);
    case "number":
      return Number.isFinite(value);
    case "array":
      return Array.isArray(value);
    case "object":
      return typeof value === "object" && value !== null && !Array.isArray(value);
    case "string":
    case "boolean":
      return typeof value === type;
    case undefined:
      return true;
  }
}

/** The types a schema names, those of its alternatives included. */
function typesOf(schema: ConfigSchema): readonly ConfigType[] {
  if (schema.anyOf !== undefined) return schema.anyOf.flatMap(typesOf);
  if (schema.enum !== undefined) return ["string"];
  return typeof schema.type === "string" ? [schema.type] : (schema.type ?? []);
}

/** Chooses the alternative that a value is meant to be, so that what is wrong with it can be said; none when it is of no such type. */
function chooseAlternative(value: unknown, alternatives: readonly ConfigSchema[]): ConfigSchema | undefined {
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
function describeSchema(schema: ConfigSchema): string {
  if (schema.anyOf !== undefined) return [...new Set(schema.anyOf.map(describeSchema))].join(" or ");
  if (schema.enum !== undefined) return describeChoice(schema.enum);
  const [type] = typesOf(schema);
  switch (type) {
    case "integer":
      return describeNumber(schema);
    case "number":
      return "a number";
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
