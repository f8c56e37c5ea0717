import { createHash } from "node:crypto";
import { isSchema, type JsonSchema } from "../../../core/schema/json-schema.ts";
import { SCHEMA_LIMITS } from "../../../core/schema/limits.ts";
import { snapshotSchema } from "../../../core/schema/snapshot-schema.ts";
import { cleanSchema } from "./clean-schema.ts";
import { type CopyContext, copySchema } from "./copy-schema.ts";
import type { DocumentFile, Located } from "./document-file.ts";
import type { DocumentFiles } from "./document-files.ts";
import {
  anyPiece,
  definitionName,
  type RequiringSite,
  type SchemaPiece,
  toDefinitionRef,
} from "./schema-piece.ts";
import { type Direction, toVariant } from "./schema-variant.ts";
import { boundPiece, type SettledPiece, settlePieces } from "./settle-pieces.ts";
import { type DocumentVersion, upgradeSchemas } from "./upgrade-document.ts";
import type { UsedDefinitions } from "./used-definitions.ts";
import { wronglyRequired } from "./wrongly-required.ts";

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
    if (typeof at !== "string" && reason === undefined) return toDefinitionRef(this.#define(at));
    notes.add(
      `The reference ${JSON.stringify(clip(reference))} leads nowhere (${reason}); anything is allowed there.`,
    );
    return undefined;
  }

  #referToObject(schema: object, file: DocumentFile): string {
    const key = this.#circles.get(schema) ?? `circle ${this.#circles.size}`;
    this.#circles.set(schema, key);
    return toDefinitionRef(this.#define({ value: schema, file, key }));
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

function clip(text: string): string {
  return text.length > 100 ? `${text.slice(0, 100)}…` : text;
}
