import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../../test/runs.ts";
import { compileSchema } from "../schema/compile-schema.ts";
import { cutToFit, describeCuts, toCutFacts } from "./cut-data.ts";
import { type MeasuredJson, measureParts } from "./measure-json.ts";
import { type DataCut, type ShortenPlan, shortenData, tryShorten } from "./shorten-data.ts";

const rows = (count: number) => Array.from({ length: count }, (_, id) => ({ id, name: `row number ${id}` }));
const sizeOf = (value: unknown): number => JSON.stringify(value).length;

describe("cutting data to fit", () => {
  it("X-10 cuts one item where one character is too many, and sets the flag that the data has", () => {
    const data = { rows: rows(10), truncated: false };
    const size = sizeOf(data);
    for (const schema of [
      undefined,
      { type: "object" },
      { properties: { truncated: { type: "boolean" } } },
    ]) {
      expect(cutToFit(data, { schema, maxCharacters: size }).truncated).toBe(false);
      expect(cutToFit(data, { schema, maxCharacters: size - 1 })).toEqual({
        data: { rows: rows(9), truncated: true },
        truncated: true,
        cuts: [{ pointer: "/rows", kind: "items", kept: 9, total: 10 }],
      });
    }
  });

  it("TR-6 cuts nothing of data that would have to say that it is whole", () => {
    const data = { rows: rows(50), truncated: false };
    const schema = { properties: { truncated: { const: false } } };
    expect(cutToFit(data, { schema, maxCharacters: 500 }).data).toBe(data);
    const silent = { rows: rows(50) };
    expect(cutToFit(silent, { schema, maxCharacters: 500 }).data).not.toHaveProperty("truncated");
  });

  it("TR-6 leaves a member alone that has the name of the flag and is none", () => {
    for (const truncated of ["no", { by: "hand" }]) {
      const data = { rows: rows(50), truncated };
      const schema = { properties: { truncated: { type: ["boolean", "string", "object"] } } };
      expect(cutToFit(data, { schema, maxCharacters: 500 }).data).toMatchObject({ truncated });
    }
  });

  it.each([
    ["a reference", { $ref: "#/$defs/page" }],
    ["a part", { allOf: [{ $ref: "#/$defs/page" }] }],
    ["a branch", { anyOf: [{ type: "null" }, { $ref: "#/$defs/page" }] }],
    [
      "a part of what refers to itself",
      { allOf: [{ $ref: "#/$defs/page" }], properties: { in: { $ref: "#" } } },
    ],
  ])("TR-6 finds the flag that %s declares", (_, root) => {
    const page = { type: "object", properties: { rows: {}, truncated: { type: "boolean" } } };
    const schema = { ...root, $defs: { page } };
    const { data } = cutToFit({ rows: rows(50) }, { schema, maxCharacters: 500 });
    expect(data).toHaveProperty("truncated", true);
  });

  it.each(["format", "contentEncoding"])("X-10 cuts no string whose form a schema gives by %s", (keyword) => {
    const form = { type: "string", [keyword]: "some" };
    const text = "a word or two ".repeat(40);
    const data = { list: [text, text], text };
    const schema = compileSchema({
      properties: { list: { minItems: 2, items: { anyOf: [{ $ref: "#/$defs/form" }] } } },
      required: ["list", "text"],
      $defs: { form },
    });
    const cut = cutToFit(data, { schema, maxCharacters: 1_300 });
    expect(cut.data).toEqual({ list: [text, text], text: expect.stringMatching(/^a word .*…$/) });
    expect(cut.cuts).toMatchObject([{ pointer: "/text", kind: "characters" }]);
    expect(cutToFit(data, { schema, maxCharacters: 1_000 }).data).toBe(data);
  });

  it("X-10 leaves properties out of data that may be anything, where it is told so", () => {
    const data = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`n${i}`, i]));
    expect(cutToFit(data, { maxCharacters: 500 }).data).toBe(data);
    const cut = cutToFit(data, { maxCharacters: 500, dropsProperties: true });
    expect(sizeOf(cut.data)).toBeLessThanOrEqual(500);
    expect(cut.cuts.every(({ kind }) => kind === "property")).toBe(true);
  });

  it("X-10 takes over what it does not cut, without what JSON leaves out", () => {
    const first = { id: 0, tags: ["a"] };
    const data = { rows: [first, { id: 1, note: undefined }, ...rows(500)] };
    const cut = cutToFit(data, { maxCharacters: 500 });
    expect(cut.data.rows[0]).toBe(first);
    expect(Object.keys(cut.data.rows[1] ?? {})).toEqual(["id"]);
  });

  it("X-10 finds in a trial exactly what a cut turns out to be", () => {
    const limits = (measured: MeasuredJson, maxCharacters: number) => ({
      maxCharacters,
      parts: measured.parts,
      work: { left: 1_000_000 },
    });
    fc.assert(
      fc.property(
        fc.jsonValue({ stringUnit: "binary" }),
        fc.nat({ max: 4 }),
        fc.integer({ min: 1, max: 12 }),
        fc.nat({ max: 90 }),
        (value, items, characters, most) => {
          const plan: ShortenPlan = {
            items,
            characters,
            floors: new Map(),
            dropped: new Set(),
            isFlagged: false,
          };
          const measured = measureParts(value);
          const cut = shortenData(value, plan, limits(measured, most));
          const kinds = tryShorten(value, plan, limits(measured, most));
          expect(kinds).toEqual(
            cut && {
              items: cut.cuts.some(({ kind }) => kind === "items"),
              characters: cut.cuts.some(({ kind }) => kind === "characters"),
            },
          );
          if (cut !== undefined) expect(sizeOf(cut.data)).toBeLessThanOrEqual(most);
        },
      ),
      runs(500),
    );
  });
});

describe("saying what was cut", () => {
  const cut = (pointer: string, kind: DataCut["kind"], kept = 0, total = 1): DataCut => ({
    pointer,
    kind,
    kept,
    total,
  });

  it("X-10 names the arrays that lost most, then properties, then strings, and counts the others", () => {
    expect(describeCuts([cut("/items", "items", 20, 3_000)])).toBe("/items shows 20 of 3,000 items");
    expect(describeCuts([cut("", "items", 1, 2)])).toBe("the data shows 1 of 2 items");
    const many = [
      cut("/t", "characters", 80, 5_000),
      cut("/p", "property"),
      cut("/b", "items", 1, 5),
      cut("/a", "items", 1, 50),
    ];
    expect(describeCuts(many)).toBe(
      "/a shows 1 of 50 items, /b shows 1 of 5 items, /p is left out, 1 more cut",
    );
    expect(describeCuts([...many, cut("/q", "property")])).toMatch(/, 2 more cuts$/);
  });

  it("X-10 shows names of the data as one short line", () => {
    const said = describeCuts([cut(`/a\nb\u202e${"x".repeat(500)}`, "property")]);
    expect(said).toMatch(/^\/a bx+… is left out$/);
    expect(said.length).toBeLessThan(100);
  });

  it("X-10 lists 100 cuts and counts one more, and those whose pointer is long", () => {
    const many = Array.from({ length: 100 }, (_, i) => cut(`/${i}`, "property"));
    expect(toCutFacts(many)).toEqual({ cuts: many });
    expect(toCutFacts([...many, cut("/x", "property")])).toEqual({ cuts: many, omittedCuts: 1 });
    const long = cut(`/${"x".repeat(500)}`, "property");
    expect(toCutFacts([long, cut("/y", "property")])).toEqual({
      cuts: [cut("/y", "property")],
      omittedCuts: 1,
    });
  });
});
