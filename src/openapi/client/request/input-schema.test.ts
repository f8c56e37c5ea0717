import { describe, expect, it } from "vitest";
import { makeBody, makeParameter, makePlan } from "../../../../test/operation-plans.ts";
import { compileSchema } from "../../../core/schema/compile-schema.ts";
import { toInputSchema } from "./plan-input.ts";
import { createRequestBuilder } from "./request-builder.ts";

const BYTES = { type: ["string", "object"], description: expect.stringContaining("Uint8Array") };

describe("the schema of an input", () => {
  it("RE-25 has a property for each parameter, and the body", () => {
    const parameters = [
      makeParameter({ name: "id", in: "path", schema: { type: "integer" }, description: "Which one." }),
      makeParameter({ name: "old", in: "query", schema: true, deprecated: true }),
    ];
    const body = {
      ...makeBody("application/json", { schema: { $ref: "#/$defs/Pet" } }, true),
      description: "A pet.",
    };
    const definitions = {
      Pet: { properties: { friend: { $ref: "#/$defs/Pet" }, "a/b": { $ref: "#/$defs/a~1b" } } },
      "a/b": { type: "string" },
      Unused: true,
    };
    const schema = toInputSchema(makePlan({ parameters, body, definitions }));
    expect(schema).toEqual({
      type: "object",
      properties: {
        id: { type: "integer", description: "Which one." },
        old: { deprecated: true },
        body: { $ref: "#/$defs/Pet", description: "A pet." },
      },
      required: ["id", "body"],
      additionalProperties: false,
      $defs: { Pet: definitions.Pet, "a/b": definitions["a/b"] },
    });
    const compiled = compileSchema(schema);
    expect(compiled.check({ id: 1, body: { friend: { "a/b": "x" } } })).toBe(true);
    expect(compiled.check({ id: 1, body: { friend: { "a/b": 1 } } })).toBe(false);
    expect(compiled.check({ id: 1, body: {}, more: 1 })).toBe(false);
  });

  it("RE-25 has no properties where an operation takes none", () => {
    expect(toInputSchema(makePlan())).toEqual({
      type: "object",
      properties: {},
      additionalProperties: false,
    });
  });

  it("RE-25 leaves headers out that the transport writes", () => {
    const parameters = [makeParameter({ name: "Host", in: "header", required: true })];
    expect(toInputSchema(makePlan({ parameters }))).toEqual(toInputSchema(makePlan()));
  });

  it("RE-25 does not ask for what a credential writes", () => {
    const parameters = [
      makeParameter({ name: "x-KEY", in: "header", required: true }),
      makeParameter({ name: "key", in: "query", required: true }),
      makeParameter({ name: "sid", in: "cookie", required: true }),
      makeParameter({ name: "Authorization", in: "header", required: true }),
      makeParameter({ name: "key", key: "key_header", in: "header", required: true }),
      makeParameter({ name: "unused", in: "query", required: true }),
    ];
    const schemes = {
      a: { type: "apiKey", in: "header", name: "X-Key" },
      b: { type: "apiKey", in: "query", name: "key" },
      c: { type: "apiKey", in: "cookie", name: "sid" },
      d: { type: "http", scheme: "bearer" },
      e: { type: "apiKey", in: "query", name: "unused" },
    } as const;
    const plan = makePlan({ parameters, schemes, security: [{ a: [], b: [], c: [], d: [] }] });
    expect(toInputSchema(plan)).toMatchObject({
      properties: { "x-KEY": true, key: true, sid: true, Authorization: true },
      required: ["key_header", "unused"],
    });
    const either = makePlan({
      parameters,
      schemes,
      security: [{ b: [] }, { b: [], c: [] }, { b: [], d: [] }],
    });
    expect((toInputSchema(either) as { required: string[] }).required).toEqual([
      "x-KEY",
      "sid",
      "Authorization",
      "key_header",
      "unused",
    ]);
    const build = createRequestBuilder(plan, { limits: {} });
    expect(build({ key_header: "1", unused: "2" }).query).toEqual(["unused=2"]);
    expect(build({ key_header: "1", unused: "2", key: "3" }).query).toEqual(["key=3", "unused=2"]);
    expect(() => build({ unused: "2" })).toThrow('"key_header" is missing');
  });

  it("RE-25 takes names that objects already have", () => {
    const parameters = ["__proto__", "constructor"].map((name) => makeParameter({ name, in: "query" }));
    const schema = toInputSchema(makePlan({ parameters })) as { properties: object };
    expect(Object.keys(schema.properties)).toEqual(["__proto__", "constructor"]);
  });

  it.each([
    ["application/pdf", undefined, BYTES],
    ["application/xml", { type: "object" }, { type: ["string", "object"], description: "XML, as text." }],
    ["text/plain", { type: "string" }, { type: "string" }],
    ["application/x-ndjson", { type: "object" }, true],
    ["*/*", { type: "object" }, { anyOf: [{ type: "object" }, BYTES] }],
    ["*/*", undefined, true],
    ["application/json", undefined, true],
  ])("RE-26 takes a body as its media type is written: %s %j", (mediaType, schema, expected) => {
    const body = makeBody(mediaType, schema === undefined ? {} : { schema });
    expect(toInputSchema(makePlan({ body }))).toMatchObject({ properties: { body: expected } });
  });

  it("RE-26 takes bytes in each of their forms for the files among parts without names", () => {
    const file = { type: "string", format: "binary" };
    const definitions = { File: file, List: { type: "array", items: { $ref: "#/$defs/File" } } };
    const text = { type: "string" };
    const schemaOf = (media: object) =>
      compileSchema(toInputSchema(makePlan({ body: makeBody("multipart/mixed", media), definitions })));
    const bytes = new Uint8Array(1);
    for (const media of [{ schema: { $ref: "#/$defs/List" } }, { itemSchema: file }]) {
      expect(schemaOf(media).check({ body: [bytes, { base64: "" }, "x"] })).toBe(true);
      expect(schemaOf(media).check({ body: [7] })).toBe(false);
      expect(schemaOf(media).check({ body: {} })).toBe(false);
    }
    const mixed = schemaOf({ schema: { type: "array", prefixItems: [text, file] }, itemSchema: text });
    expect(mixed.check({ body: ["x", bytes, "x"] })).toBe(true);
    expect(mixed.check({ body: [bytes] })).toBe(false);
    expect(mixed.check({ body: ["x", bytes, bytes] })).toBe(false);
  });

  it("RE-26 takes bytes in each of their forms for the files of a form", () => {
    const file = { type: "string", format: "binary" };
    const definitions = {
      Upload: {
        type: "object",
        properties: { file, files: { type: "array", items: file }, name: { type: "string" } },
        required: ["file"],
      },
    };
    const body = makeBody("multipart/form-data", { schema: { $ref: "#/$defs/Upload" } });
    const compiled = compileSchema(toInputSchema(makePlan({ body, definitions })));
    const bytes = new Uint8Array(1);
    for (const given of [bytes, "text", { base64: "QQ==" }]) {
      expect(compiled.check({ body: { file: given, files: [given], name: "x" } })).toBe(true);
    }
    expect(compiled.check({ body: { file: bytes, name: bytes } })).toBe(false);
    expect(compiled.check({ body: { files: [bytes] } })).toBe(false);
  });
});
