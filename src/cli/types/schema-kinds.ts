import { typeBits } from "../../core/schema/evaluation.ts";
import { type SchemaNode, TYPE_BITS } from "../../core/schema/schema-node.ts";
import { atom, type TypeText, UNKNOWN, unionOf } from "./type-text.ts";

/** The kinds of value a type tells apart, as bits; integers are numbers. */
export const KINDS = {
  null: TYPE_BITS.null,
  boolean: TYPE_BITS.boolean,
  number: TYPE_BITS.number,
  string: TYPE_BITS.string,
  array: TYPE_BITS.array,
  object: TYPE_BITS.object,
  undefined: TYPE_BITS.undefined,
  bigint: TYPE_BITS.bigint,
} as const;

/** Everything JSON has. */
const JSON_KINDS = KINDS.null | KINDS.boolean | KINDS.number | KINDS.string | KINDS.array | KINDS.object;

/** Every kind there is. */
export const ALL_KINDS = JSON_KINDS | KINDS.undefined | KINDS.bigint;

const TEXTS: readonly (readonly [number, TypeText])[] = [
  [KINDS.string, atom("string")],
  [KINDS.number, atom("number")],
  [KINDS.boolean, atom("boolean", 2)],
  [KINDS.bigint, atom("bigint")],
  [KINDS.array, atom("unknown[]")],
  [KINDS.object, atom("{ [key: string]: unknown }")],
  [KINDS.null, atom("null")],
  [KINDS.undefined, atom("undefined")],
];

const ANY_OBJECT = atom("object");

/** Writes kinds of which no more is known; `isGiven` for what callers give, of which an instance of a class is an object too. */
export function kindsType(kinds: number, isGiven = false): TypeText {
  if (kinds === ALL_KINDS) return UNKNOWN;
  const wanted = TEXTS.filter(([kind]) => (kinds & kind) !== 0);
  return unionOf(wanted.map(([kind, text]) => (isGiven && kind === KINDS.object ? ANY_OBJECT : text)));
}

/** The kinds of values beyond JSON are there only where a schema names them. */
export function nameableKinds(node: SchemaNode, kinds: number): number {
  return kinds & (JSON_KINDS | toKinds(node.types));
}

function toKinds(types: number): number {
  return (types & TYPE_BITS.integer) === 0 ? types : (types & ~TYPE_BITS.integer) | KINDS.number;
}

/** The kind of one value. */
export function kindOf(value: unknown): number {
  return toKinds(typeBits(value));
}

/** Finds out which kinds of value a schema lets through, as far as its types and constants say. */
export class SchemaKinds {
  readonly #known = new Map<SchemaNode, number>();

  of(node: SchemaNode): number {
    const known = this.#known.get(node) ?? this.#find(node);
    this.#known.set(node, known);
    return known;
  }

  #find(node: SchemaNode): number {
    if (node.constant !== undefined) return node.constant ? ALL_KINDS : 0;
    let kinds = node.types === 0 ? ALL_KINDS : toKinds(node.types);
    if (node.values !== undefined)
      kinds &= node.values.reduce<number>((bits, value) => bits | kindOf(value), 0);
    for (const child of appliedTogether(node)) kinds &= this.of(child);
    for (const list of [node.anyOf, node.oneOf]) {
      if (list !== undefined) kinds &= list.reduce((bits, child) => bits | this.of(child), 0);
    }
    return kinds;
  }
}

/** The schemas that a value has to fit besides what the node says itself. */
export function appliedTogether({ ref, dynamicRef, allOf = [] }: SchemaNode): readonly SchemaNode[] {
  return [ref, dynamicRef?.settled, ...allOf].filter((node) => node !== undefined);
}
