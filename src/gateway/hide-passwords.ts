import { isPlainObject, setOwn } from "../core/json/json-value.ts";
import type { AnyOperation } from "../core/operation/operation-types.ts";
import type { JsonSchemaObject } from "../core/schema/json-schema.ts";
import { findReference } from "../core/schema/schema-view.ts";
import { schemaOf } from "./operation-json.ts";

/** What stands in place of a value nobody is to see. */
export const HIDDEN = "•••";

const MOST_LEVELS = 64;

/** What is known of the inputs of an operation: nothing in them is to be hidden, all of it is, or what a schema says. */
type Plan = "show" | "hide" | JsonSchemaObject;

const plans = new WeakMap<AnyOperation, Plan>();

/**
 * Gives an input to be remembered: members that their schema calls `writeOnly`, or of the format `password`, are replaced. So is all
 * that a schema may say this of, where one of several does, or where it says more than can be followed here. The input itself stays as
 * it is. `onLost` hears of what is hidden because the input is too deep or too large, which is up to whoever made it.
 */
export function hidePasswords(operation: AnyOperation, input: unknown, onLost = () => {}): unknown {
  let plan = plans.get(operation);
  if (plan === undefined) {
    plan = planOf(operation);
    plans.set(operation, plan);
  }
  return hideBy(plan, input, onLost);
}

/** The same for the arguments of a tool, by the schema it was listed with. */
export function hideBySchema(schema: JsonSchemaObject, input: unknown): unknown {
  return hideBy(saysSecret(schema) ? schema : "show", input);
}

function hideBy(plan: Plan, input: unknown, onLost = () => {}): unknown {
  if (plan === "show") return input;
  if (plan === "hide") return HIDDEN;
  const schemas = new SchemaParts(plan);
  return hide(input, schemas.of([plan]), { schemas, level: 0, onLost });
}

function planOf(operation: AnyOperation): Plan {
  try {
    const { inputSchema } = operation;
    if (inputSchema === undefined || typeof inputSchema === "boolean") return "show";
    // Calls of an operation whose schema is refused are refused too, and their inputs are remembered all the same.
    const schema = schemaOf(operation, "input") ?? inputSchema;
    if (!isPlainObject(schema)) return "hide";
    return saysSecret(schema) ? schema : "show";
  } catch {
    return "hide";
  }
}

interface Place {
  readonly schemas: SchemaParts;
  readonly level: number;
  onLost(): void;
}

function hide(
  value: unknown,
  parts: readonly JsonSchemaObject[] | undefined,
  { schemas, level, onLost }: Place,
): unknown {
  if (level > MOST_LEVELS || schemas.isSpent) onLost();
  if (parts === undefined || level > MOST_LEVELS) return HIDDEN;
  if (parts.length === 0 || typeof value !== "object" || value === null) return value;
  const place = { schemas, level: level + 1, onLost };
  if (Array.isArray(value)) return value.map((item, at) => hide(item, schemas.ofItem(parts, at), place));
  // Whatever else it is, nobody knows which members of it are written.
  if (!isPlainObject(value) || typeof value["toJSON"] === "function") return HIDDEN;
  const shown: Record<string, unknown> = {};
  for (const [key, member] of Object.entries(value)) {
    setOwn(shown, key, hide(member, schemas.ofMember(parts, key), place));
  }
  return shown;
}

/** Schemas that may hold for one value. */
const MOST_PARTS = 500;
/** Schemas that are looked at for all values of one input; what is left of it then is hidden. */
export const MOST_LOOKS = 50_000;

/** Keywords whose schemas, one or a list of them, hold for the same value. */
const IN_PLACE = ["allOf", "anyOf", "oneOf", "if", "then", "else", "not"];
/** Keywords whose members are schemas that hold for the same value, or lists of names. */
const IN_PLACE_BY_NAME = ["dependentSchemas", "dependencies"];
/** Keywords with a schema for whichever member has no other. */
const OF_MEMBERS = ["additionalProperties", "unevaluatedProperties"];
/** Keywords with schemas for items. */
const OF_ITEMS = ["items", "additionalItems", "unevaluatedItems", "contains"];
/** Keywords that are followed in other ways, or have no schemas in them that hold for anything by themselves. */
const OTHERS = [
  ...["properties", "patternProperties", "prefixItems", "$defs", "definitions", "components"],
  ...["default", "const", "enum", "example", "examples", "required", "dependentRequired", "$vocabulary"],
];
const FOLLOWED = new Set([...IN_PLACE, ...IN_PLACE_BY_NAME, ...OF_MEMBERS, ...OF_ITEMS, ...OTHERS]);

/** A reference that leads out of the schema. */
const OUTWARD = /"\$(?:ref|dynamicRef|recursiveRef)":"(?!#)/;
const SECRET = /"(?:writeOnly":true|format":"password")/;
const REFERENCE = /"\$(?:ref|dynamicRef|recursiveRef)":/;

/** Tells whether a schema says of anything that it is not to be shown, or may do so where nobody here can look. */
function saysSecret(schema: JsonSchemaObject): boolean {
  const text = JSON.stringify(schema);
  return SECRET.test(text) || OUTWARD.test(text);
}

/** Finds the schemas within one that hold for a value. */
export class SchemaParts {
  readonly #root: JsonSchemaObject;
  readonly #open = new Map<JsonSchemaObject, boolean>();
  readonly #targets = new Map<string, unknown>();
  #looks = 0;
  /** Whether there were too many looks. */
  isSpent = false;

  constructor(root: JsonSchemaObject) {
    this.#root = root;
  }

  /** All that hold for the value these hold for; nothing where one calls it a secret, or may for all that is known. */
  of(schemas: readonly unknown[]): readonly JsonSchemaObject[] | undefined {
    const parts = new Set<JsonSchemaObject>();
    const left: unknown[] = [];
    if (!this.#take(schemas, left)) return undefined;
    while (left.length > 0) {
      const part = left.pop();
      if (!isPlainObject(part) || parts.has(part)) continue;
      if (parts.size >= MOST_PARTS || !this.#mayShow(part)) return undefined;
      parts.add(part);
      if (!this.#takeInPlace(part, left)) return undefined;
    }
    return [...parts];
  }

  /** All that hold for a member; schemas by pattern count for every name, since in doubt a value is hidden. */
  ofMember(parts: readonly JsonSchemaObject[], key: string): readonly JsonSchemaObject[] | undefined {
    return this.#within(parts, (part) => memberSchemas(part, key));
  }

  /** All that hold for an item. */
  ofItem(parts: readonly JsonSchemaObject[], at: number): readonly JsonSchemaObject[] | undefined {
    return this.#within(parts, (part) => itemSchemas(part, at));
  }

  /** What is asked of every part is counted before any is looked at: an input has as many members as it likes. */
  #within(
    parts: readonly JsonSchemaObject[],
    schemasOf: (part: JsonSchemaObject) => readonly unknown[],
  ): readonly JsonSchemaObject[] | undefined {
    if (!this.#spend(parts.length)) return undefined;
    return this.of(parts.flatMap(schemasOf));
  }

  /** Counts looks; returns false once there were too many. */
  #spend(looks: number): boolean {
    this.#looks += looks;
    this.isSpent = this.#looks > MOST_LOOKS;
    return !this.isSpent;
  }

  /** Puts schemas to those that are left to look at; returns false where these are too many. */
  #take(schemas: readonly unknown[], left: unknown[]): boolean {
    if (!this.#spend(schemas.length)) return false;
    for (const schema of schemas) left.push(schema);
    return true;
  }

  /** Takes the schemas that hold for the same value as a part; returns false where these are too many, or a reference cannot be followed. */
  #takeInPlace(part: JsonSchemaObject, left: unknown[]): boolean {
    for (const word of IN_PLACE) {
      const said = part[word];
      if (said !== undefined && !this.#take(Array.isArray(said) ? said : [said], left)) return false;
    }
    for (const word of IN_PLACE_BY_NAME) {
      const said = part[word];
      if (isPlainObject(said) && !this.#take(Object.values(said), left)) return false;
    }
    const { $ref } = part;
    if ($ref === undefined) return true;
    const found = typeof $ref === "string" ? this.#target($ref) : undefined;
    return found !== undefined && this.#take([found], left);
  }

  #mayShow(part: JsonSchemaObject): boolean {
    let may = this.#open.get(part);
    if (may === undefined) {
      may = this.#isOpen(part);
      this.#open.set(part, may);
    }
    return may;
  }

  /** Whether a part calls its value no secret, and says nothing that cannot be followed. */
  #isOpen(part: JsonSchemaObject): boolean {
    const { writeOnly, format, $id, id, $dynamicRef, $recursiveRef } = part;
    if (writeOnly === true || format === "password") return false;
    if ($dynamicRef !== undefined || $recursiveRef !== undefined) return false;
    // References below it are no longer from the root.
    if (part !== this.#root && (typeof $id === "string" || typeof id === "string")) return false;
    return Object.keys(part).every((word) => FOLLOWED.has(word) || isHarmless(part[word]));
  }

  /** What a reference leads to: each is followed once, however long it is. */
  #target(reference: string): unknown {
    if (!this.#targets.has(reference)) this.#targets.set(reference, findReference(reference, this.#root));
    return this.#targets.get(reference);
  }
}

/** Whether what a keyword says that is not known here can be no schema of a secret. */
function isHarmless(said: unknown): boolean {
  if (typeof said !== "object" || said === null) return true;
  const text = JSON.stringify(said);
  return !SECRET.test(text) && !REFERENCE.test(text);
}

function memberSchemas(part: JsonSchemaObject, key: string): readonly unknown[] {
  const { properties, patternProperties } = part;
  const own = isPlainObject(properties) && Object.hasOwn(properties, key) ? [properties[key]] : [];
  const fitting = isPlainObject(patternProperties) ? Object.values(patternProperties) : [];
  const other = own.length > 0 ? [] : OF_MEMBERS.map((word) => part[word]);
  return [...own, ...fitting, ...other];
}

function itemSchemas(part: JsonSchemaObject, at: number): readonly unknown[] {
  const { prefixItems, items } = part;
  const tuple = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : [];
  return [tuple[at], ...OF_ITEMS.map((word) => part[word])];
}
