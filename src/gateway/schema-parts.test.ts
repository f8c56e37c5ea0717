import { describe, expect, it } from "vitest";
import type { JsonSchemaObject } from "../core/schema/json-schema.ts";
import { MOST_LOOKS, SchemaParts } from "./hide-passwords.ts";

/** Schemas, and how often any of them was asked for a word. */
function countedSchemas(count: number, word: string) {
  const asked = { times: 0 };
  const schemas = Array.from({ length: count }, () =>
    Object.defineProperty({}, word, {
      enumerable: true,
      get: () => {
        asked.times += 1;
        return undefined;
      },
    }),
  ) as JsonSchemaObject[];
  return { asked, schemas };
}

/** Asks for many members or items of a value, and gives how many of the answers were not to hide it. */
function shownOf(count: number, ask: (at: number) => unknown): number {
  return Array.from({ length: count }, (_, at) => ask(at)).filter((parts) => parts !== undefined).length;
}

describe("the schemas that hold for a value", () => {
  it.each([
    ["members", "properties"],
    ["items", "prefixItems"],
  ])("are no longer looked at for further %s once that was done often enough", (kind, word) => {
    const { asked, schemas } = countedSchemas(490, word);
    const parts = new SchemaParts({ anyOf: schemas });
    const own = parts.of(schemas) ?? [];
    expect(own).toHaveLength(490);
    asked.times = 0;
    const shown = shownOf(28_000, (at) =>
      kind === "members" ? parts.ofMember(own, `m${at}`) : parts.ofItem(own, at),
    );
    expect(asked.times).toBeLessThanOrEqual(MOST_LOOKS);
    expect(shown).toBeGreaterThan(0);
    expect(shown).toBeLessThan(MOST_LOOKS / 490);
  });

  it("are counted one by one: as many as that are looked at, and not one more", () => {
    const parts = new SchemaParts({});
    const lists = Array.from({ length: MOST_LOOKS / 100 }, () => Array.from({ length: 100 }, () => true));
    expect(lists.every((list) => parts.of(list) !== undefined)).toBe(true);
    expect(parts.of([])).toEqual([]);
    expect(parts.of([true])).toBeUndefined();
    expect(parts.of([])).toBeUndefined();
  });

  it("count where they say nothing, or the same once more", () => {
    const same = {};
    for (const anyOf of [Array.from({ length: 400 }, () => true), Array.from({ length: 400 }, () => same)]) {
      const root = { additionalProperties: { anyOf } };
      const parts = new SchemaParts(root as JsonSchemaObject);
      const own = parts.of([root]) ?? [];
      expect(shownOf(28_000, (at) => parts.ofMember(own, `m${at}`))).toBeLessThan(MOST_LOOKS / 400);
    }
  });

  it("may be more than a function takes arguments", () => {
    const root = { anyOf: Array.from({ length: 400_000 }, () => true) };
    expect(new SchemaParts(root as JsonSchemaObject).of([root])).toBeUndefined();
  });
});
