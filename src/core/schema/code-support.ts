import { type ObjectRules, type SchemaNode, saysOnly, TYPE_BITS } from "./schema-node.ts";
import { reachable } from "./vet-nodes.ts";

/** Which of the two questions a piece of code answers. */
export type CodeMode = "valid" | "clean";

/** Larger objects and unions make functions that engines do not optimise; the interpreter is as good for them. */
const MAX_PROPERTIES = 200;
const MAX_BRANCHES = 200;
const CODE_ASPECTS = ["anyOf", "array", "number", "object", "oneOf", "string", "types", "values"] as const;
const BEYOND_JSON = TYPE_BITS.undefined | TYPE_BITS.bigint;

/** Tells whether generated code can cover all that a node says by itself. */
export function hasOwnCode(node: SchemaNode, mode: CodeMode): boolean {
  if (node.constant !== undefined) return true;
  if (node.ref !== undefined) return saysOnly(node, "ref");
  if (!saysOnly(node, ...CODE_ASPECTS) || (node.types & BEYOND_JSON) !== 0) return false;
  if (node.values !== undefined && !node.values.every(isJsonScalar)) return false;
  if ((node.anyOf ?? node.oneOf ?? []).length > MAX_BRANCHES) return false;
  if (node.anyOf !== undefined) return saysOnly(node, "anyOf", "types") && isUnionCode(node.anyOf, mode);
  if (node.oneOf !== undefined) return saysOnly(node, "oneOf", "types");
  const { object, array } = node;
  if (object !== undefined && !isObjectCode(object)) return false;
  return array === undefined || (array.prefix.length === 0 && array.contains === undefined && !array.unique);
}

/** Tells whether a node's code is a few comparisons, better written in place than called. */
export function isScalar(node: SchemaNode): boolean {
  if (node.constant !== undefined) return true;
  if (!hasOwnCode(node, "clean") || node.ref !== undefined) return false;
  return saysOnly(node, "types", "values", "number", "string");
}

function isJsonScalar(value: unknown): boolean {
  return typeof value !== "object" || value === null;
}

function isObjectCode(rules: ObjectRules): boolean {
  return (
    rules.properties.size <= MAX_PROPERTIES &&
    rules.required.length <= MAX_PROPERTIES &&
    rules.patterns.length === 0 &&
    rules.names === undefined &&
    rules.minProperties === 0 &&
    rules.maxProperties === Number.POSITIVE_INFINITY &&
    rules.dependentRequired.length === 0 &&
    rules.dependentSchemas.length === 0
  );
}

/**
 * In a union a clean branch makes the value clean, unless another branch that fits too would fill a default, or strip
 * an object about whose properties the clean one says nothing.
 */
function isUnionCode(branches: readonly SchemaNode[], mode: CodeMode): boolean {
  if (mode === "valid") return true;
  const nodes = new Set(branches.flatMap((branch) => [...reachable(branch)]));
  return [...nodes].every((node) => node.default === undefined && isDecided(node));
}

/** Tells whether a node that takes objects says which properties they may have. */
function isDecided(node: SchemaNode): boolean {
  if (node.constant !== undefined) return !node.constant;
  if (node.types !== 0 && (node.types & TYPE_BITS.object) === 0) return true;
  const { object } = node;
  return (
    node.isCompound || node.values !== undefined || object?.named === true || object?.additional !== undefined
  );
}
