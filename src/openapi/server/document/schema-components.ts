import { parsePointer } from "../../../core/json/json-pointer.ts";
import { setOwn } from "../../../core/json/json-value.ts";
import { isEqual } from "../../../core/schema/compare-values.ts";
import { isObject, type JsonSchema, type JsonSchemaObject } from "../../../core/schema/json-schema.ts";
import {
  definitionName,
  type KnownDefinition,
  learnReferences,
  surveyPlainSchema,
  withSameReferences,
} from "../../../core/schema/plain-schema.ts";
import { ReferenceTargets } from "../../../core/schema/schema-index.ts";
import {
  componentRef,
  EXACT,
  findPatch,
  isSeparable,
  withReferences,
  writeReference,
} from "../../component-schemas.ts";
import {
  NotDescribable,
  type ReferenceSite,
  toDocumentMember,
  toDocumentSchema,
  toExactSchema,
} from "./document-schema.ts";

/** A schema that is added, or one that it refers to. */
interface Part {
  readonly schema: JsonSchemaObject;
  /** What it is called where it comes from; empty where it has no name there. */
  readonly known: string;
  /** As the document says it; its references are written once what they lead to has a name. */
  readonly written: JsonSchemaObject;
  readonly sites: readonly ReferenceSite[];
  name: string;
}

/** What is added at a time: a schema and all that it refers to. */
interface Addition {
  readonly root: JsonSchemaObject;
  readonly links: ReferenceTargets;
  /** Those that have no name yet get one. */
  readonly parts: ReadonlyMap<JsonSchemaObject, Part>;
  /** Whether importers can put the schema together again from its parts. */
  readonly isSeparable: boolean;
}

/** Definitions that are among the components: one, or several that refer to each other in a circle. */
interface SharedCircle {
  readonly names: readonly string[];
  /** Their text where they come from. */
  readonly source: string;
}

/** A definition that is among the components, for schemas that have the same one. */
interface UsualDefinition extends KnownDefinition<UsualDefinition> {
  readonly name: string;
  readonly schema: JsonSchemaObject;
  /** Its text, once another object was compared with it. */
  text?: string;
}

/** Characters of a schema from which on operations that have the same one share it, under the name of the first. */
const LONG_ROOT = 50;

/** Definitions of one name that are remembered: several sources may have an `Error`. */
const MOST_OF_ONE_NAME = 16;

/**
 * Collects the schemas of a document under names that every tool can refer to. A definition that many schemas have becomes one
 * component, under the name it has there unless that is taken.
 */
export class SchemaComponents {
  readonly #schemas = new Map<string, JsonSchema>();
  readonly #names = new FreeNames();
  /** Long schemas that were added, by what the document says of them. */
  readonly #roots = new Map<string, string>();
  /** By what the document says. */
  readonly #shared = new Map<string, SharedCircle[]>();
  /** Definitions by what they are called where they come from. All that they refer to is here too, so that no schema needs a closer look at them. */
  readonly #usual = new Map<string, readonly UsualDefinition[]>();
  /** Where importers read the schemas that were added back from. */
  readonly #pointers = new WeakMap<JsonSchemaObject, string>();

  /** Adds a schema under a name that begins with `name`, and each one it refers to; gives the reference to it. */
  add(name: string, schema: JsonSchema): JsonSchemaObject {
    if (!isObject(schema)) return schema ? {} : { not: {} };
    const target = onlyReference(schema);
    if (target !== undefined) return this.#addReference(name, schema, target);
    const own = this.#names.take([name]);
    this.#put(own, schema);
    return { $ref: componentRef(this.#sharedRoot(own, schema)) };
  }

  /** The name of a long schema that was added before and is the same in all that it says, and to importers. */
  #sharedRoot(own: string, schema: JsonSchemaObject): string {
    const text = this.#pointers.has(schema) ? JSON.stringify(this.#schemas.get(own)) : "";
    if (text.length < LONG_ROOT) return own;
    const name = this.#roots.get(text) ?? own;
    this.#roots.set(text, name);
    if (name !== own) this.#remove(own, schema);
    this.#pointers.set(schema, componentRef(name));
    return name;
  }

  /** What says nothing but that it is one of its definitions needs no component of its own, where importers can put it together again. */
  #addReference(name: string, schema: JsonSchemaObject, target: string): JsonSchemaObject {
    let found = this.#usualName(schema, target);
    if (found === undefined) {
      const own = this.#names.take([name]);
      this.#put(own, schema);
      found = this.#usualName(schema, target);
      if (found === undefined) return { $ref: componentRef(own) };
      this.#remove(own, schema);
    }
    this.#pointers.set(schema, writeReference(componentRef(found)));
    return { $ref: componentRef(found) };
  }

  #usualName(schema: JsonSchemaObject, known: string): string | undefined {
    const usual = this.#usualIn(schema);
    return isSeparable(schema, (each) => usual.get(each)?.plain.refs) ? usual.get(known)?.name : undefined;
  }

  /** Adds a schema in the same way, and gives each of its properties; none where it cannot be described. */
  addProperties(name: string, schema: JsonSchemaObject): Readonly<Record<string, JsonSchemaObject>> {
    const own = this.#names.take([name]);
    const addition = this.#put(own, schema);
    const written: Record<string, JsonSchemaObject> = {};
    if (addition === undefined) return written;
    const { links: targets, parts } = addition;
    const sites: ReferenceSite[] = [];
    const properties = isObject(schema["properties"]) ? schema["properties"] : {};
    for (const key of Object.keys(properties)) {
      setOwn(written, key, toDocumentMember(properties[key], { targets, named: parts, sites }));
    }
    fill(sites, (target) => parts.get(target)?.name);
    if ([...parts.values()].every((part) => part.sites.length === 0)) this.#remove(own, schema);
    return written;
  }

  /** What an importer gets a schema back from: the reference to the component it was added as or refers to, or the schema word for word. */
  exactly(schema: JsonSchema): JsonSchema | string {
    return (isObject(schema) ? this.#pointers.get(schema) : undefined) ?? toExactSchema(schema);
  }

  /** By name, in alphabetical order. */
  toJson(): Readonly<Record<string, JsonSchema>> {
    return Object.fromEntries([...this.#schemas].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** Gives nothing where not all of it can be described. */
  #put(own: string, root: JsonSchemaObject): Addition | undefined {
    const usual = this.#usualIn(root);
    const canPart = isSeparable(root, (known) => usual.get(known)?.plain.refs);
    const standIns = canPart ? usual : new Map<string, UsualDefinition>();
    try {
      const addition = takeApart(withStandIns(root, standIns), canPart);
      for (const part of addition.parts.values()) part.name = standIns.get(part.known)?.name ?? "";
      for (const circle of circlesOf(addition.parts)) this.#name(circle, own, addition);
      if (canPart) this.#pointers.set(root, componentRef(own));
      if (canPart) this.#learn(addition, standIns);
      return addition;
    } catch (error) {
      if (!(error instanceof NotDescribable)) throw error;
      this.#schemas.set(own, NOT_DESCRIBABLE);
      return undefined;
    }
  }

  /** The definitions of a schema that are among the components already, and mean the same here. */
  #usualIn({ $defs }: JsonSchemaObject): ReadonlyMap<string, UsualDefinition> {
    const found = new Map<string, UsualDefinition>();
    for (const known of isObject($defs) ? Object.keys($defs) : []) {
      const usual = findSame(this.#usual.get(known), ($defs as JsonSchemaObject)[known]);
      if (usual !== undefined) found.set(known, usual);
    }
    return withSameReferences(found);
  }

  /** Remembers definitions that mean the same in any other schema. */
  #learn({ root, parts }: Addition, usual: ReadonlyMap<string, UsualDefinition>): void {
    const made = new Map<string, UsualDefinition & { readonly refs: Map<string, UsualDefinition> }>();
    for (const { schema, known, name } of parts.values()) {
      const plain = schema === root || usual.has(known) ? undefined : surveyPlainSchema(schema);
      if (plain?.refersToRoot === false) made.set(known, { name, schema, plain, refs: new Map() });
    }
    learnReferences(made, usual, (known, definition) => {
      const others = this.#usual.get(known) ?? [];
      if (others.length < MOST_OF_ONE_NAME) this.#usual.set(known, [...others, definition]);
    });
  }

  /** A schema that is written elsewhere, and that no other refers to. */
  #remove(own: string, schema: JsonSchemaObject): void {
    this.#schemas.delete(own);
    if (this.#pointers.get(schema) === componentRef(own)) this.#pointers.delete(schema);
  }

  /** Names parts that refer to each other; all else that they refer to has a name. */
  #name(circle: readonly Part[], own: string, addition: Addition): void {
    const nameOf = (target: JsonSchemaObject) => addition.parts.get(target)?.name;
    if (circle.every(({ name }) => name !== "")) return;
    // By their place among each other, so that circles are equal wherever they are entered.
    circle.forEach((part, at) => {
      part.name = `/${at}`;
    });
    for (const { sites } of circle) fill(sites, nameOf);
    const isShared = circle.every((part) => part.schema !== addition.root);
    const text = isShared ? JSON.stringify(circle.map(({ known, written }) => [known, written])) : "";
    const source =
      isShared && addition.isSeparable ? JSON.stringify(circle.map(({ schema }) => schema)) : undefined;
    // What says the same is the same component, unless importers would get another schema back.
    const equal = this.#shared.get(text) ?? [];
    const known = equal.find((other) => source === undefined || other.source === source);
    const names = known?.names ?? circle.map((part) => this.#nameOf(part, own, addition));
    circle.forEach((part, at) => {
      part.name = names[at] as string;
    });
    if (known !== undefined) return;
    if (isShared && source !== undefined) this.#shared.set(text, [...equal, { names, source }]);
    for (const { sites } of circle) fill(sites, nameOf);
    for (const part of circle) this.#schemas.set(part.name, withExact(part, addition));
  }

  #nameOf({ schema, known }: Part, own: string, { root, isSeparable: hasNames }: Addition): string {
    if (schema === root) return own;
    const namespace = own.slice(0, own.indexOf(".") + 1);
    return this.#names.take(hasNames ? [known, `${namespace}${known}`] : [`${own}.${known || "part"}`]);
  }
}

/** The definition that a schema refers to, where it says nothing else. */
function onlyReference(schema: JsonSchemaObject): string | undefined {
  const isAlone = Object.keys(schema).every((keyword) => keyword === "$ref" || keyword === "$defs");
  return isAlone ? definitionName(schema["$ref"]) : undefined;
}

const MAX_NAME = 400;

/** Gives out names of components, each once. */
export class FreeNames {
  /** How often each name was asked for, those given out instead included. */
  readonly #taken = new Map<string, number>();

  /** The first of the names that is free; else the last, with a number. Written with the letters that components may have. */
  take(wanted: readonly string[]): string {
    const names = wanted.map((name) => name.replace(/[^A-Za-z0-9._-]/g, "_").slice(0, MAX_NAME));
    const free = names.find((name) => !this.#taken.has(name) && name !== "__proto__");
    if (free !== undefined) {
      this.#taken.set(free, 1);
      return free;
    }
    const name = names.at(-1) as string;
    let count = (this.#taken.get(name) ?? 0) + 1;
    while (this.#taken.has(`${name}_${count}`)) count++;
    this.#taken.set(name, count).set(`${name}_${count}`, 1);
    return `${name}_${count}`;
  }
}

const NOT_DESCRIBABLE: JsonSchema = {
  description: "What it takes cannot be described here; the operation checks it nevertheless.",
};

function takeApart(root: JsonSchemaObject, canPart: boolean): Addition {
  const links = new ReferenceTargets(root);
  const named = new Map([[root, ""]]);
  links.forEachReference((target, reference) => {
    if (!named.has(target)) named.set(target, lastPartOf(reference));
  });
  const parts = new Map<JsonSchemaObject, Part>();
  for (const [schema, known] of named) {
    const sites: ReferenceSite[] = [];
    const written = toDocumentSchema(schema, { targets: links, named, sites });
    parts.set(schema, { schema, known, written, sites, name: "" });
  }
  return { root, links, parts, isSeparable: canPart };
}

/** Operations of one source mostly have the very same object. */
function findSame(usual: readonly UsualDefinition[] = [], definition: unknown): UsualDefinition | undefined {
  const same = usual.find(({ schema }) => schema === definition);
  if (same !== undefined || usual.length === 0) return same;
  const text = JSON.stringify(definition);
  return usual.find((each) => {
    each.text ??= JSON.stringify(each.schema);
    return each.text === text;
  });
}

/** A schema in which definitions that are among the components already say nothing any more, and are left out where only they are referred to by each other. */
function withStandIns(root: JsonSchemaObject, usual: ReadonlyMap<string, unknown>): JsonSchemaObject {
  if (usual.size === 0) return root;
  const { $defs, ...rest } = root;
  const kept: Record<string, unknown> = {};
  const keep = (schema: JsonSchemaObject): void => {
    for (const name of surveyPlainSchema(schema)?.refs ?? []) if (usual.has(name)) kept[name] ??= {};
  };
  keep(rest);
  for (const [name, definition] of Object.entries($defs as JsonSchemaObject)) {
    if (usual.has(name) || !isObject(definition)) continue;
    kept[name] = definition;
    keep(definition);
  }
  return { ...rest, $defs: kept };
}

function lastPartOf(reference: string): string {
  const hash = reference.indexOf("#");
  const fragment = hash === -1 ? "" : reference.slice(hash + 1);
  return (fragment.startsWith("/") ? parsePointer(fragment).at(-1) : fragment) ?? "";
}

function fill(
  sites: readonly ReferenceSite[],
  nameOf: (target: JsonSchemaObject) => string | undefined,
): void {
  for (const { holder, target } of sites) holder.$ref = componentRef(nameOf(target) ?? "");
}

/** What the document says, and the schema word for word where that is something else. */
function withExact(
  { schema, written }: Part,
  { root, parts, isSeparable: isExact }: Addition,
): JsonSchemaObject {
  if (!isExact) return written;
  const { $defs, ...rest } = root;
  const exact = withReferences(schema === root ? rest : schema, (reference) => {
    const name = definitionName(reference);
    const target = name === undefined ? root : ($defs as Record<string, JsonSchemaObject>)[name];
    return componentRef(parts.get(target as JsonSchemaObject)?.name ?? "");
  });
  if (isEqual(exact, written)) return written;
  const whole = { schema: toExactSchema(exact) };
  const changes = { patch: toExactSchema({ ...findPatch(written, exact) }) };
  const isShorter = JSON.stringify(changes).length < JSON.stringify(whole).length;
  return { ...written, [EXACT]: isShorter ? changes : whole };
}

/** The parts in circles of references, most of which have one member; what a circle refers to comes before it (Tarjan). */
function circlesOf(parts: ReadonlyMap<JsonSchemaObject, Part>): readonly (readonly Part[])[] {
  const circles: Part[][] = [];
  const order = new Map<Part, number>();
  const lowest = new Map<Part, number>();
  const waiting: Part[] = [];
  const isWaiting = new Set<Part>();
  const walk: { readonly part: Part; next: number }[] = [];
  const enter = (part: Part): void => {
    order.set(part, order.size);
    lowest.set(part, order.size - 1);
    waiting.push(part);
    isWaiting.add(part);
    walk.push({ part, next: 0 });
  };
  const lower = (part: Part, to: number | undefined): void => {
    lowest.set(part, Math.min(lowest.get(part) ?? 0, to ?? 0));
  };
  for (const start of parts.values()) {
    if (order.has(start)) continue;
    enter(start);
    for (let here = walk.at(-1); here !== undefined; here = walk.at(-1)) {
      const { part } = here;
      const site = part.sites[here.next++];
      if (site !== undefined) {
        const target = parts.get(site.target) as Part;
        if (!order.has(target)) enter(target);
        else if (isWaiting.has(target)) lower(part, order.get(target));
        continue;
      }
      walk.pop();
      const above = walk.at(-1);
      if (above !== undefined) lower(above.part, lowest.get(part));
      if (lowest.get(part) !== order.get(part)) continue;
      const circle = waiting.splice(waiting.lastIndexOf(part));
      for (const member of circle) isWaiting.delete(member);
      circles.push(circle.sort((a, b) => (a.known < b.known ? -1 : 1)));
    }
  }
  return circles;
}
