import { Type } from "typebox";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { query } from "../../../test/make-operation.ts";
import type { JsonSchema } from "../../core/schema/json-schema.ts";
import { readOperationNotice, toOperationNotice } from "./service-notice.ts";

const everything = query("shop.buy", () => ({ ok: true }), {
  title: "Buy",
  tags: ["a"],
  inputSchema: Type.Object({ item: Type.String() }),
  outputSchema: Type.Object({ ok: Type.Boolean() }),
  errors: {
    SOLD_OUT: { description: "None left.", httpStatus: 409, schema: Type.Object({ left: Type.Number() }) },
  },
  access: { scopes: { allOf: ["buy"] } },
  annotations: { destructive: true },
  tier: "pro",
  features: [{ name: "gift", tier: "enterprise" }],
  durable: true,
  authority: { scopes: ["root"] },
  visibility: "external",
  outputPolicy: "strict",
  pager: { next: () => undefined },
  _meta: { secret: "mine" },
});

describe("toOperationNotice", () => {
  it("Discovery: tells what others need to call an operation, as plain JSON, and nothing else", () => {
    const notice = toOperationNotice(everything);
    expect(JSON.parse(JSON.stringify(notice))).toEqual(notice);
    expect(notice).toEqual({
      namespace: "shop",
      name: "buy",
      version: "1.0.0",
      type: "query",
      description: "",
      title: "Buy",
      tags: ["a"],
      inputSchema: { type: "object", required: ["item"], properties: { item: { type: "string" } } },
      outputSchema: { type: "object", required: ["ok"], properties: { ok: { type: "boolean" } } },
      errors: [
        {
          code: "SOLD_OUT",
          description: "None left.",
          httpStatus: 409,
          schema: { type: "object", required: ["left"], properties: { left: { type: "number" } } },
        },
      ],
      access: { scopes: { allOf: ["buy"] } },
      annotations: { destructive: true },
      tier: "pro",
      features: [{ name: "gift", tier: "enterprise" }],
      durable: true,
    });
  });

  it("Discovery: has no field for what an operation does not say", () => {
    expect(Object.keys(toOperationNotice(query("a.b", () => 1)))).toEqual([
      "namespace",
      "name",
      "version",
      "type",
      "description",
    ]);
  });

  it("Discovery: describes each side of a Standard Schema as that side sees it", () => {
    const schema = z.object({ n: z.number().default(3) });
    const notice = toOperationNotice(
      query("a.b", () => ({ n: 1 }), { inputSchema: schema, outputSchema: schema }),
    );
    expect(notice.inputSchema).not.toHaveProperty("required");
    expect(notice.outputSchema).toHaveProperty("required", ["n"]);
  });

  it("Discovery: writes an operation down once, unless it can still change", () => {
    const operation = query("a.b", () => 1);
    expect(toOperationNotice(operation)).toBe(toOperationNotice(operation));
    const changing = { ...operation, description: "old" };
    expect(toOperationNotice(changing).description).toBe("old");
    changing.description = "new";
    expect(toOperationNotice(changing).description).toBe("new");
  });

  it("Discovery: writes down a schema over the usual limits, for others to judge", () => {
    let inputSchema: JsonSchema = {};
    for (let i = 0; i < 300; i++) inputSchema = { not: inputSchema };
    const deep = query("a.deep", () => 1, { inputSchema });
    const notice = toOperationNotice(deep);
    expect(notice.inputSchema).toEqual(inputSchema);
    expect(readOperationNotice(notice)).toMatchObject({ usable: false, id: undefined });
  });
});
