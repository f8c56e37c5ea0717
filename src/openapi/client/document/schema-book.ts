import { createHash } from "node:crypto";
import { isObject, isSchema, type JsonSchema } from "../../../core/schema/json-schema.ts";
import { SCHEMA_LIMITS } from "../../../core/schema/limits.ts";
import { definitionName, definitionRef } from "../../../core/schema/plain-schema.ts";
import { snapshotSchema } from "../../../core/schema/snapshot-schema.ts";
import { shortText } from "../../../core/text/truncate-text.ts";
import { cleanSchema } from "./clean-schema.ts";
import { type CopyContext, copySchema } from "./copy-schema.ts";
import { type DocumentFile, type DocumentVersion, type Located, upgradeSchemas } from "./document-file.ts";
import type { DocumentFiles } from "./document-files.ts";
import {
  anyPiece,
  type Direction,
  giveUp,
  type Position,
  type RefSite,
  type RequiringSite,
  type SchemaPiece,
  toVariant,
  type UsedDefinitions,
} from "./schema-piece.ts";

/** A schema that others refer to; its piece is made when an operation first needs it. */
interface Definition extends SettledPiece {
  readonly at: Located;
  piece: SchemaPiece;
  isMade: boolean;
  /** Whether it requires what does not travel this way, itself or behind its references. */
  readonly differs: { input?: boolean; output?: boolean };
  /** As operations have it: one frozen object, so that all of them share what the engine makes of it. */
  readonly frozen: Partial<Record<Direction | "both", JsonSchema>>;
}

/** Schemas looked at, over a whole document, for whether what is required travels; past that it stays required. */
const MAX_LOOKS = 20_000_000;
const PLAIN_PLACE = /^#\/(?:components\/schemas|definitions)\/([A-Za-z0-9_.-]{1,200})$/;

/** The schemas of a document, each upgraded and mended once, when it is first needed. */
export class SchemaBook {
  readonly #files: DocumentFiles;
  readonly #version: DocumentVersion;
  readonly #definitions = new Map<string, Definition>();
  readonly #names = new Map<string, string>();
  readonly #circles = new Map<object, string>();
  readonly #looks = { left: MAX_LOOKS };

  constructor(files: DocumentFiles, version: DocumentVersion) {
    this.#files = files;
    this.#version = version;
  }

  /** Copies a schema of the document for its upgrade, its references leading to definitions. */
  copy(schema: unknown, file: DocumentFile, notes: Set<string>): unknown {
    return copySchema(schema, this.#context(file, notes));
  }

  /** Makes an upgraded copy a schema of an operation; `used` receives all that it refers to. */
  use(copied: unknown, direction: Direction, used: UsedDefinitions): JsonSchema {
    const piece = cleanSchema(copied);
    this.#make(piece);
    boundPiece(piece, this.#find);
    for (const note of piece.notes) used.notes.add(note);
    const reached = this.#reach(piece, used.reached[direction]);
    this.#compare(reached, direction);
    for (const definition of reached) this.#include(definition, direction, used);
    if (!used.fits(piece)) return true;
    const schema = this.#differs(piece, direction) ? this.#vary(piece, direction) : piece.schema;
    return used.withPatterns(piece, schema);
  }

  /** The schema behind references, to look at. */
  peek(schema: JsonSchema | undefined): JsonSchema | undefined {
    let here = schema;
    for (let hop = 0; hop < 16 && typeof here === "object"; hop++) {
      const behind = this.#rootOf(here["$ref"]);
      if (behind === undefined) return here;
      here = behind;
    }
    return here;
  }

  readonly #find = (name: string): Definition | undefined => this.#definitions.get(name);

  readonly #rootOf = (reference: unknown): JsonSchema | undefined => {
    const name = definitionName(reference);
    return name === undefined ? undefined : this.#definitions.get(name)?.piece.schema;
  };

  #context(file: DocumentFile, notes: Set<string>): CopyContext {
    return {
      file,
      hasSiblings: this.#version === "3.1",
      refer: (reference, from) => this.#refer(reference, from, notes),
      referToObject: (schema, from) => this.#referToObject(schema, from),
      note: (sentence) => notes.add(sentence),
    };
  }

  #refer(reference: string, from: DocumentFile, notes: Set<string>): string | undefined {
    const at = this.#files.resolve(reference, from);
    const reason = typeof at === "string" ? at : isSchema(at.value) ? undefined : "it points at no schema";
    if (typeof at !== "string" && reason === undefined) return definitionRef(this.#define(at));
    notes.add(
      `The reference ${JSON.stringify(shortText(reference, 100))} leads nowhere (${reason}); anything is allowed there.`,
    );
    return undefined;
  }

  #referToObject(schema: object, file: DocumentFile): string {
    const key = this.#circles.get(schema) ?? `circle ${this.#circles.size}`;
    this.#circles.set(schema, key);
    return definitionRef(this.#define({ value: schema, file, key }));
  }

  #define(at: Located): string {
    const known = this.#names.get(at.key);
    if (known !== undefined) return known;
    const name = this.#newName(at.key, at.file === this.#files.root);
    const made = { piece: anyPiece(), isMade: false, differs: {}, frozen: {} };
    this.#definitions.set(name, { name, at, ...made });
    return name;
  }

  #newName(key: string, isInRoot: boolean): string {
    const place = key.slice(key.indexOf("#"));
    const plain = isInRoot ? PLAIN_PLACE.exec(place)?.[1] : undefined;
    let name = plain === undefined || plain === "__proto__" ? madeName(place, key) : plain;
    for (let i = 0; this.#definitions.has(name); i++) name = madeName(name, `${i} ${key}`);
    this.#names.set(key, name);
    return name;
  }

  /** Makes everything a piece leads to, a round of references at a time. */
  #make(start: SchemaPiece): void {
    const made: Definition[] = [];
    let round = this.#unmade([start]);
    while (round.length > 0) {
      this.#makeAll(round);
      made.push(...round);
      round = this.#unmade(round.map(({ piece }) => piece));
    }
    settlePieces(made, this.#find);
  }

  #unmade(pieces: readonly SchemaPiece[]): Definition[] {
    const found = new Set<Definition>();
    for (const { refs } of pieces) {
      for (const { target } of refs) {
        const definition = this.#definitions.get(target);
        if (definition !== undefined && !definition.isMade) found.add(definition);
      }
    }
    return [...found];
  }

  #makeAll(definitions: readonly Definition[]): void {
    const copies: Record<string, unknown> = {};
    const notes = new Map<string, Set<string>>();
    for (const { name, at } of definitions) {
      const own = new Set<string>();
      notes.set(name, own);
      copies[name] = this.copy(at.value, at.file, own);
    }
    const upgraded = upgradeSchemas(copies, this.#version);
    for (const definition of definitions) {
      definition.isMade = true;
      definition.piece = cleanSchema(upgraded[definition.name], notes.get(definition.name));
    }
  }

  /** What a piece leads to, apart from what was reached before, which receives it. */
  #reach(start: SchemaPiece, before: Set<string>): Set<Definition> {
    const reached = new Set<Definition>();
    const add = ({ refs }: SchemaPiece) => {
      for (const { target } of refs) {
        if (before.has(target)) continue;
        before.add(target);
        const definition = this.#definitions.get(target);
        if (definition !== undefined) reached.add(definition);
      }
    };
    add(start);
    for (const { piece } of reached) add(piece);
    return reached;
  }

  /** Finds the definitions that differ by direction, from those that do themselves back along references. */
  #compare(reached: ReadonlySet<Definition>, direction: Direction): void {
    const unknown = [...reached].filter(({ differs }) => differs[direction] === undefined);
    if (unknown.length === 0) return;
    const referrers = new Map<string, Definition[]>();
    const found: Definition[] = [];
    for (const definition of unknown) {
      const { piece, differs } = definition;
      for (const { target } of piece.refs) {
        const list = referrers.get(target);
        if (list === undefined) referrers.set(target, [definition]);
        else list.push(definition);
      }
      const isKnown = piece.refs.some(({ target }) => this.#find(target)?.differs[direction] === true);
      differs[direction] = isKnown || piece.requiring.some((site) => this.#wrong(site, direction).size > 0);
      if (differs[direction]) found.push(definition);
    }
    for (let next = found.pop(); next !== undefined; next = found.pop()) {
      for (const referrer of referrers.get(next.name) ?? []) {
        if (referrer.differs[direction] === true) continue;
        referrer.differs[direction] = true;
        found.push(referrer);
      }
    }
  }

  #wrong(site: RequiringSite, direction: Direction): ReadonlySet<string> {
    const search = { direction, rootOf: this.#rootOf, budget: this.#looks };
    site.wrong[direction] ??= wronglyRequired(site, search);
    return site.wrong[direction];
  }

  #differs(piece: SchemaPiece, direction: Direction): boolean {
    return (
      piece.refs.some(({ target }) => this.#find(target)?.differs[direction] === true) ||
      piece.requiring.some((site) => this.#wrong(site, direction).size > 0)
    );
  }

  #vary(piece: SchemaPiece, direction: Direction): JsonSchema {
    return toVariant(piece, {
      rename: (name) => this.#nameIn(name, direction),
      notRequired: new Map(piece.requiring.map((site) => [site.holder, this.#wrong(site, direction)])),
    });
  }

  #nameIn(name: string, direction: Direction): string {
    const definition = this.#definitions.get(name);
    if (definition?.differs[direction] !== true) return name;
    const key = `${direction} ${definition.at.key}`;
    return this.#names.get(key) ?? this.#variantName(name, direction, key);
  }

  #variantName(name: string, direction: Direction, key: string): string {
    let variant = `${name}.${direction}`;
    for (let i = 0; this.#definitions.has(variant) || this.#isPlain(variant); i++) {
      variant = madeName(variant, `${i} ${key}`);
    }
    this.#names.set(key, variant);
    // Keeps the name, and is never referred to by a document.
    this.#definitions.set(variant, {
      ...{ name: variant, at: { value: true, file: this.#files.root, key }, piece: anyPiece(), isMade: true },
      ...{ differs: {}, frozen: {} },
    });
    return variant;
  }

  /** Whether the document itself has a schema of that name, needed or not. */
  #isPlain(name: string): boolean {
    const { root } = this.#files;
    return ["#/components/schemas/", "#/definitions/"].some(
      (place) => typeof this.#files.resolve(place + name, root) !== "string",
    );
  }

  #include(definition: Definition, direction: Direction, used: UsedDefinitions): void {
    const name = this.#nameIn(definition.name, direction);
    if (Object.hasOwn(used.schemas, name)) return;
    for (const note of definition.piece.notes) used.notes.add(note);
    const schema = this.#schemaIn(definition, direction);
    if (!used.fits(definition.piece)) used.schemas[name] = true;
    else used.schemas[name] = used.withPatterns(definition.piece, schema);
  }

  #schemaIn(definition: Definition, direction: Direction): JsonSchema {
    const { frozen, differs, piece } = definition;
    const way = differs[direction] === true ? direction : "both";
    frozen[way] ??= freeze(way === "both" ? piece.schema : this.#vary(piece, way));
    return frozen[way];
  }
}

/** One that the engine does not take stays as it is, and is refused with the operation that uses it. */
function freeze(schema: JsonSchema): JsonSchema {
  try {
    return snapshotSchema(schema, SCHEMA_LIMITS);
  } catch {
    return schema;
  }
}

function madeName(place: string, key: string): string {
  const hash = createHash("sha256").update(key).digest("hex").slice(0, 10);
  const words = place
    .replace(/^#?\/?(?:components\/schemas\/|definitions\/)?/, "")
    .replace(/[^A-Za-z0-9_.-]+/g, "_");
  return `${words.slice(-80)}-${hash}`;
}

/** What looking for them needs. */
export interface RequiredSearch {
  readonly direction: Direction;
  /** The schema behind a reference. */
  rootOf(reference: unknown): JsonSchema | undefined;
  /** Schemas and properties that may still be looked at, over a whole document. */
  readonly budget: { left: number };
}

type Fields = Record<string, unknown>;

const COMBINING = ["allOf", "anyOf", "oneOf"];

/** Finds properties that an object requires although they do not travel this way, wherever they are described. */
function wronglyRequired({ holder, scope }: RequiringSite, search: RequiredSearch): ReadonlySet<string> {
  const wrong = new Set<string>();
  const required = holder["required"] as readonly string[];
  for (const schema of described([holder, scope], search)) {
    const { properties } = schema;
    if (!isObject(properties)) continue;
    for (const name of required) {
      if (--search.budget.left < 0) return wrong;
      if (!wrong.has(name) && Object.hasOwn(properties, name) && isFlagged(properties[name], search)) {
        wrong.add(name);
      }
    }
  }
  return wrong;
}

function isFlagged(property: unknown, search: RequiredSearch): boolean {
  if (!isObject(property)) return false;
  const flag = search.direction === "input" ? "readOnly" : "writeOnly";
  for (const schema of described([property], search)) if (schema[flag] === true) return true;
  return false;
}

/** Every schema that describes the same value as the first ones do, each once. */
function* described(start: readonly Fields[], { rootOf, budget }: RequiredSearch): Generator<Fields> {
  const seen = new Set<Fields>(start);
  for (const schema of seen) {
    if (--budget.left < 0) return;
    yield schema;
    const behind = schema["$ref"] === undefined ? undefined : rootOf(schema["$ref"]);
    if (isObject(behind)) seen.add(behind);
    for (const keyword of COMBINING) {
      const list = schema[keyword];
      if (Array.isArray(list)) for (const item of list) if (isObject(item)) seen.add(item);
    }
  }
}

/** A schema under `#/$defs`, with what looking at one value by it takes. */
export interface SettledPiece {
  readonly name: string;
  readonly piece: SchemaPiece;
  /** Subschemas that look at the value itself, those behind references included. */
  cost?: number | undefined;
  /** How deep references and combinations go, before a part of the value is looked at. */
  depth?: number | undefined;
}

/** Well below what the engine takes, so that several fit under one roof. */
const MAX_COST = 2_500;
const MAX_DEPTH = 160;
const LOOP = "A schema refers to itself without saying anything; anything is allowed there.";
const TOO_MUCH = "A schema combines more schemas than are checked; anything is allowed there.";

/** Measures definitions, and takes out what would never end: references in circles, and combinations without bounds. */
function settlePieces(
  pieces: readonly SettledPiece[],
  find: (name: string) => SettledPiece | undefined,
): void {
  for (const start of pieces) descend(start, find);
  for (const { piece } of pieces) boundPiece(piece, find);
}

/** Gives up on a piece where one of its positions would take too much. */
function boundPiece(piece: SchemaPiece, find: (name: string) => SettledPiece | undefined): void {
  for (const position of piece.positions) {
    const { cost, depth } = measure(position, find);
    if (cost <= MAX_COST && depth <= MAX_DEPTH) continue;
    giveUp(piece, TOO_MUCH);
    return;
  }
}

interface Frame {
  readonly settled: SettledPiece;
  readonly sites: readonly RefSite[];
  next: number;
}

function descend(start: SettledPiece, find: (name: string) => SettledPiece | undefined): void {
  if (start.cost !== undefined) return;
  const open = new Set<SettledPiece>([start]);
  const stack: Frame[] = [frameOf(start)];
  for (let frame = stack.at(-1); frame !== undefined; frame = stack.at(-1)) {
    const site = frame.sites[frame.next++];
    if (site === undefined) {
      finish(frame.settled, find);
      open.delete(frame.settled);
      stack.pop();
      continue;
    }
    const target = find(site.target);
    if (target === undefined || target.cost !== undefined) continue;
    if (open.has(target)) unlink(frame.settled.piece, site);
    else {
      open.add(target);
      stack.push(frameOf(target));
    }
  }
}

function frameOf(settled: SettledPiece): Frame {
  return { settled, sites: [...(settled.piece.positions[0]?.refs ?? [])], next: 0 };
}

function finish(settled: SettledPiece, find: (name: string) => SettledPiece | undefined): void {
  const [root] = settled.piece.positions;
  const measured = root === undefined ? { cost: 1, depth: 1 } : measure(root, find);
  if (measured.cost > MAX_COST || measured.depth > MAX_DEPTH) giveUp(settled.piece, TOO_MUCH);
  const fits = measured.cost <= MAX_COST && measured.depth <= MAX_DEPTH;
  settled.cost = fits ? measured.cost : 1;
  settled.depth = fits ? measured.depth : 1;
}

function measure(
  position: Position,
  find: (name: string) => SettledPiece | undefined,
): { cost: number; depth: number } {
  let cost = position.count;
  let deepest = 0;
  for (const { target } of position.refs) {
    const settled = find(target);
    cost += settled?.cost ?? 1;
    deepest = Math.max(deepest, settled?.depth ?? 1);
  }
  return { cost, depth: position.depth + deepest };
}

function unlink(piece: SchemaPiece, site: RefSite): void {
  delete site.holder["$ref"];
  piece.notes.add(LOOP);
  piece.refs = piece.refs.filter((other) => other !== site);
  for (const position of piece.positions) {
    const at = position.refs.indexOf(site);
    if (at !== -1) position.refs.splice(at, 1);
  }
}
