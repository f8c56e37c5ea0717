import { describe, expect, it } from "vitest";
import { query } from "../../../test/make-operation.ts";
import { endCall } from "../../core/result/ended-call.ts";
import { CallError, compileSchema, mcpEnvelope, OperationRegistry } from "../../index.ts";
import { createMemoryStore, createResultFormat, decodeToolResult, type ResultPreview } from "../index.ts";

const TEXT = "y".repeat(98);
const IMAGE = { type: "image", data: "AAAA", mimeType: "image/png" } as const;
const LINK = { type: "resource_link", uri: "x://1", name: "one" } as const;
const circle: Record<string, unknown> = {};
circle["self"] = circle;
const strict = query("p.strict", () => ({ text: TEXT }), {
  outputSchema: {
    type: "object",
    properties: { text: { type: "string", minLength: 98 } },
    required: ["text"],
  },
});
const registry = new OperationRegistry([
  strict,
  query("p.text", () => TEXT, { outputSchema: { type: "string" } }),
  query("p.fails", () => {
    throw new CallError("NOT_FOUND", "Not there.");
  }),
  query("p.odd", () => circle),
  query("p.blocks", () =>
    mcpEnvelope(undefined, {
      isError: false,
      content: [{ type: "text", text: "z".repeat(300) }, IMAGE, LINK],
    }),
  ),
]);

async function preview(id: string, limits: Partial<ResultPreview> = {}) {
  const store = limits.store ?? createMemoryStore();
  const format = createResultFormat({ format: "status-envelope", preview: { ...limits, store } });
  const result = await format.write(await endCall(registry, id, undefined, { requestId: "r1" }));
  return { result, store, format, meta: (result.structuredContent as { meta: object }).meta };
}

describe("a format with previews", () => {
  it("TR-6 sends N characters of data whole, and N + 1 as a preview with a link", async () => {
    const whole = await preview("p.text", { maxCharacters: 100 });
    expect(whole.result.structuredContent?.["data"]).toBe(TEXT);
    expect(whole.meta).not.toHaveProperty("truncated");
    const cut = await preview("p.text", { maxCharacters: 99 });
    expect(cut.result.structuredContent?.["data"]).not.toBe(TEXT);
    expect(cut.meta).toMatchObject({ status: "ok", truncated: true });
    const link = cut.result.content.findLast((block) => block.type === "resource_link");
    expect((await cut.store.read(link?.uri ?? ""))?.text).toContain(TEXT);
    const schema = compileSchema(cut.format.outputSchema(strict) ?? false);
    expect(schema.check((await preview("p.strict", { maxCharacters: 50 })).result.structuredContent)).toBe(
      true,
    );
    expect(decodeToolResult(cut.result)).toMatchObject({ format: "status-envelope" });
  });

  it("TR-6 keeps images and links, and cuts the text around them", async () => {
    const { result } = await preview("p.blocks", { maxCharacters: 200 });
    const types = result.content.map(({ type }) => type);
    expect(types).toEqual(["text", "text", "image", "text", "resource_link", "resource_link"]);
    expect(result.content).toEqual(expect.arrayContaining([IMAGE, LINK]));
    expect(JSON.stringify(result.content)).not.toContain("z".repeat(250));
  });

  it("TR-6 tells errors as they are", async () => {
    const { result, meta } = await preview("p.fails");
    expect(result.isError).toBe(true);
    expect(meta).toMatchObject({ status: "error", summary: "Not there." });
    expect((await preview("p.odd")).result).toMatchObject({
      isError: true,
      structuredContent: { data: { errorCode: "OUTPUT_INVALID" } },
    });
  });

  it("TR-6 says what is too large to send, and what could not be kept", async () => {
    const large = await preview("p.strict", { maxCharacters: 50, maxInlineCharacters: 60 });
    expect(large.result).toMatchObject({
      isError: true,
      structuredContent: { data: { errorCode: "TOO_LARGE" } },
    });
    const store = { put: () => Promise.reject(new Error("secret")), read: () => undefined };
    const unkept = await preview("p.text", { store, maxCharacters: 50 });
    expect(unkept.result).toMatchObject({
      isError: true,
      structuredContent: { data: { errorCode: "EXECUTION_ERROR" } },
    });
    expect(JSON.stringify(unkept.result)).not.toContain("secret");
  });

  it("TR-6 is refused at once where the format has no previews", () => {
    const store = createMemoryStore();
    for (const format of ["mcp", "tool-envelope", "tiered-envelope"] as const) {
      expect(() => createResultFormat({ format, preview: { store } })).toThrow(/no previews/);
    }
  });
});
