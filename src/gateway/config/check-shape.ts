import { setOwn } from "../../core/json/json-value.ts";
import { didYouMean, nearestName } from "../../core/text/nearest-name.ts";
import { type ConfigPath, pathKey, showPath, showValue } from "./config-path.ts";
import { CONFIG_SCHEMA } from "./config-schema.ts";
import type { ConfigSchema, ConfigType } from "./schema-parts.ts";
import { chooseAlternative, describeSchema, typesOf } from "./schema-words.ts";

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

  /** Where other hosts have members of their own, only what looks like a slip is a mistake. */
  #reportUnknown(name: string, schema: ConfigSchema, path: ConfigPath): void {
    const near = nearestName(name, Object.keys(schema.properties ?? {}));
    const at = [...path, name];
    const shown = showPath(at);
    if (near !== undefined) this.#report(at, "key", `There is no ${shown}${didYouMean(near)}`);
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

function resolveReference(reference: string): ConfigSchema {
  return CONFIG_SCHEMA.$defs?.[reference.slice("#/$defs/".length)] as ConfigSchema;
}

function isOfType(value: unknown, type: ConfigType | undefined): boolean {
  switch (type) {
    case "integer":
      return Number.isSafeInteger(value);
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
