import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../../test/runs.ts";
import type { ToolPayload, ToolResponseMeta } from "../status-envelope/compose-tool-payload.ts";
import { composeToolPayload } from "../status-envelope/compose-tool-payload.ts";
import { createMemoryStore } from "./memory-store.ts";
import { type PreviewToolPayloadOptions, previewToolPayload } from "./preview-result.ts";
import { estimateTokens } from "./token-budget.ts";

const meta: ToolResponseMeta = { status: "ok", summary: "Found rows", nextSteps: ["Filter them"] };
const rows = (count: number) => Array.from({ length: count }, (_, id) => ({ id, name: `row ${id}` }));
const schema = {
  type: "object",
  properties: { rows: { type: "array" }, truncated: { type: "boolean" } },
  required: ["rows"],
};

function textsOf(payload: ToolPayload): string[] {
  return payload.content.flatMap((block) => (block.type === "text" ? [block.text] : []));
}

function linksOf(payload: ToolPayload) {
  return payload.content.flatMap((block) => (block.type === "resource_link" ? [block] : []));
}

const tokensIn = (texts: readonly string[]): number =>
  texts.reduce((sum, text) => sum + estimateTokens(text), 0);

const failing = { put: () => Promise.reject(new Error("full")), read: () => undefined };

describe("previewing a result", () => {
  it("TR-6 TR-2 sends what fits exactly as composeToolPayload does, with its tokens counted", async () => {
    const options = { meta, data: { rows: rows(3) }, additionalText: ["Some text", " "], isError: true };
    const payload = await previewToolPayload({ ...options, store: failing, schema });
    const inline = tokensIn(textsOf(payload));
    const total = inline + estimateTokens(JSON.stringify(options.data));
    expect(payload).toEqual(
      composeToolPayload({ ...options, meta: { ...meta, tokenUsage: { inline, total } } }),
    );
  });

  it("TR-6 sends a preview of large data, flagged, with a link to the whole", async () => {
    const store = createMemoryStore();
    const data = { rows: rows(1_000) };
    const payload = await previewToolPayload({ meta, data, store, schema });
    const { structuredContent } = payload;
    expect(structuredContent.meta.truncated).toBe(true);
    expect((structuredContent.data as { truncated?: boolean }).truncated).toBe(true);
    expect(JSON.stringify(structuredContent.data).length).toBeLessThanOrEqual(2_000);
    const [link] = linksOf(payload);
    const whole = store.read(link?.uri ?? "");
    expect(JSON.parse(whole?.text ?? "")).toEqual({ meta, data });
    expect(link).toMatchObject({ mimeType: "application/json", name: "Whole result" });
    expect(link?.description).toContain(`${link?.uri}?offset=0&length=2000`);
    expect(link?.size).toBe(new TextEncoder().encode(whole?.text).length);
  });

  it("TR-6 cuts additional text as one budget, in order", async () => {
    const store = createMemoryStore();
    const additionalText = ["a ".repeat(400), "b ".repeat(2_000), "c"];
    const payload = await previewToolPayload({ meta, data: null, additionalText, store });
    const [, first = "", second = "", steps = ""] = textsOf(payload);
    expect(first).toBe(additionalText[0]);
    expect(second).toMatch(/^(?:b )+b?\n… \([\d,]+ more characters\)$/);
    expect(first.length + second.length).toBeLessThanOrEqual(2_000);
    expect(steps).toContain("waybill://results/");
    expect(payload.structuredContent.data).toBeNull();
    const [link] = linksOf(payload);
    expect(JSON.parse(store.read(link?.uri ?? "")?.text ?? "")).toEqual({ meta, data: null, additionalText });
  });

  it("TR-6 sends text of N characters whole and cuts N + 1", async () => {
    const store = createMemoryStore();
    const send = (length: number) =>
      previewToolPayload({ meta, data: 1, additionalText: ["a".repeat(length - 5), "b".repeat(5)], store });
    expect((await send(2_000)).structuredContent.meta.truncated).toBeUndefined();
    expect((await send(2_001)).structuredContent.meta.truncated).toBe(true);
  });

  it("TR-6 TR-7 tells hosts that show only text how to read the rest", async () => {
    const payload = await previewToolPayload({ meta, data: rows(1_000), store: createMemoryStore() });
    const [link] = linksOf(payload);
    const steps = textsOf(payload).at(-1);
    expect(steps).toContain("Filter them");
    expect(steps).toContain(`${link?.uri}?offset=0&length=2000`);
    expect(payload.structuredContent.meta.nextSteps).toHaveLength(2);
  });

  it("TR-2 puts the link behind those of the caller, which stay untouched", async () => {
    const own = { type: "resource_link", uri: "docs://one", name: "One" } as const;
    const payload = await previewToolPayload({
      meta,
      data: rows(1_000),
      resourceLinks: [own],
      store: createMemoryStore(),
    });
    expect(payload.content.at(-2)).toBe(own);
    expect(payload.content.at(-1)).toMatchObject({ type: "resource_link", mimeType: "application/json" });
  });

  it("TR-1 TR-6 counts the tokens sent and those of the whole", async () => {
    const data = { rows: rows(1_000) };
    const additionalText = ["Some words. ".repeat(1_000)];
    const payload = await previewToolPayload({
      meta,
      data,
      additionalText,
      store: createMemoryStore(),
      schema,
    });
    const whole = composeToolPayload({ meta, data, additionalText });
    expect(payload.structuredContent.meta.tokenUsage).toEqual({
      inline: tokensIn(textsOf(payload)),
      total: tokensIn([...textsOf(whole), JSON.stringify(data)]),
    });
  });

  it("TR-1 keeps the counts that the caller gave", async () => {
    const given = { ...meta, tokenUsage: { total: 7 } };
    const { structuredContent } = await previewToolPayload({ meta: given, data: 1, store: failing });
    expect(structuredContent.meta.tokenUsage).toEqual({ inline: expect.any(Number), total: 7 });
    expect(structuredContent.meta.tokenUsage?.inline).toBeGreaterThan(0);
  });

  it("TR-6 warns of a long summary once", async () => {
    const warnings: string[] = [];
    await previewToolPayload({
      meta: { status: "ok", summary: "long ".repeat(40) },
      data: rows(1_000),
      store: createMemoryStore(),
      onWarning: (message) => warnings.push(message),
    });
    expect(warnings).toHaveLength(1);
  });

  it("TR-6 keeps data and text within limits on tokens", async () => {
    const payload = await previewToolPayload({
      meta,
      data: rows(1_000),
      additionalText: ["Some words. ".repeat(20), "More words. ".repeat(1_000)],
      store: createMemoryStore(),
      limits: { maxTokens: 100 },
    });
    const [, ...texts] = textsOf(payload).slice(0, -1);
    expect(tokensIn(texts)).toBeLessThanOrEqual(100);
    expect(estimateTokens(JSON.stringify(payload.structuredContent.data))).toBeLessThanOrEqual(100);
  });

  it("TR-6 sends data whole where no valid cut is, up to the cap, and refuses one more", async () => {
    const data = { rows: rows(500) };
    const characters = JSON.stringify(data).length + JSON.stringify(meta).length;
    const send = (maxInlineCharacters: number) =>
      previewToolPayload({
        meta,
        data,
        schema: {
          required: ["rows"],
          properties: { rows: { minItems: 500, items: { required: ["id", "name"] } } },
        },
        store: failing,
        limits: { maxInlineCharacters },
      });
    const { structuredContent } = await send(characters);
    expect(structuredContent.data).toBe(data);
    expect(structuredContent.meta.truncated).toBeUndefined();
    await expect(send(characters - 1)).rejects.toMatchObject({
      code: "TOO_LARGE",
      message: expect.stringMatching(/Return less data.*maxInlineCharacters/),
    });
  });

  it("TR-6 refuses data over 100,000 characters that cannot be cut", async () => {
    const data = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`property${i}`, i]));
    await expect(previewToolPayload({ meta, data, store: failing })).rejects.toMatchObject({
      code: "TOO_LARGE",
    });
  });

  it("TR-6 refuses details that nobody could read", async () => {
    const wordy = { ...meta, details: ["a".repeat(100_000)] };
    await expect(previewToolPayload({ meta: wordy, data: 1, store: failing })).rejects.toMatchObject({
      code: "TOO_LARGE",
      message: expect.stringContaining("additionalText"),
    });
  });

  it("TR-6 sends data whole that is within a limit above the cap", async () => {
    const data = rows(10_000);
    const limits = { maxCharacters: 1_000_000 };
    expect((await previewToolPayload({ meta, data, store: failing, limits })).structuredContent.data).toBe(
      data,
    );
  });

  it.each([
    ["nested too deeply", 20_000],
    ["nested more deeply than is cut", 501],
  ])("TR-6 does not break on data %s", async (_, levels) => {
    let data: unknown = 1;
    for (let i = 0; i < levels; i++) data = [data];
    const outcome = await previewToolPayload({ meta, data, store: failing }).then(
      ({ structuredContent }) => structuredContent.data === data,
      ({ code }: { code: string }) => code,
    );
    expect(outcome).toBe(levels > 10_000 ? "TOO_LARGE" : true);
  });

  it("TR-6 refuses sharing that stands for more text than there is memory", async () => {
    let data: unknown = "x";
    for (let i = 0; i < 60; i++) data = { a: data, b: data };
    await expect(previewToolPayload({ meta, data, store: failing })).rejects.toMatchObject({
      code: "TOO_LARGE",
    });
  });

  it("TR-6 lets the failure of a store be seen", async () => {
    await expect(previewToolPayload({ meta, data: rows(1_000), store: failing })).rejects.toThrow("full");
    const small = createMemoryStore({ maxEntryCharacters: 3_000 });
    await expect(previewToolPayload({ meta, data: rows(1_000), store: small })).rejects.toThrow(
      "maxEntryCharacters (3000)",
    );
  });

  it("TR-6 loses nothing: what is flagged can be read whole, what is not was sent whole", async () => {
    const anything = fc.record({
      data: fc.jsonValue(),
      additionalText: fc.array(fc.string(), { maxLength: 4 }),
    });
    await fc.assert(
      fc.asyncProperty(anything, fc.nat({ max: 60 }), async ({ data, additionalText }, maxCharacters) => {
        const store = createMemoryStore();
        const options: PreviewToolPayloadOptions = {
          meta,
          data,
          additionalText,
          store,
          limits: { maxCharacters },
        };
        const payload = await previewToolPayload(options);
        const [link] = linksOf(payload);
        if (payload.structuredContent.meta.truncated) {
          const whole = store.read(link?.uri ?? "")?.text ?? "";
          expect(whole).toBe(JSON.stringify({ meta, data, additionalText }, null, 2));
        } else {
          expect(link).toBeUndefined();
          expect(payload.structuredContent.data).toBe(data);
          expect(payload.content).toEqual(composeToolPayload(options).content);
        }
      }),
      runs(300),
    );
  });
});
