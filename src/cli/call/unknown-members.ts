import { isPlainObject } from "../../core/json/json-value.ts";
import { isObject, type JsonSchemaObject } from "../../core/schema/json-schema.ts";
import { nearestNames } from "../nearest-names.ts";
import { memberSchemas, membersOf, partsOf } from "./input-schema.ts";

/** A member that an input has and its schema does not name. */
export interface UnknownMember {
  /** With dots. */
  readonly key: string;
  /** Names that may be meant, with dots, the nearest first. */
  readonly near: readonly string[];
}

/** Words that let members in which no `properties` name. */
const OPEN_WORDS = [
  "patternProperties",
  "propertyNames",
  "unevaluatedProperties",
  "dependentSchemas",
  "dependencies",
  "if",
  "then",
  "else",
  "$dynamicRef",
  "$recursiveRef",
] as const;

/** How closely a schema has to look at members for one to be unknown. */
export type MemberRule = /** Others are let in without a word. */ "allowed" | "any";

/**
 * Finds the members on these paths that a schema with names of members does not name. Where its words let others in on purpose, none
 * is unknown; where it forbids them, they are for `any` alone, since the call says so itself.
 */
export function unknownMembers(
  paths: readonly (readonly string[])[],
  schema: JsonSchemaObject,
  rule: MemberRule,
): readonly UnknownMember[] {
  const found = new Map<string, UnknownMember>();
  for (const path of paths) {
    const unknown = firstUnknown(path, schema, rule);
    if (unknown !== undefined) found.set(unknown.key, unknown);
  }
  return [...found.values()];
}

function firstUnknown(
  path: readonly string[],
  schema: JsonSchemaObject,
  rule: MemberRule,
): UnknownMember | undefined {
  let parts = partsOf(schema, schema);
  for (const [at, name] of path.entries()) {
    const { names } = membersOf(parts);
    if (names.length === 0 || isOpen(parts, rule)) return undefined;
    if (!names.includes(name)) {
      const above = path.slice(0, at);
      return { key: [...above, name].join("."), near: nearOf(name, { parts, schema, above }) };
    }
    parts = memberSchemas(parts, name, schema) as JsonSchemaObject[];
  }
  return undefined;
}

function isOpen(parts: readonly JsonSchemaObject[], rule: MemberRule): boolean {
  return parts.some((part) => {
    const { additionalProperties: others = true } = part;
    if (others !== true && (others !== false || rule === "allowed")) return true;
    return OPEN_WORDS.some((word) => Object.hasOwn(part, word));
  });
}

interface Level {
  readonly parts: readonly JsonSchemaObject[];
  readonly schema: JsonSchemaObject;
  readonly above: readonly string[];
}

/** Near names of the same level, and the same name one level further down. */
function nearOf(name: string, { parts, schema, above }: Level): readonly string[] {
  const { names } = membersOf(parts);
  const inside = names.filter((other) => {
    const members = memberSchemas(parts, other, schema) as JsonSchemaObject[];
    return membersOf(members).names.includes(name);
  });
  const near = inside.length > 0 ? inside.map((other) => `${other}.${name}`) : nearestNames(name, names);
  return near.slice(0, 2).map((other) => [...above, other].join("."));
}

/** The paths to the members of an input, as far as the schema may have something to say of them. */
export function pathsIn(input: unknown, depth = 4): readonly (readonly string[])[] {
  if (!isPlainObject(input) || depth === 0) return [];
  return Object.entries(input).flatMap(([name, value]) => {
    const below = isObject(value) ? pathsIn(value, depth - 1) : [];
    return below.length === 0 ? [[name]] : below.map((path) => [name, ...path]);
  });
}
