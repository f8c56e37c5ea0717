import { describe, expect, it } from "vitest";
import { cpuMs } from "../../../../test/cpu-ms.ts";
import type { Field } from "./field.ts";
import { readSchema } from "./read-schema.ts";

const read = (schema: unknown, root: unknown = schema): Field => readSchema(schema, root);

function members(schema: unknown, root: unknown = schema): readonly string[] {
  const field = read(schema, root);
  return field.kind === "object"
    ? field.members.map(({ name, isRequired }) => name + (isRequired ? "!" : ""))
    : [];
}

function labels(field: Field): readonly string[] {
  if (field.kind === "variants") return field.variants.map(({ label }) => label);
  return field.kind === "choice" ? field.options.map(({ label }) => label) : [];
}

describe("readSchema", () => {
  it.each<[Field["kind"], unknown]>([
    ["text", { type: "string" }],
    ["number", { type: "integer" }],
    ["number", { type: ["integer", "number"] }],
    ["boolean", { type: "boolean" }],
    ["list", { type: "array" }],
    ["object", { type: "object" }],
    ["object", { properties: {} }],
    ["list", { items: {} }],
    ["text", { pattern: "^a" }],
    ["number", { minimum: 1 }],
    ["fixed", { const: null }],
    ["fixed", { type: "null" }],
    ["fixed", { enum: ["only"] }],
    ["choice", { enum: ["a", "b"] }],
    ["never", { enum: [] }],
    ["never", false],
    ["json", true],
    ["json", {}],
    ["json", null],
    ["json", "nonsense"],
    ["json", { type: "unheard-of" }],
    ["json", { $ref: "https://example.com/else" }],
    ["file", { type: "string", contentEncoding: "base64" }],
    ["file", { type: "string", format: "binary" }],
    ["file", { type: "string", format: "byte" }],
    ["file", { contentMediaType: "image/png" }],
    ["text", { type: "string", contentMediaType: "text/plain" }],
    ["variants", { type: ["string", "number"] }],
  ])("asks for %s by %j", (kind, schema) => {
    expect(read(schema).kind).toBe(kind);
  });

  it("knows null in all its spellings", () => {
    const nullable = [
      { type: ["string", "null"] },
      { type: "string", nullable: true },
      { anyOf: [{ type: "string" }, { type: "null" }] },
      { oneOf: [{ type: "string" }, { const: null }] },
    ];
    expect(nullable.map((schema) => read(schema))).toEqual(
      nullable.map(() => expect.objectContaining({ kind: "text", isNullable: true })),
    );
    expect(read({ enum: ["a", null] })).toMatchObject({
      kind: "choice",
      isNullable: true,
      options: [{ value: "a" }],
    });
  });

  it("puts references and allOf together", () => {
    const root = {
      $defs: {
        base: { properties: { id: { type: "string" } }, required: ["id"] },
        "a/b": { title: "Slash" },
      },
      allOf: [{ $ref: "#/$defs/base" }, { properties: { id: { minLength: 2 }, more: {} } }],
      properties: { own: {}, slash: { $ref: "#/$defs/a~1b", description: "Own words" } },
      required: ["own"],
    };
    expect(members(root)).toEqual(["own!", "slash", "id!", "more"]);
    const field = read(root);
    const id = field.kind === "object" ? field.members.find(({ name }) => name === "id") : undefined;
    expect(read(id?.schema, root)).toMatchObject({ kind: "text", hints: ["at least 2 characters"] });
    expect(read(root.properties.slash, root)).toMatchObject({ title: "Slash", description: "Own words" });
  });

  it("takes the narrower of two rules", () => {
    const schema = {
      type: "number",
      minimum: 1,
      maximum: 9,
      allOf: [{ type: "integer", minimum: 3, maximum: 20 }],
    };
    expect(read(schema)).toMatchObject({ kind: "number", isInteger: true, hints: ["3 to 9"] });
    expect(labels(read({ enum: ["a", "b", "c"], allOf: [{ enum: ["b", "c", "d"] }] }))).toEqual(["b", "c"]);
  });

  it("leaves out what is only in answers, and asks for required members that nobody described", () => {
    const properties = { id: { type: "string", readOnly: true }, a: {}, no: false };
    expect(members({ type: "object", properties, required: ["id", "b"] })).toEqual(["a", "b!"]);
  });

  it("handles names of prototypes like all others", () => {
    const schema: unknown = JSON.parse(
      '{"properties":{"__proto__":{"type":"string"},"constructor":{},"toString":{},"":{}},"required":["__proto__"]}',
    );
    expect(members(schema)).toEqual(["__proto__!", "constructor", "toString", ""]);
  });

  it("offers members of other names where the schema speaks of them", () => {
    const open = (schema: object) => {
      const field = read({ type: "object", ...schema });
      return field.kind === "object" && field.isOpen;
    };
    expect(open({})).toBe(true);
    expect(open({ properties: {} })).toBe(false);
    expect(open({ required: ["a"] })).toBe(false);
    expect(open({ properties: { a: {} } })).toBe(false);
    expect(open({ properties: { a: {} }, additionalProperties: true })).toBe(true);
    expect(open({ patternProperties: { "(a+)+$": {} } })).toBe(true);
    expect(open({ additionalProperties: false })).toBe(false);
  });

  it("reads tuples of all drafts", () => {
    const tuple = [{ type: "string" }, { type: "number" }];
    expect(read({ prefixItems: tuple, items: false })).toMatchObject({ first: tuple, max: 2 });
    expect(read({ items: tuple, additionalItems: { type: "boolean" } })).toMatchObject({
      first: tuple,
      items: { type: "boolean" },
      max: Number.POSITIVE_INFINITY,
    });
  });

  it("says rules in words", () => {
    expect(
      read({ type: "string", minLength: 2, maxLength: 2, pattern: "^a$", format: "uuid" }).hints,
    ).toEqual(["exactly 2 characters", "format uuid", "pattern ^a$"]);
    expect(
      read({ type: "number", minimum: 0, exclusiveMinimum: true, multipleOf: 0.5, default: 1 }).hints,
    ).toEqual(["more than 0", "a multiple of 0.5", "default 1"]);
    expect(read({ type: "array", minItems: 1, uniqueItems: true }).hints).toEqual([
      "at least 1 item",
      "no item twice",
    ]);
  });

  it("gives the same field for the same schema", () => {
    const root = { properties: { a: { type: "string" } } };
    expect(read(root.properties.a, root)).toBe(read(root.properties.a, root));
  });
});

describe("variants", () => {
  it("are named by title, by a value that tells them apart, by reference, or by type", () => {
    const root = {
      $defs: { Cat: { type: "object", properties: { purrs: {} } } },
      oneOf: [
        { title: "Titled", type: "object" },
        { properties: { kind: { const: "date" } } },
        { $ref: "#/$defs/Cat" },
        { type: "string" },
        { type: "string" },
        { minimum: 1, type: "unheard" },
      ],
    };
    expect(labels(read(root))).toEqual(["Titled", "date", "Cat", "String", "String (2)", "Unheard"]);
  });

  it("are chosen by the discriminator of OpenAPI", () => {
    const root = {
      $defs: {
        Cat: { properties: { type: { type: "string" } } },
        Dog: { properties: { type: { type: "string" } } },
      },
      oneOf: [{ $ref: "#/$defs/Cat" }, { $ref: "#/$defs/Dog" }],
      discriminator: { propertyName: "type", mapping: { kitty: "#/$defs/Cat" } },
    };
    const field = read(root);
    expect(labels(field)).toEqual(["kitty", "Dog"]);
    const [cat] = field.kind === "variants" ? field.variants : [];
    expect(members(cat?.schema, root)).toEqual(["type!"]);
  });

  it("that are values with titles are a choice", () => {
    const field = read({ oneOf: [{ const: 1, title: "One" }, { const: 2 }] });
    expect(field.kind).toBe("choice");
    expect(labels(field)).toEqual(["One", "2"]);
  });

  it("keep what the schema around them says", () => {
    const root = {
      type: "object",
      properties: { id: { type: "string" } },
      oneOf: [{ properties: { a: {} }, required: ["a"] }, { properties: { b: {} } }],
    };
    const field = read(root);
    const [first] = field.kind === "variants" ? field.variants : [];
    expect(members(first?.schema, root)).toEqual(["id", "a!"]);
  });

  it("that only say what is required are left to the check", () => {
    const schema = { properties: { a: {}, b: {} }, anyOf: [{ required: ["a"] }, { required: ["b"] }] };
    expect(members(schema)).toEqual(["a", "b"]);
  });

  it("of text or object take a file, too", () => {
    const field = read({ type: ["string", "object"] });
    expect(labels(field)).toEqual(["String", "Object", "File"]);
    const file = field.kind === "variants" ? field.variants[2] : undefined;
    expect(read(file?.schema, {})).toMatchObject({ kind: "file", isNamed: true });
  });
});

describe("schemas that are made to do harm", () => {
  it.each<[string, unknown]>([
    ["a reference to itself", { $ref: "#" }],
    [
      "references in a circle",
      { $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } } },
    ],
    ["its own only alternative", { anyOf: [{ $ref: "#" }] }],
    ["itself or null", { anyOf: [{ $ref: "#" }, { type: "null" }] }],
    ["itself twice", { oneOf: [{ $ref: "#" }, { $ref: "#" }] }],
    ["itself in allOf", { allOf: [{ $ref: "#" }, { $ref: "#" }] }],
    ["a reference to nowhere", { $ref: "#/%E0%A4%A/__proto__/constructor" }],
    [
      "keywords of the wrong kind",
      { type: 1, properties: [], required: {}, enum: "a", oneOf: 1, allOf: "x", items: 3 },
    ],
  ])("are read: %s", (_, schema) => {
    expect(read(schema)).toHaveProperty("kind");
  });

  it("are read although they are deep", () => {
    let deep: unknown = { type: "string" };
    for (let i = 0; i < 10_000; i++) deep = { allOf: [deep] };
    expect(read(deep)).toHaveProperty("kind");
    let chain: unknown = { type: "string" };
    for (let i = 0; i < 10_000; i++) chain = { anyOf: [chain, { type: "null" }] };
    expect(read(chain)).toHaveProperty("kind");
  });

  it("are read in no time although they are large", () => {
    const start = cpuMs();
    const values = Array.from({ length: 10_000 }, (_, index) => `value ${index}`);
    expect(labels(read({ enum: values }))).toHaveLength(10_000);
    const names = Array.from({ length: 20_000 }, (_, index) => [`p${index}`, { $ref: "#/$defs/a" }]);
    expect(members({ properties: Object.fromEntries(names), $defs: { a: { type: "string" } } })).toHaveLength(
      20_000,
    );
    const variants = Array.from({ length: 10_000 }, () => ({ allOf: [{ $ref: "#" }] }));
    expect(read({ oneOf: variants })).toHaveProperty("kind");
    expect(cpuMs() - start).toBeLessThan(3_000);
  });
});
