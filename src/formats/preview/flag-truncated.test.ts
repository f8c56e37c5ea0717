import { describe, expect, it } from "vitest";
import { Type } from "../../index.ts";
import { createMemoryStore } from "./memory-store.ts";
import { previewToolPayload } from "./preview-result.ts";

const preview = (schema: object, data: unknown) =>
  previewToolPayload({
    meta: { status: "ok", summary: "s" },
    data,
    schema,
    additionalText: ["x".repeat(5_000)],
    store: createMemoryStore(),
  });

describe("a reply whose text alone is cut", () => {
  it("TR-6 says so in the data where the schema declares it", async () => {
    const declared = Type.Object({ n: Type.Number(), truncated: Type.Optional(Type.Boolean()) });
    expect((await preview(declared, { n: 1 })).structuredContent).toMatchObject({
      meta: { truncated: true },
      data: { n: 1, truncated: true },
    });
  });

  it("TR-6 leaves data alone whose schema does not", async () => {
    const silent = Type.Object({ n: Type.Number() });
    const never = Type.Object({ n: Type.Number(), truncated: Type.Optional(Type.Literal(false)) });
    for (const schema of [silent, never]) {
      expect((await preview(schema, { n: 1 })).structuredContent.data).toEqual({ n: 1 });
    }
    expect((await preview(Type.Array(Type.Number()), [1])).structuredContent.data).toEqual([1]);
  });
});
