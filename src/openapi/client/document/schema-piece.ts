import type { JsonSchema } from "../../../core/schema/json-schema.ts";

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

const DEFS = "#/$defs/";

/** Writes the reference to a definition, whose name holds nothing that needs escaping. */
export function toDefinitionRef(name: string): string {
  return DEFS + name;
}

/** Reads the name out of a reference to a definition. */
export function definitionName(reference: unknown): string | undefined {
  return typeof reference === "string" && reference.startsWith(DEFS)
    ? reference.slice(DEFS.length)
    : undefined;
}
