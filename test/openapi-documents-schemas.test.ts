import { describe, expect, it } from "vitest";
import { compileSchema } from "../src/index.ts";
import { cpuMs } from "./cpu-ms.ts";
import {
  accepts,
  answer,
  answering,
  minimal,
  planMinimal,
  planOf,
  read,
} from "./openapi-document-reading.ts";

describe("references within a document", () => {
  it("RE-25 follows pointers with escapes, anchors, and pointers through references", async () => {
    const schemas = {
      "a/b~c d": { type: "integer" },
      Named: { $anchor: "here", type: "integer" },
      Behind: { $ref: "#/components/schemas/Holder" },
      Holder: { properties: { x: { type: "integer" } } },
    };
    const references = [
      "#/components/schemas/a~1b~0c%20d",
      "#here",
      "#/components/schemas/Behind/properties/x",
      "#/components/schemas/Holder/properties/x",
    ];
    for (const $ref of references) {
      const plan = await planMinimal({ $ref, description: "kept" }, { components: { schemas } });
      expect(plan.notes).toEqual([]);
      expect(answer(plan)).toMatchObject({ description: "kept" });
      expect([$ref, accepts(plan, 1), accepts(plan, "1")]).toEqual([$ref, true, false]);
    }
  });
});

describe("references before 3.1", () => {
  const schemas = { A: { type: "object", properties: { a: { type: "string" } } } };
  const beside = { type: "array", required: ["a"], nullable: true, description: "kept", "x-other": 1 };

  it.each(["2.0", "3.0.3"])("RE-25 stand alone in %s but for what is said about them", async (version) => {
    const isOld = version === "2.0";
    const schema = { $ref: isOld ? "#/definitions/A" : "#/components/schemas/A", ...beside };
    const response = isOld ? { schema } : { content: { "application/json": { schema } } };
    const plan = planOf(
      await read({
        ...(isOld
          ? { swagger: version, definitions: schemas }
          : { openapi: version, components: { schemas } }),
        paths: { "/x": { get: { responses: { 200: response } } } },
      }),
      "get/x",
    );
    expect([accepts(plan, {}), accepts(plan, null), accepts(plan, { a: 1 })]).toEqual([true, true, false]);
    expect(answer(plan)).toMatchObject({ description: "kept" });
    expect(plan.notes).toHaveLength(2);
    expect(plan.notes.join()).toContain('"required" beside "$ref", which does not count before OpenAPI 3.1');
  });

  it("RE-25 count since 3.1", async () => {
    const schema = { $ref: "#/components/schemas/A", required: ["a"] };
    const plan = await planMinimal(schema, { components: { schemas } });
    expect([accepts(plan, {}), accepts(plan, { a: "" })]).toEqual([false, true]);
    expect(plan.notes).toEqual([]);
  });
});

describe("what is required and does not travel", () => {
  const B = {
    type: "object",
    properties: { id: { type: "integer", readOnly: true }, key: { writeOnly: true } },
  };
  const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });

  async function both(schema: object, schemas: object = {}) {
    const operation = { ...answering(schema), requestBody: { content: { "application/json": { schema } } } };
    const components = { schemas: { B, Id: { type: "integer", readOnly: true }, ...schemas } };
    const plan = planOf(await read(minimal(operation, { components })), "get/x");
    const sent = compileSchema({ ...(plan.body?.content[0]?.schema as object), $defs: plan.definitions });
    return { sent: (value: unknown) => sent.check(value), got: (value: unknown) => accepts(plan, value) };
  }

  it.each([
    ["in another part of allOf", { allOf: [ref("B"), { required: ["id", "key"] }] }, {}],
    ["beside allOf", { allOf: [ref("B")], required: ["id", "key"] }, {}],
    ["beside $ref", { ...ref("B"), required: ["id", "key"] }, {}],
    ["behind $ref", ref("C"), { C: { allOf: [{ allOf: [ref("B")] }, { required: ["id", "key"] }] } }],
    ["beside a union", { anyOf: [ref("B"), { type: "null" }], required: ["id", "key"] }, {}],
  ])("RE-25 is asked for only where it travels, %s", async (_, schema, schemas) => {
    const { sent, got } = await both(schema, schemas);
    expect([sent({}), sent({ key: 1 }), got({ id: 1 }), got({})]).toEqual([false, true, true, false]);
  });

  it("RE-25 is known by what its property combines", async () => {
    const { sent, got } = await both({
      ...{ type: "object", required: ["id"], properties: { id: { allOf: [ref("Id")] } } },
    });
    expect([sent({}), got({})]).toEqual([true, false]);
  });

  it("RE-25 stays where asking for less would refuse more", async () => {
    const { sent } = await both({ ...B, not: { properties: B.properties, required: ["id"] } });
    expect([sent({}), sent({ id: 1 })]).toEqual([true, false]);
    const choice = await both({ ...B, oneOf: [{ required: ["id"] }, { required: ["name"] }] });
    expect([choice.sent({ name: 1 }), choice.sent({})]).toEqual([true, false]);
  });

  it("RE-25 is found in time that grows with the document", async () => {
    const names = Array.from({ length: 15_000 }, (_, i) => `p${i}`);
    const properties = Object.fromEntries(names.map((name) => [name, { readOnly: true }]));
    const start = cpuMs();
    const { sent } = await both({ type: "object", required: names, properties });
    expect(sent({})).toBe(true);
    expect(cpuMs() - start).toBeLessThan(15_000);
  });
});
