import type { JsonSchema } from "../../../core/schema/json-schema.ts";
import { patternSize } from "../../../core/schema/pattern-size.ts";
import type { SchemaPiece } from "./schema-piece.ts";
import { type Direction, withoutPatterns } from "./schema-variant.ts";

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
