import type { JsonSchema } from "../../../core/schema/json-schema.ts";
import { patternSize } from "../../../core/schema/pattern.ts";
import { definitionRef } from "../../../core/schema/plain-schema.ts";
import { rewriteSchema } from "../../../core/schema/rewrite-schema.ts";

/** A reference, and the schema object that says it. */
export interface RefSite {
  readonly holder: Record<string, unknown>;
  /** The name under `#/$defs`. */
  readonly target: string;
}

/** The subschemas of a piece that look at one and the same value. */
export interface Position {
  count: number;
  depth: number;
  readonly refs: RefSite[];
}

/** An object that requires properties. */
export interface RequiringSite {
  readonly holder: Record<string, unknown>;
  /** The schema that it is part of by `allOf`, or itself: whatever describes the same properties is reached from there. */
  readonly scope: Record<string, unknown>;
  /** What of it does not travel one way, once that was looked for. */
  readonly wrong: { input?: ReadonlySet<string>; output?: ReadonlySet<string> };
}

/** A schema made fit for the engine, and what is to be known about it. */
export interface SchemaPiece {
  schema: JsonSchema;
  /** The first looks at the value itself. */
  positions: Position[];
  /** Not those in `not` and `if`, where asking for less would refuse more. */
  requiring: RequiringSite[];
  refs: RefSite[];
  patterns: Set<string>;
  subschemas: number;
  /** Characters, written as JSON. */
  length: number;
  readonly notes: Set<string>;
}

/** A piece that allows anything. */
export function anyPiece(notes: Iterable<string> = []): SchemaPiece {
  return {
    schema: true,
    positions: [{ count: 1, depth: 1, refs: [] }],
    requiring: [],
    refs: [],
    patterns: new Set(),
    subschemas: 1,
    length: 4,
    notes: new Set(notes),
  };
}

/** Makes a piece allow anything, since the engine would refuse what it says. */
export function giveUp(piece: SchemaPiece, reason: string): void {
  piece.notes.add(reason);
  Object.assign(piece, { ...anyPiece(), notes: piece.notes });
}

/** Which way data goes: into an API, or out of it. */
export type Direction = "input" | "output";

/** What changes in a copy of a schema. */
export interface VariantChanges {
  /** The name that a definition has in the copy. */
  rename(name: string): string;
  /** Properties no longer required, by the schema that requires them. */
  readonly notRequired: ReadonlyMap<unknown, ReadonlySet<string>>;
}

/** Copies a piece's schema with other names for definitions and fewer properties required. */
export function toVariant(piece: SchemaPiece, changes: VariantChanges): JsonSchema {
  const targets = new Map(piece.refs.map(({ holder, target }) => [holder as object, target]));
  return rewriteSchema(piece.schema, {
    keywords: (schema) => {
      const target = targets.get(schema);
      const names = changes.notRequired.get(schema);
      if (target === undefined && names === undefined) return schema;
      const result: Record<string, unknown> = { ...schema };
      if (target !== undefined) result["$ref"] = definitionRef(changes.rename(target));
      relax(result, names);
      return result;
    },
  });
}

function relax(schema: Record<string, unknown>, names: ReadonlySet<string> | undefined): void {
  if (names === undefined || !Array.isArray(schema["required"])) return;
  const required = schema["required"].filter((name: string) => !names.has(name));
  if (required.length > 0) schema["required"] = required;
  else delete schema["required"];
}

/** Copies a schema without its patterns, of which there are more than the engine compiles for one operation. */
function withoutPatterns(schema: JsonSchema): JsonSchema {
  return rewriteSchema(schema, {
    keywords: ({ pattern: _, patternProperties, additionalProperties, ...rest }) =>
      patternProperties === undefined && additionalProperties !== undefined
        ? { ...rest, additionalProperties }
        : rest,
  });
}

/** What one operation may hold of schemas, well below what the engine takes of one. */
const MAX_LENGTH = 2_000_000;
const MAX_SUBSCHEMAS = 20_000;
const MAX_PATTERNS = 9_000;

/** The definitions that one operation uses, as many as the engine takes. */
export class UsedDefinitions {
  readonly schemas: Record<string, JsonSchema> = {};
  readonly notes: Set<string>;
  /** Names of those that were looked at, by the way that data goes. */
  readonly reached: Readonly<Record<Direction, Set<string>>> = { input: new Set(), output: new Set() };
  readonly #patterns = new Set<string>();
  #patternSize = 0;
  #length = 0;
  #subschemas = 0;

  constructor(notes: Set<string>) {
    this.notes = notes;
  }

  /** Counts a piece in, where there is room for it. */
  fits(piece: SchemaPiece): boolean {
    if (this.#length + piece.length > MAX_LENGTH || this.#subschemas + piece.subschemas > MAX_SUBSCHEMAS) {
      this.notes.add("The operation has more schemas than are checked; anything is allowed in those beyond.");
      return false;
    }
    this.#length += piece.length;
    this.#subschemas += piece.subschemas;
    return true;
  }

  /** Counts the patterns of a piece in, and takes them out of its schema where there is no room for them. */
  withPatterns(piece: SchemaPiece, schema: JsonSchema): JsonSchema {
    const added = [...piece.patterns].filter((pattern) => !this.#patterns.has(pattern));
    const size = added.reduce((sum, pattern) => sum + patternSize(pattern), 0);
    if (this.#patternSize + size > MAX_PATTERNS) {
      this.notes.add("The operation has more patterns than are checked; those beyond were left out.");
      return withoutPatterns(schema);
    }
    this.#patternSize += size;
    for (const pattern of added) this.#patterns.add(pattern);
    return schema;
  }
}
