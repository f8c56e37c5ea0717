import { type } from "arktype";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { AnySchema } from "../../core/schema/any-schema.ts";
import { Type } from "../../index.ts";
import { createToolResponseEnvelopeSchema } from "../index.ts";

describe("createToolResponseEnvelopeSchema", () => {
  const tree = {
    $schema: "http://json-schema.org/draft-07/schema#",
    type: "object",
    properties: {
      name: { type: "string" },
      children: { type: "array", items: { $ref: "#" } },
      id: { $ref: "#/$defs/id" },
    },
    required: ["name"],
    $defs: { id: { type: "integer" } },
  };
  const HITS = { hits: 3 };

  it.each([
    ["TypeBox", Type.Object({ hits: Type.Integer() }), HITS, { hits: "3" }],
    ["zod", z.object({ hits: z.number().int() }), HITS, { hits: 1.5 }],
    ["a zod refinement", z.object({ hits: z.number().refine((n) => n < 10) }), HITS, { hits: 11 }],
    ["arktype", type({ hits: "number" }), HITS, {}],
    [
      "a recursive JSON Schema",
      tree,
      { name: "a", children: [{ name: "b", id: 1 }] },
      { name: "a", children: [{ id: 1 }] },
    ],
    ["references of a JSON Schema", tree, { name: "a", id: 1 }, { name: "a", id: "1" }],
    ["true", true, HITS, undefined],
  ])("TR-4 takes %s for the data", async (_, schema, good, bad) => {
    const envelope = createToolResponseEnvelopeSchema(schema as AnySchema);
    const issues = async (meta: object, data: unknown) =>
      ((await envelope["~standard"].validate({ meta, data })) as { issues?: readonly unknown[] }).issues
        ?.length ?? 0;
    const ok = { status: "ok", summary: "s" };
    const failed = { status: "error", summary: "s" };
    expect(await issues(ok, good)).toBe(0);
    expect(await issues({ ...ok, truncated: true, extra: 1 }, good)).toBe(0);
    expect(await issues(failed, good)).toBe(0);
    expect(await issues(failed, null)).toBe(0);
    if (bad !== undefined) {
      expect(await issues(ok, bad)).toBeGreaterThan(0);
      expect(await issues(failed, bad)).toBe(0);
    }
    expect(await issues({ status: "odd", summary: "s" }, good)).toBeGreaterThan(0);
    expect(await issues({ status: "ok" }, good)).toBeGreaterThan(0);
  });

  it("TR-4 is plain JSON Schema with an object at its root, and leaves the given schema alone", () => {
    const before = structuredClone(tree);
    const schema = createToolResponseEnvelopeSchema(tree);
    expect(JSON.parse(JSON.stringify(schema))).toMatchObject({
      $schema: tree.$schema,
      type: "object",
      required: ["meta", "data"],
      $defs: {
        data: {
          properties: {
            children: { items: { $ref: "#/$defs/data" } },
            id: { $ref: "#/$defs/data/$defs/id" },
          },
        },
      },
    });
    expect(Object.keys(schema)).not.toContain("~standard");
    expect(tree).toEqual(before);
  });

  it("TR-4 leaves references below an id of their own, and what only looks like one", () => {
    const schema = createToolResponseEnvelopeSchema({
      properties: {
        own: { $id: "urn:own", $ref: "#/$defs/x", $defs: { x: { items: { $ref: "#" } } } },
        $ref: { type: "string" },
        far: { $ref: "#/properties/own" },
      },
      const: { $ref: "#/not/one" },
      enum: [{ $ref: "#" }],
    });
    expect(schema["$defs"]).toEqual({
      data: {
        properties: {
          own: { $id: "urn:own", $ref: "#/$defs/x", $defs: { x: { items: { $ref: "#" } } } },
          $ref: { type: "string" },
          far: { $ref: "#/$defs/data/properties/own" },
        },
        const: { $ref: "#/not/one" },
        enum: [{ $ref: "#" }],
      },
    });
  });

  it("TR-4 refuses a schema it cannot read, when it is declared", () => {
    expect(() => createToolResponseEnvelopeSchema({ type: "objekt" })).toThrow();
    expect(() => createToolResponseEnvelopeSchema(z.date())).toThrow("JSON Schema");
  });
});
