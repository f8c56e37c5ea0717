import { parsePointer } from "../../core/json/json-pointer.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { buildNodes } from "../../core/schema/build-nodes.ts";
import { typeBits } from "../../core/schema/evaluation.ts";
import { isObject, type JsonSchemaObject, MODERN } from "../../core/schema/json-schema.ts";
import { SCHEMA_LIMITS } from "../../core/schema/limits.ts";
import { SchemaIndex } from "../../core/schema/schema-index.ts";
import { type ObjectRules, type SchemaNode, TYPE_BITS } from "../../core/schema/schema-node.ts";
import { snapshotSchema } from "../../core/schema/snapshot-schema.ts";
import { vetNodes } from "../../core/schema/vet-nodes.ts";
import {
  arrayOf,
  atom,
  docComment,
  indent,
  intersectionOf,
  NEVER,
  propertyKey,
  quote,
  type TypeText,
  typeText,
  UNKNOWN,
  unionOf,
} from "./type-text.ts";

/** A type that others refer to; in texts it stands as `aliasMark` of its place in the list. */
export interface TypeAlias {
  /** What the schema calls it. */
  readonly hint: string;
  readonly comment: string;
  readonly type: TypeText;
}

/** A schema as a type, and the types it refers to. */
export interface SchemaType {
  readonly comment: string;
  readonly type: TypeText;
  readonly aliases: readonly TypeAlias[];
}

/** How schemas become types. */
export interface SchemaTypeOptions {
  /** Leaves out properties that a schema permits and does not mention. @default false */
  readonly closed?: boolean | undefined;
  /** Which side of a call the schema describes: what is given may be bytes, where a schema wants any object. @default "output" */
  readonly direction?: "input" | "output" | undefined;
}

/** Stands for an alias until it has a name; texts and comments of a type have no private characters. */
export const ALIAS_MARK = /\uE000(\d+)\uE000/g;

function aliasMark(index: number): string {
  return `\uE000${index}\uE000`;
}

/** The most types of a union; a wider one is not told apart. */
const MAX_UNION = 2_000;

/** Makes a type that every value fits which fits the JSON Schema; throws a `SchemaError` for one that cannot be used. */
export function schemaToType(schema: unknown, options: SchemaTypeOptions = {}): SchemaType {
  const json = snapshotSchema(schema, SCHEMA_LIMITS);
  const index = new SchemaIndex({}, SCHEMA_LIMITS, MODERN);
  const { root } = buildNodes(index.add(json), index, { limits: SCHEMA_LIMITS });
  vetNodes(root, SCHEMA_LIMITS);
  return new TypeWriter(isObject(json) ? json : {}, options).write(root);
}

interface OpenAlias {
  readonly node: SchemaNode;
  readonly kinds: number;
}

/** Turns the nodes of one schema document into types. */
class TypeWriter {
  readonly #document: JsonSchemaObject;
  readonly #kinds = new SchemaKinds();
  readonly #widths = new Map<SchemaNode, number>();
  readonly #aliases: OpenAlias[] = [];
  readonly #indexes = new Map<SchemaNode, Map<number, number>>();
  readonly #isGiven: boolean;
  readonly closed: boolean;

  constructor(document: JsonSchemaObject, { closed = false, direction = "output" }: SchemaTypeOptions) {
    this.#document = document;
    this.#isGiven = direction === "input";
    this.closed = closed;
  }

  write(root: SchemaNode): SchemaType {
    const type = this.typeOf(root);
    const aliases: TypeAlias[] = [];
    // The list grows while it is worked through: a chain of references may be as long as the schema.
    for (let i = 0; i < this.#aliases.length; i++) {
      const { node, kinds } = this.#aliases[i] as OpenAlias;
      const hint = parsePointer(node.pointer).at(-1) ?? "node";
      aliases.push({ hint, comment: docComment(this.#source(node)), type: this.typeOf(node, kinds) });
    }
    const own = this.#indexes.get(root)?.get(this.#kinds.of(root));
    const comment = docComment(this.#document);
    return { comment, type: own === undefined ? type : atom(aliasMark(own), type.width), aliases };
  }

  /** The comment of a property. */
  comment(node: SchemaNode): string {
    const { description, deprecated, default: value, $ref } = this.#source(node);
    // What a reference leads to says the rest.
    const isReference = typeof $ref === "string";
    return docComment({
      description,
      deprecated,
      ...(value !== undefined && !isReference && { default: value }),
    });
  }

  /** The type of the values a node lets through, of the kinds that its surroundings do. */
  typeOf(node: SchemaNode, among = ALL_KINDS): TypeText {
    const kinds = among & this.#kinds.of(node);
    if (kinds === 0) return NEVER;
    if (node.constant !== undefined) return kindsType(kinds, this.#isGiven);
    if (node.values !== undefined) return literalsType(node.values, kinds);
    const parts: TypeText[] = [];
    if (saysProperties(node) || saysItems(node)) parts.push(this.#own(node, nameableKinds(node, kinds)));
    for (const target of [node.ref, node.dynamicRef?.settled]) {
      if (target !== undefined) parts.push(this.#named(target, kinds));
    }
    for (const child of node.allOf ?? []) parts.push(this.typeOf(child, kinds));
    for (const list of [node.anyOf, node.oneOf]) {
      if (list !== undefined) parts.push(this.#union(list, kinds));
    }
    return parts.length === 0 ? kindsType(kinds, this.#isGiven) : intersectionOf(parts);
  }

  #union(list: readonly SchemaNode[], kinds: number): TypeText {
    const type = unionOf(list.map((child) => this.typeOf(child, kinds)));
    return type.width > MAX_UNION ? kindsType(kinds, this.#isGiven) : type;
  }

  /** What a node says of objects and lists; other kinds of value it lets through as they are. */
  #own(node: SchemaNode, kinds: number): TypeText {
    const { object, array } = KINDS;
    const hasObject = (kinds & object) !== 0 && saysProperties(node);
    const hasArray = (kinds & array) !== 0 && saysItems(node);
    const rest = kinds & ~(hasObject ? object : 0) & ~(hasArray ? array : 0);
    return unionOf([
      ...(hasObject ? [objectType(node, this)] : []),
      ...(hasArray ? [arrayType(node, this)] : []),
      ...(rest === 0 ? [] : [kindsType(rest, this.#isGiven)]),
    ]);
  }

  #named(node: SchemaNode, among: number): TypeText {
    const kinds = among & this.#kinds.of(node);
    if (kinds === 0) return NEVER;
    const byKinds = this.#indexes.get(node) ?? new Map<number, number>();
    this.#indexes.set(node, byKinds);
    const index = byKinds.get(kinds) ?? this.#aliases.push({ node, kinds }) - 1;
    byKinds.set(kinds, index);
    return atom(aliasMark(index), this.#width(node));
  }

  /** No less than the width of the type, found without going into parts of the value: those may lead back here. */
  #width(node: SchemaNode): number {
    const known = this.#widths.get(node) ?? Math.min(this.#measure(node), MAX_UNION);
    this.#widths.set(node, known);
    return known;
  }

  #measure(node: SchemaNode): number {
    if (node.values !== undefined) return node.values.length;
    const sum = (list: readonly SchemaNode[]) => list.reduce((total, child) => total + this.#width(child), 0);
    const own = kindsType(nameableKinds(node, this.#kinds.of(node))).width;
    let width = Math.max(1, own);
    for (const child of appliedTogether(node)) width *= this.#width(child);
    for (const list of [node.anyOf, node.oneOf]) if (list !== undefined) width *= Math.max(1, sum(list));
    return width;
  }

  /** The schema as it was written, for what it says to people. */
  #source(node: SchemaNode): JsonSchemaObject {
    let current: unknown = this.#document;
    if (node.pointer.startsWith("#")) return {};
    for (const key of parsePointer(node.pointer)) {
      current =
        typeof current === "object" && current !== null && Object.hasOwn(current, key)
          ? (current as JsonSchemaObject)[key]
          : undefined;
    }
    return isObject(current) ? current : {};
  }
}

/** The part of a writer that the types of objects and lists are made with. */
type PartWriter = Pick<TypeWriter, "typeOf" | "comment" | "closed">;

/** Places of a tuple written out. */
const MAX_PLACES = 100;

/** Tells whether a node says anything of the items of lists that a type can say. */
function saysItems({ array }: SchemaNode): boolean {
  return array !== undefined && (array.prefix.length > 0 || array.items !== undefined);
}

/** The type of the lists that a node lets through. */
function arrayType({ array }: SchemaNode, writer: PartWriter): TypeText {
  if (array === undefined) return arrayOf(UNKNOWN);
  const { prefix, items, minItems, maxItems } = array;
  const rest = items === undefined ? UNKNOWN : writer.typeOf(items);
  if (prefix.length === 0) return arrayOf(rest);
  if (prefix.length > MAX_PLACES) return arrayOf(UNKNOWN);
  const places = prefix.slice(0, Math.min(prefix.length, maxItems)).map((node, place) => {
    const text = typeText(writer.typeOf(node));
    return place < minItems ? text : `(${text})?`;
  });
  const isClosed = items?.constant === false || maxItems <= prefix.length;
  if (!isClosed) places.push(`...${typeText(arrayOf(rest))}`);
  return atom(`[${indent(places.join(", "))}]`);
}

/** An index signature that would get longer says nothing. */
const MAX_INDEX = 160;

/** Properties written out; the rest are as good as not mentioned. */
const MAX_PROPERTIES = 2_000;

/** What every object has; the compiler takes these for the property where it is absent. */
const INHERITED = new Set(Object.getOwnPropertyNames(Object.prototype));

/** Tells whether a node says anything of the properties of objects that a type can say. */
function saysProperties({ object }: SchemaNode): boolean {
  if (object === undefined) return false;
  const { properties, required, patterns, additional } = object;
  return properties.size > 0 || required.length > 0 || patterns.length > 0 || additional !== undefined;
}

interface Property {
  readonly name: string;
  readonly isRequired: boolean;
  readonly type: TypeText;
  readonly comment: string;
}

/** The type of the objects that a node lets through. */
function objectType(node: SchemaNode, writer: PartWriter): TypeText {
  const { object } = node;
  if (object === undefined) return UNKNOWN_OBJECT;
  const properties = propertiesOf(object, writer);
  const additional = object.additional ?? (node.isCompound ? undefined : node.unevaluatedProperties);
  const index = indexType({ ...object, additional }, properties, writer);
  if (properties.length === 0 && index === undefined) return EMPTY_OBJECT;
  if (properties.length === 0 && index !== undefined)
    return atom(`{ [key: string]: ${indent(typeText(index))} }`);
  const lines = properties.map(({ name, isRequired, type, comment }) =>
    indent(`${comment}${propertyKey(name)}${isRequired ? "" : "?"}: ${typeText(type)};`),
  );
  if (index !== undefined) lines.push(`[key: string]: ${indent(typeText(index))};`);
  return atom(`{\n${lines.map((line) => `  ${line}\n`).join("")}}`);
}

const UNKNOWN_OBJECT = atom("{ [key: string]: unknown }");
const EMPTY_OBJECT = atom("{ [key: string]: never }");

function propertiesOf(object: ObjectRules, writer: PartWriter): readonly Property[] {
  const required = new Set(object.required);
  const named = [...object.properties].slice(0, MAX_PROPERTIES).map(([name, node]) => {
    const isRequired = required.has(name);
    const type = !isRequired && INHERITED.has(name) ? UNKNOWN : writer.typeOf(node);
    return { name, isRequired, type, comment: writer.comment(node) };
  });
  const others = [...required]
    .filter((name) => !object.properties.has(name))
    .slice(0, MAX_PROPERTIES)
    .map((name) => ({ name, isRequired: true, type: otherType(object, writer), comment: "" }));
  return [...named, ...others];
}

/** The type of a property that is required and not described. */
function otherType({ additional, patterns }: ObjectRules, writer: PartWriter): TypeText {
  return additional === undefined || patterns.length > 0 ? UNKNOWN : writer.typeOf(additional);
}

/** The type of all properties, those with names of their own included: the compiler wants it so. Nothing where there are no others. */
function indexType(
  { properties, additional: rest, patterns }: ObjectRules,
  named: readonly Property[],
  writer: PartWriter,
): TypeText | undefined {
  if (properties.size > MAX_PROPERTIES) return UNKNOWN;
  if (rest === undefined)
    return writer.closed && named.length > 0 && patterns.length === 0 ? undefined : UNKNOWN;
  if (rest.constant === false && patterns.length === 0) return undefined;
  const types = [rest, ...patterns.map(([, child]) => child)].map((child) => writer.typeOf(child));
  const hasOptional = named.some(({ isRequired }) => !isRequired);
  const all = unionOf([
    ...types,
    ...named.map(({ type }) => type),
    ...(hasOptional ? [atom("undefined")] : []),
  ]);
  const isLong = named.length > 0 && typeText(all).length > MAX_INDEX;
  return isLong ? UNKNOWN : all;
}

/** Constants written out; more of them become the kinds of value they are. */
const MAX_LITERALS = 2_000;

/** Characters of one constant that is written out. */
const MAX_LENGTH = 2_000;

/** The type of a fixed set of values, those of the wanted kinds. */
function literalsType(values: readonly unknown[], kinds: number): TypeText {
  const wanted = values.filter((value) => (kindOf(value) & kinds) !== 0);
  if (wanted.length <= MAX_LITERALS) return unionOf(wanted.map(literalType));
  return kindsType(wanted.reduce<number>((bits, value) => bits | kindOf(value), 0));
}

function literalType(value: unknown): TypeText {
  const text = literalText(value, MAX_LENGTH);
  return text === undefined ? kindsType(kindOf(value)) : atom(text);
}

/** Nothing where it gets longer than it may. */
function literalText(value: unknown, room: number): string | undefined {
  const text = typeof value === "object" && value !== null ? structureText(value, room) : scalarText(value);
  return text === undefined || text.length > room ? undefined : text;
}

function scalarText(value: unknown): string {
  if (typeof value === "string") return quote(value);
  // A negative zero is no other type than zero.
  return value === 0 ? "0" : String(value);
}

function structureText(value: object, room: number): string | undefined {
  const entries = Array.isArray(value) ? value.map((item) => ["", item] as const) : Object.entries(value);
  if (!Array.isArray(value) && !isPlainObject(value)) return undefined;
  const texts: string[] = [];
  let left = room;
  for (const [key, member] of entries) {
    const text = literalText(member, left);
    if (text === undefined) return undefined;
    texts.push(Array.isArray(value) ? text : `${propertyKey(key)}: ${text}`);
    left -= text.length + key.length + 4;
    if (left < 0) return undefined;
  }
  if (Array.isArray(value)) return `[${texts.join(", ")}]`;
  return texts.length === 0 ? "{ [key: string]: never }" : `{ ${texts.join("; ")} }`;
}

/** The kinds of value a type tells apart, as bits; integers are numbers. */
const KINDS = {
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
const ALL_KINDS = JSON_KINDS | KINDS.undefined | KINDS.bigint;

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
function kindsType(kinds: number, isGiven = false): TypeText {
  if (kinds === ALL_KINDS) return UNKNOWN;
  const wanted = TEXTS.filter(([kind]) => (kinds & kind) !== 0);
  return unionOf(wanted.map(([kind, text]) => (isGiven && kind === KINDS.object ? ANY_OBJECT : text)));
}

/** The kinds of values beyond JSON are there only where a schema names them. */
function nameableKinds(node: SchemaNode, kinds: number): number {
  return kinds & (JSON_KINDS | toKinds(node.types));
}

function toKinds(types: number): number {
  return (types & TYPE_BITS.integer) === 0 ? types : (types & ~TYPE_BITS.integer) | KINDS.number;
}

function kindOf(value: unknown): number {
  return toKinds(typeBits(value));
}

/** Finds out which kinds of value a schema lets through, as far as its types and constants say. */
class SchemaKinds {
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
function appliedTogether({ ref, dynamicRef, allOf = [] }: SchemaNode): readonly SchemaNode[] {
  return [ref, dynamicRef?.settled, ...allOf].filter((node) => node !== undefined);
}
