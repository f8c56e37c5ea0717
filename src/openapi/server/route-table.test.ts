import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { query, stream } from "../../../test/make-operation.ts";
import { runs } from "../../../test/runs.ts";
import { defineOperation } from "../../core/operation/operation.ts";
import type { AnySchema } from "../../core/schema/any-schema.ts";
import { compileSchema } from "../../core/schema/compile-schema.ts";
import type { JsonSchema, JsonSchemaObject } from "../../core/schema/json-schema.ts";
import { Type } from "../../index.ts";
import {
  inputPlaceOf,
  MAX_QUERY_PARAMETERS,
  MAX_QUERY_PROPERTIES,
  operationPath,
  type QueryParameter,
  readQuery,
  writeQuery,
} from "./route-table.ts";

const text = { type: "string" };

function placeFor(inputSchema: AnySchema | undefined) {
  return inputPlaceOf(query("a.b", () => 1, inputSchema === undefined ? {} : { inputSchema }));
}

function parametersFor(properties: JsonSchemaObject): readonly QueryParameter[] {
  const place = placeFor({ type: "object", properties });
  if (place.place !== "query") throw new Error("It goes into the body.");
  return place.parameters;
}

function manyProperties(count: number): JsonSchemaObject {
  const properties = Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${at}`, text]));
  return { type: "object", properties };
}

/** A member named `constructor` would be taken for that of a class. */
function entriesOf(
  written: string,
  parameters: readonly QueryParameter[],
): readonly (readonly [string, unknown])[] {
  return Object.entries(readQuery(written, parameters).input);
}

describe("where an input goes", () => {
  it.each<[string, JsonSchemaObject]>([
    [
      "texts, numbers and booleans",
      { type: "object", properties: { a: text, b: { type: "integer" }, c: { type: "boolean" } } },
    ],
    [
      "values listed by name",
      { type: "object", properties: { a: { enum: [1, 2] }, b: { const: "x" }, c: { enum: [true] } } },
    ],
    [
      "lists that are not empty",
      { type: "object", properties: { a: { type: "array", items: text, minItems: 1 } } },
    ],
    ["lists that may be empty", { type: "object", properties: { a: { type: "array", items: text } } }],
    [
      "choices of one type",
      {
        type: "object",
        properties: {
          a: { anyOf: [{ const: "x" }, { enum: ["y", "z"] }, text] },
          b: { type: "array", items: { oneOf: [{ const: 1 }, { type: "integer" }] } },
          c: { oneOf: [{ anyOf: [{ type: "boolean" }] }, { const: true }] },
        },
      },
    ],
    ["no other members", { type: "object", properties: { a: text }, additionalProperties: false }],
    ["no members at all", { type: "object" }],
    ["a member that every object has", { type: "object", properties: { constructor: text } }],
    [
      "a further rule on a typed member",
      { type: "object", properties: { a: { ...text, not: { const: "x" } } } },
    ],
    ["as many members as there may be", manyProperties(MAX_QUERY_PROPERTIES)],
  ])("RE-30 is the query: %s", (_, schema) => {
    expect(placeFor(schema).place).toBe("query");
  });

  it.each<[string, JsonSchema | undefined]>([
    ["no schema", undefined],
    ["anything", true],
    ["no object", text],
    ["an object or nothing", { type: ["object", "null"], properties: { a: text } }],
    ["members without a type of the whole", { properties: { a: text } }],
    ["an object within", { type: "object", properties: { a: { type: "object" } } }],
    ["a member of any type", { type: "object", properties: { a: {} } }],
    ["a member that may be null", { type: "object", properties: { a: { type: ["string", "null"] } } }],
    ["values of several types", { type: "object", properties: { a: { enum: ["1", 1] } } }],
    ["null by name", { type: "object", properties: { a: { const: null } } }],
    [
      "a choice of several types",
      { type: "object", properties: { a: { anyOf: [{ const: "a" }, { const: 1 }] } } },
    ],
    ["a choice of null too", { type: "object", properties: { a: { anyOf: [text, { type: "null" }] } } }],
    [
      "a choice of references",
      { type: "object", properties: { a: { oneOf: [{ $ref: "#/$defs/a" }] } }, $defs: { a: text } },
    ],
    ["no choice", { type: "object", properties: { a: { enum: [] } } }],
    ["a schema that is refused", { type: "object", properties: { a: { ...text, pattern: "(" } } }],
    [
      "a list of lists",
      { type: "object", properties: { a: { type: "array", items: { type: "array" }, minItems: 1 } } },
    ],
    ["a list of anything", { type: "object", properties: { a: { type: "array", minItems: 1 } } }],
    [
      "a tuple",
      { type: "object", properties: { a: { type: "array", prefixItems: [text], items: text, minItems: 1 } } },
    ],
    ["an old tuple", { type: "object", properties: { a: { type: "array", items: [text], minItems: 1 } } }],
    ["a reference", { type: "object", properties: { a: { $ref: "#/$defs/a" } }, $defs: { a: text } }],
    ["other members of some type", { type: "object", additionalProperties: text }],
    ["other members by pattern", { type: "object", patternProperties: { "^x": text } }],
    ["a choice", { type: "object", properties: { a: text }, anyOf: [{ required: ["a"] }] }],
    ["a reserved name", { type: "object", properties: { "waybill-format": text } }],
    ["another reserved name", { type: "object", properties: { "waybill-last-event-id": text } }],
    ["a name that UTF-8 cannot hold", { type: "object", properties: { "\ud800": text } }],
    ["one member more than there may be", manyProperties(MAX_QUERY_PROPERTIES + 1)],
  ])("RE-30 is the body: %s", (_, schema) => {
    expect(placeFor(schema).place).toBe("body");
  });

  it("RE-30 is the query for subscriptions too, and the body for whatever changes something", () => {
    const inputSchema = Type.Object({ a: Type.String() });
    expect(inputPlaceOf(stream("a.b", async function* () {}, { inputSchema })).place).toBe("query");
    const spec = { namespace: "a", name: "b", version: "1.0.0", description: "", inputSchema } as const;
    expect(inputPlaceOf(defineOperation({ ...spec, type: "mutation", handler: () => 1 })).place).toBe("body");
  });

  it("RE-30 says of each parameter what it takes", () => {
    const list = Type.Array(Type.Boolean(), { minItems: 1 });
    expect(placeFor(Type.Object({ n: Type.Optional(Type.Integer()), l: list }))).toEqual({
      place: "query",
      parameters: [
        { name: "n", type: "number", isList: false, required: false, isEmptyByDefault: false },
        { name: "l", type: "boolean", isList: true, required: true, isEmptyByDefault: false },
      ],
    });
  });

  it("RE-30 is the query of a subscription too where a list may be left out, and may be empty", () => {
    const inputSchema = Type.Object({ l: Type.Optional(Type.Array(Type.String())) });
    expect(inputPlaceOf(stream("a.b", async function* () {}, { inputSchema })).place).toBe("query");
  });
});

describe("the path of an operation", () => {
  const name = fc.stringMatching(/^[A-Za-z0-9_][ab./-]{0,8}$/);
  const namespace = fc.stringMatching(/^[ab][ab-]{0,2}$/);
  const operation = fc.tuple(namespace, name).map(([ns, n]) => query(`${ns}.${n}`, () => 1));

  it("RE-30 is as readable as its name", () => {
    expect(
      operationPath(
        query("shop.find.by-name/all", () => 1),
        "/api",
      ),
    ).toBe("/api/shop/find.by-name/all");
    expect(
      operationPath(
        query("a.b/../c", () => 1),
        "/api",
      ),
    ).toBe("/api/a/b%2F..%2Fc");
    expect(
      operationPath(
        query("a.b/", () => 1),
        "/api/",
      ),
    ).toBe("/api/a/b%2F");
    expect(
      operationPath(
        query("a.b", () => 1),
        "",
      ),
    ).toBe("/a/b");
  });

  it("RE-30 is read by a URL parser as it is written", () => {
    fc.assert(
      fc.property(operation, (one) => {
        const path = operationPath(one, "/api");
        expect(new URL(path, "http://host/").pathname).toBe(path);
        expect(new URL(`http://host${path}?a=1`).pathname).toBe(path);
      }),
      runs(1_000),
    );
  });

  it("RE-30 is that of no other operation", () => {
    fc.assert(
      fc.property(operation, operation, (one, other) => {
        const isSame = operationPath(one, "/api") === operationPath(other, "/api");
        expect(isSame).toBe(one.id === other.id);
      }),
      runs(2_000),
    );
  });
});

describe("an input in a query", () => {
  const parameters = parametersFor({
    s: text,
    n: { type: "number" },
    b: { type: "boolean" },
    l: { type: "array", items: { type: "integer" }, minItems: 1 },
  });

  const anyText = fc.string({ unit: "binary" });
  const scalars = {
    string: anyText,
    number: fc.double({ noNaN: true, noDefaultInfinity: true }),
    integer: fc.maxSafeInteger(),
    boolean: fc.boolean(),
  };

  /** A schema for a query with an input that it accepts. */
  const cases = fc
    .dictionary(
      fc.oneof(anyText, fc.constantFrom("__proto__", "constructor", "a b", "a&b=c", "+", "%", "")),
      fc.record({
        type: fc.constantFrom(...(Object.keys(scalars) as (keyof typeof scalars)[])),
        list: fc.constantFrom("none", "some", "any" as const),
      }),
      { noNullPrototype: true },
    )
    .filter((kinds) => !Object.keys(kinds).some((key) => key.startsWith("waybill-")))
    .chain((kinds) => {
      const members = Object.entries(kinds).map(([key, { type, list }]) => {
        const minItems = list === "some" ? 1 : 0;
        const schema = list === "none" ? { type } : { type: "array", items: { type }, minItems };
        const item = scalars[type] as fc.Arbitrary<unknown>;
        const value = list === "none" ? item : fc.array(item, { minLength: minItems });
        // A list that may be empty is there.
        const isRequired = list === "any";
        return (isRequired ? value : fc.option(value, { nil: undefined })).map((chosen) => ({
          key,
          schema,
          isRequired,
          chosen,
        }));
      });
      return fc.tuple(...members);
    })
    .map((members) => ({
      schema: {
        type: "object",
        properties: Object.fromEntries(members.map(({ key, schema }) => [key, schema])),
        required: members.filter(({ isRequired }) => isRequired).map(({ key }) => key),
      },
      input: Object.fromEntries(
        members.flatMap(({ key, chosen }) => (chosen === undefined ? [] : [[key, chosen]])),
      ),
    }));

  it("RE-30 X-6 is read back exactly, whatever it says", () => {
    fc.assert(
      fc.property(cases, ({ schema, input }) => {
        expect(compileSchema(schema, { codegen: false }).check(input)).toBe(true);
        const place = placeFor(schema);
        if (place.place !== "query") throw new Error("It goes into the body.");
        const written = writeQuery(input, place.parameters);
        expect(new Map(entriesOf(written, place.parameters))).toStrictEqual(new Map(Object.entries(input)));
        const { search } = new URL(`http://host/?${written}`);
        expect(entriesOf(search.slice(1), place.parameters)).toStrictEqual(
          entriesOf(written, place.parameters),
        );
      }),
      runs(500),
    );
  });

  it("RE-30 has lists that are empty where nothing is said of them, or not at all", () => {
    const list = Type.Array(Type.Number());
    const place = placeFor(Type.Object({ must: list, may: Type.Optional(list) }));
    if (place.place !== "query") throw new Error("It goes into the body.");
    expect(readQuery("", place.parameters).input).toStrictEqual({ must: [] });
    expect(readQuery("may=1&must=2", place.parameters).input).toStrictEqual({ may: [1], must: [2] });
    expect(writeQuery({ must: [] }, place.parameters)).toBe("");
    expect(() => writeQuery({ must: [], may: [] }, place.parameters)).toThrow("an empty list");
  });

  it.each<[string, unknown]>([
    ["", {}],
    ["&&s=a&", { s: "a" }],
    ["s", { s: "" }],
    ["s=a+b%20c%2B=d", { s: "a b c+=d" }],
    ["n=-1.5e2&b=false", { n: -150, b: false }],
    ["n=1E%2B2", { n: 100 }],
    ["l=1&s=x&l=2", { l: [1, 2], s: "x" }],
    ["other=7&n=7", { other: "7", n: 7 }],
    ["%73=x", { s: "x" }],
  ])("RE-30 is read from %j", (written, input) => {
    expect(readQuery(written, parameters).input).toStrictEqual(input);
  });

  it.each<[string, string]>([
    ["n=", "/n"],
    ["n", "/n"],
    ["n=NaN", "/n"],
    ["n=0x10", "/n"],
    ["n=01", "/n"],
    ["n=1.", "/n"],
    ["n=.5", "/n"],
    ["n=%2B1", "/n"],
    ["n=+1", "/n"],
    ["n=1e999", "/n"],
    ["n=Infinity", "/n"],
    ["n=1_000", "/n"],
    ["b=TRUE", "/b"],
    ["b=1", "/b"],
    ["b=", "/b"],
    ["s=a&s=b", "/s"],
    ["x%2Fy=1&x%2Fy=2", "/x~1y"],
    ["l=1&l=x", "/l/1"],
    ["s=%", "/s"],
    ["s=%zz", "/s"],
    ["s=%ff", "/s"],
    ["s=%c0%80", "/s"],
    ["s=%ed%a0%80", "/s"],
    ["%ff=1", ""],
  ])("RE-30 is refused where it is wrong, with its place: %j", (written, pointer) => {
    expect(() => readQuery(written, parameters)).toThrow(
      expect.objectContaining({
        code: "VALIDATION_ERROR",
        details: { issues: [{ pointer, expected: expect.any(String), found: expect.any(String) }] },
      }),
    );
  });

  it("RE-30 never reaches a prototype", () => {
    const { input } = readQuery("__proto__=x&constructor=y", parameters);
    expect(Object.getPrototypeOf(input)).toBe(Object.prototype);
    expect(Object.entries(input)).toEqual([
      ["__proto__", "x"],
      ["constructor", "y"],
    ]);
    const lists = parametersFor(
      Object.fromEntries([["__proto__", { type: "array", items: text, minItems: 1 }]]),
    );
    expect(Object.entries(readQuery("__proto__=a&__proto__=b", lists).input)).toEqual([
      ["__proto__", ["a", "b"]],
    ]);
  });

  it("RE-30 has as many parameters as there may be, and not one more", () => {
    const many = Array.from({ length: MAX_QUERY_PARAMETERS }, (_, at) => `p${at}=x`).join("&");
    expect(Object.keys(readQuery(many, []).input)).toHaveLength(MAX_QUERY_PARAMETERS);
    expect(() => readQuery(`${many}&one=more`, [])).toThrow("at most 1000 parameters");
    expect(() => readQuery("&".repeat(10_000_000), [])).toThrow("at most 1000 parameters");
  });

  it("RE-30 is never anything but an input or a validation error", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(..."snbl=&%+.2e-0xff é\ud800") }), (written) => {
        try {
          expect(readQuery(written, parameters).input).toBeTypeOf("object");
        } catch (error) {
          expect(error).toMatchObject({ code: "VALIDATION_ERROR" });
        }
      }),
      runs(2_000),
    );
  });

  it.each([{ s: "\udc00" }, { n: Number.NaN }, { s: null }, { s: ["a"] }, { "\ud800": "x" }])(
    "RE-30 is not written where a query cannot say it: %j",
    (input) => {
      expect(() => writeQuery(input, parameters)).toThrow(
        expect.objectContaining({ code: "VALIDATION_ERROR" }),
      );
    },
  );
});

describe("a query that cannot be read", () => {
  it("is told as a body is, by field, what is expected and what is found", () => {
    const parameters = parametersFor({ n: { type: "integer" }, b: { type: "boolean" } });
    for (const [written, sentence] of [
      ["n=abc", "n must be a number; it is string of 3 characters"],
      ["b=1", "b must be true or false; it is string of 1 character"],
    ] as const)
      expect(() => readQuery(written, parameters)).toThrow(`The query cannot be read: ${sentence}.`);
  });
});
