import { parsePointer } from "../../core/json/json-pointer.ts";
import { buildNodes } from "../../core/schema/build-nodes.ts";
import { isObject, type JsonSchemaObject, MODERN } from "../../core/schema/json-schema.ts";
import { SCHEMA_LIMITS } from "../../core/schema/limits.ts";
import { SchemaIndex } from "../../core/schema/schema-index.ts";
import type { SchemaNode } from "../../core/schema/schema-node.ts";
import { snapshotSchema } from "../../core/schema/snapshot-schema.ts";
import { vetNodes } from "../../core/schema/vet-nodes.ts";
import { arrayType, saysItems } from "./array-type.ts";
import { docComment } from "./doc-comment.ts";
import { literalsType } from "./literal-type.ts";
import { objectType, saysProperties } from "./object-type.ts";
import { ALL_KINDS, appliedTogether, KINDS, kindsType, nameableKinds, SchemaKinds } from "./schema-kinds.ts";
import { atom, intersectionOf, NEVER, type TypeText, unionOf } from "./type-text.ts";

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
export class TypeWriter {
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
export type PartWriter = Pick<TypeWriter, "typeOf" | "comment" | "closed">;
