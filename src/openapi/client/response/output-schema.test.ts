import { describe, expect, it } from "vitest";
import { makeParameter, makePlan, makeResponse } from "../../../../test/openapi-plans.ts";
import { compileSchema } from "../../../core/schema/compile-schema.ts";
import type { JsonSchema } from "../../../core/schema/json-schema.ts";
import type { OperationPlan } from "../plan.ts";
import { toOutputSchema } from "./output-schema.ts";

const PET = { $ref: "#/$defs/Pet" };
const definitions = {
  Pet: { type: "object", properties: { owner: { $ref: "#/$defs/Owner" }, name: { type: "string" } } },
  Owner: { type: "object", properties: { pets: { type: "array", items: PET } } },
  Unused: { type: "integer" },
};

function accepts(plan: OperationPlan, value: unknown): boolean {
  return compileSchema(toOutputSchema(plan) as JsonSchema).check(value);
}

describe("the schema of the data", () => {
  it("RE-25 is that of the one success, with the definitions it uses and no others", () => {
    const plan = makePlan({ responses: [makeResponse("200", { "application/json": PET })], definitions });
    expect(toOutputSchema(plan)).toEqual({
      ...PET,
      $defs: { Pet: definitions.Pet, Owner: definitions.Owner },
    });
    expect(accepts(plan, { owner: { pets: [] } })).toBe(true);
    expect(accepts(plan, { name: 1 })).toBe(false);
  });

  it.each(["*/*", "application/*"])("RE-25 is what %s says, unless that is bytes", (type) => {
    const plan = (schema?: JsonSchema) =>
      makePlan({ responses: [makeResponse("200", { [type]: schema })], definitions });
    expect(accepts(plan(PET), { name: "a" })).toBe(true);
    expect(accepts(plan(PET), { name: 1 })).toBe(false);
    expect(toOutputSchema(plan({ type: "string", format: "binary" }))).toEqual({});
    expect(toOutputSchema(plan())).toEqual({});
  });

  it("RE-25 is any of several, without errors and without what stands for the rest", () => {
    const plan = makePlan({
      responses: [
        makeResponse("200", { "application/json": { type: "integer" }, "text/plain": undefined }),
        makeResponse("2XX", { "application/json": { type: "integer" } }),
        makeResponse("404", { "application/json": { type: "null" } }),
        makeResponse("default", { "application/json": { type: "boolean" } }),
      ],
    });
    expect(toOutputSchema(plan)).toEqual({ anyOf: [{ type: "integer" }, { type: "string" }] });
  });

  it("RE-25 is what is said of the rest where nothing is said of success", () => {
    const plan = makePlan({
      responses: [makeResponse("default", { "application/json": { type: "boolean" } })],
    });
    expect(toOutputSchema(plan)).toEqual({ type: "boolean" });
  });

  it("RE-25 accepts nothing at all beside something, and only where that is declared", () => {
    const body = makeResponse("200", { "application/json": { type: "integer" } });
    const plan = makePlan({ responses: [body, makeResponse("204")] });
    expect([undefined, 1, "x", null, {}].map((value) => accepts(plan, value))).toEqual([
      true,
      true,
      false,
      false,
      false,
    ]);
    expect(accepts(makePlan({ responses: [body] }), undefined)).toBe(false);
    const conditional = [makeParameter("If-None-Match", { type: "string" }, { in: "header" })];
    expect(accepts(makePlan({ responses: [body], parameters: conditional }), undefined)).toBe(true);
  });

  it("RE-25 is unknown for what is always empty, for HEAD, and where nothing is declared", () => {
    expect(toOutputSchema(makePlan({ responses: [makeResponse("204")] }))).toBeUndefined();
    expect(toOutputSchema(makePlan())).toBeUndefined();
    const json = [makeResponse("200", { "application/json": { type: "integer" } })];
    expect(toOutputSchema(makePlan({ method: "HEAD", responses: json }))).toBeUndefined();
  });

  it.each([
    ["text without a schema", "text/plain", undefined, { type: "string" }],
    ["text with one", "text/plain", { type: "string", minLength: 1 }, { type: "string", minLength: 1 }],
    ["a number written as text", "text/plain", { type: "integer" }, { type: "integer" }],
    ["XML whose content is described", "application/xml", PET, { type: "string" }],
    ["bytes, whatever is said of them", "image/png", { type: "string", format: "binary" }, {}],
    ["JSON that may be anything", "application/json", undefined, {}],
    ["JSON that is never right", "application/json", false, false],
  ])("RE-26 is as the data will be, for %s", (_, mediaType, schema, expected) => {
    const plan = makePlan({ responses: [makeResponse("200", { [mediaType]: schema })], definitions });
    expect(toOutputSchema(plan)).toEqual(expected);
  });

  it("RE-26 leaves out another way to write the same data", () => {
    const content = {
      "application/json": { type: "integer" },
      "application/vnd.waybill.data+json": undefined,
    };
    expect(toOutputSchema(makePlan({ responses: [makeResponse("200", content)] }))).toEqual({
      type: "integer",
    });
  });

  it("RE-25 describes each item of a stream", () => {
    const item = { type: "object" };
    const of = (media: object) =>
      toOutputSchema(
        makePlan({
          responses: [{ ...makeResponse("200"), content: [{ mediaType: "text/event-stream", ...media }] }],
        }),
      );
    expect(of({ itemSchema: item, schema: { type: "array" } })).toEqual(item);
    expect(of({ schema: item })).toEqual(item);
    expect(of({ schema: { type: "array", items: item } })).toEqual(item);
    expect(of({})).toBeUndefined();
  });

  it("RE-25 survives what a hostile document holds", () => {
    let deep: JsonSchema = {};
    for (let i = 0; i < 100_000; i++) deep = { not: deep };
    const circle: Record<string, JsonSchema> = {
      A: { $ref: "#/$defs/A" },
      B: { allOf: [{ $ref: "#/$defs/B" }] },
    };
    const content = {
      "application/json": deep,
      "application/x+json": { $ref: "#/$defs/A" },
      "text/plain": { $ref: "#/$defs/B" },
    };
    const plan = makePlan({ responses: [makeResponse("200", content)], definitions: circle });
    expect(toOutputSchema(plan)).toHaveProperty("anyOf");
    const odd = makePlan({
      responses: [makeResponse("200", { "application/json": { $ref: "#/$defs/__proto__" } })],
    });
    expect(toOutputSchema(odd)).toEqual({ $ref: "#/$defs/__proto__" });
  });
});
