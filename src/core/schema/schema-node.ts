import { type AllowedValues, isEqual, type KeyMeter } from "./compare-values.ts";
import type { Matcher } from "./pattern.ts";
import type { SchemaResource } from "./schema-index.ts";

/** The types a value can have, as bits so that a node can allow several. */
export const TYPE_BITS = {
  null: 1,
  boolean: 2,
  /** Any finite number; an integer has both bits. */
  number: 4,
  integer: 8,
  string: 16,
  array: 32,
  object: 64,
  /** Beyond JSON: what TypeBox's Undefined, Void and BigInt declare. */
  undefined: 128,
  void: 128,
  bigint: 256,
} as const;

/** The name of a type that a schema may declare. */
export type TypeName = keyof typeof TYPE_BITS;

/** Bounds on a number. */
export interface NumberRules {
  readonly minimum: number | undefined;
  readonly maximum: number | undefined;
  readonly exclusiveMinimum: number | undefined;
  readonly exclusiveMaximum: number | undefined;
  readonly multipleOf: number | undefined;
}

/** Bounds on a string, in code points. */
export interface StringRules {
  readonly minLength: number;
  readonly maxLength: number;
  readonly pattern: Matcher | undefined;
}

/** What a schema says of an object's properties. */
export interface ObjectRules {
  /** True when the schema has `properties`, be it empty. */
  readonly named: boolean;
  readonly properties: ReadonlyMap<string, SchemaNode>;
  /** The same properties as lists, which are quicker to walk. */
  readonly keys: readonly string[];
  /** Properties whose schema has a default, in the order of the schema; made when first asked for. */
  defaulted: readonly string[] | undefined;
  /** Each key as a step of a JSON pointer. */
  readonly steps: readonly string[];
  readonly children: readonly SchemaNode[];
  readonly required: readonly string[];
  readonly patterns: readonly (readonly [Matcher, SchemaNode])[];
  readonly additional: SchemaNode | undefined;
  readonly names: SchemaNode | undefined;
  readonly minProperties: number;
  readonly maxProperties: number;
  readonly dependentRequired: readonly (readonly [string, readonly string[]])[];
  readonly dependentSchemas: readonly (readonly [string, SchemaNode])[];
}

/** What a schema says of an array's items. */
export interface ArrayRules {
  readonly prefix: readonly SchemaNode[];
  readonly items: SchemaNode | undefined;
  readonly contains: SchemaNode | undefined;
  readonly minContains: number;
  readonly maxContains: number;
  readonly minItems: number;
  readonly maxItems: number;
  readonly unique: boolean;
}

/** A declared default, boxed because any value may be one. */
export interface Default {
  readonly value: unknown;
  /** How many parts the value has: filling it in takes as much work. */
  readonly parts: number;
}

/** A `$dynamicRef`: the anchor looked up while evaluating, and where it leads when nothing else has it. */
export interface DynamicReference {
  readonly name: string;
  readonly target: SchemaNode;
  /** Where it leads in any case; undefined when the way through the schema decides, while evaluating. */
  settled: SchemaNode | undefined;
}

/** One subschema, read once: what checking, normalising and code generation all work from. */
export class SchemaNode {
  readonly resource: SchemaResource;
  /** Where it stands in the schema document. */
  readonly pointer: string;
  /** A boolean schema's answer. */
  constant: boolean | undefined = undefined;
  /** Allowed types as `TYPE_BITS`; 0 allows all. */
  types = 0;
  /** Allowed values, of `const` or `enum`. */
  values: readonly unknown[] | undefined = undefined;
  /** The same, ready to be looked up, once anyone asked. */
  allowed: AllowedValues | undefined = undefined;
  /** The allowed values for people, once anyone asked. */
  valuesText: string | undefined = undefined;
  number: NumberRules | undefined = undefined;
  string: StringRules | undefined = undefined;
  object: ObjectRules | undefined = undefined;
  array: ArrayRules | undefined = undefined;
  ref: SchemaNode | undefined = undefined;
  dynamicRef: DynamicReference | undefined = undefined;
  allOf: readonly SchemaNode[] | undefined = undefined;
  anyOf: readonly SchemaNode[] | undefined = undefined;
  oneOf: readonly SchemaNode[] | undefined = undefined;
  not: SchemaNode | undefined = undefined;
  condition: SchemaNode | undefined = undefined;
  consequence: SchemaNode | undefined = undefined;
  alternative: SchemaNode | undefined = undefined;
  unevaluatedProperties: SchemaNode | undefined = undefined;
  unevaluatedItems: SchemaNode | undefined = undefined;
  default: Default | undefined = undefined;
  /** The default that holds here, its own or an inherited one, once anyone asked; null when there is none. */
  inheritedDefault: Default | null | undefined = undefined;

  /** True when subschemas apply to the very same value; set once the node is filled. */
  isCompound = false;
  /** True when it passes any value; set once the node is filled. */
  isEmpty = false;

  constructor(resource: SchemaResource, pointer: string) {
    this.resource = resource;
    this.pointer = pointer;
  }
}

/** The default that holds at a node: its own, else the one that all it refers to agree on. */
export function defaultOf(node: SchemaNode): Default | undefined {
  if (node.inheritedDefault === undefined) {
    const inherited = node.ref === undefined ? (node.allOf ?? []) : [node.ref, ...(node.allOf ?? [])];
    node.inheritedDefault = node.default ?? agreedDefault(inherited) ?? null;
  }
  return node.inheritedDefault ?? undefined;
}

/** The one default that some of the nodes declare and none contradicts; two that differ cancel out. */
export function agreedDefault(nodes: readonly SchemaNode[], meter?: KeyMeter): Default | undefined {
  const declared = nodes.map(defaultOf).filter((entry) => entry !== undefined);
  const [first] = declared;
  if (first === undefined) return undefined;
  return declared.some((entry) => entry !== first && !isEqual(entry.value, first.value, meter))
    ? undefined
    : first;
}

/** The nodes that apply to the same value as `node` does, without a look further into it. */
export function inPlaceChildren(node: SchemaNode): SchemaNode[] {
  const children: SchemaNode[] = [];
  const add = (child: SchemaNode | undefined) => {
    if (child !== undefined) children.push(child);
  };
  add(node.ref);
  for (const list of [node.allOf, node.anyOf, node.oneOf]) list?.forEach(add);
  add(node.not);
  add(node.condition);
  add(node.consequence);
  add(node.alternative);
  for (const [, child] of node.object?.dependentSchemas ?? []) add(child);
  return children;
}

/** The nodes that apply to parts of a value. */
export function partChildren(node: SchemaNode): SchemaNode[] {
  const { object, array } = node;
  return [
    ...(object?.properties.values() ?? []),
    ...(object?.patterns.map(([, child]) => child) ?? []),
    object?.additional,
    object?.names,
    ...(array?.prefix ?? []),
    array?.items,
    array?.contains,
    node.unevaluatedProperties,
    node.unevaluatedItems,
  ].filter((child) => child !== undefined);
}

const ASPECTS = [
  "allOf",
  "anyOf",
  "array",
  "condition",
  "dynamicRef",
  "not",
  "number",
  "object",
  "oneOf",
  "ref",
  "string",
  "types",
  "unevaluatedItems",
  "unevaluatedProperties",
  "values",
] as const;

/** One kind of thing a node can say about a value. */
export type Aspect = (typeof ASPECTS)[number];

/** Tells whether a node says nothing beyond the aspects given; annotations and defaults do not count. */
export function saysOnly(node: SchemaNode, ...aspects: readonly Aspect[]): boolean {
  if (node.constant !== undefined) return false;
  return ASPECTS.every(
    (aspect) => aspects.includes(aspect) || node[aspect] === undefined || node[aspect] === 0,
  );
}
