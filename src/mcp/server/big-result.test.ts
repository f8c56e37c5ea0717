import { describe, expect, it } from "vitest";
import type { CallToolResult, ContentBlock } from "../../core/result/call-tool-result.ts";
import type { ResultEntry } from "../../core/result/result-store.ts";
import { type CutOptions, withinInline } from "./big-result.ts";

function cutting(options: Partial<CutOptions> = {}) {
  const kept: ResultEntry[] = [];
  const store = {
    put: (entry: ResultEntry) => {
      const { text, mimeType, name = "" } = entry;
      kept.push(entry);
      return { uri: `x://${kept.length}`, name, mimeType, size: text.length, characters: text.length };
    },
  };
  const all = { store, inlineCharacters: 10, isPromised: false, name: "n", ...options };
  return { kept, cut: (result: CallToolResult) => withinInline(result, all) };
}

const text = (value: string): ContentBlock => ({ type: "text", text: value });
const LONG = { a: "0123456789" };

describe("withinInline", () => {
  it("RE-30 sends N characters whole and cuts N + 1, never within a surrogate pair", async () => {
    const { cut, kept } = cutting();
    const fits = { content: [text("0123456789")] };
    expect(await cut(fits)).toBe(fits);
    const { content } = await cut({ content: [text("012345678😀")] });
    expect(content[0]).toEqual(text("012345678"));
    expect(content.at(-1)).toMatchObject({ type: "resource_link", uri: "x://1", mimeType: "text/plain" });
    expect(kept).toEqual([{ text: "012345678😀", mimeType: "text/plain", name: "n" }]);
  });

  it("RE-23 keeps short text beside long data, and short data beside long text", async () => {
    const first = cutting();
    const longData = await first.cut({ content: [text("hi")], structuredContent: LONG });
    expect(longData.structuredContent).toBeUndefined();
    expect(longData.content[0]).toEqual(text("hi"));
    expect(first.kept).toMatchObject([{ text: JSON.stringify(LONG), mimeType: "application/json" }]);
    const second = cutting();
    const longText = await second.cut({ content: [text("x".repeat(11))], structuredContent: { a: 1 } });
    expect(longText.structuredContent).toEqual({ a: 1 });
    expect(second.kept).toMatchObject([{ text: "x".repeat(11), mimeType: "text/plain" }]);
  });

  it("RE-23 keeps both where both are long and say different things", async () => {
    const { cut, kept } = cutting();
    const { content } = await cut({ content: [text("y".repeat(11))], structuredContent: LONG });
    expect(kept.map(({ mimeType }) => mimeType)).toEqual(["text/plain", "application/json"]);
    expect(content.filter(({ type }) => type === "resource_link")).toHaveLength(2);
  });

  it("RE-30 leaves promised data alone, with the text that goes with it", async () => {
    const { cut, kept } = cutting({ isPromised: true });
    const result = { content: [text("hi")], structuredContent: LONG };
    expect(await cut(result)).toBe(result);
    const json = JSON.stringify(LONG);
    expect(await cut({ content: [text(json)], structuredContent: LONG })).toMatchObject({
      structuredContent: LONG,
    });
    expect(kept).toHaveLength(1);
  });

  it("RE-30 does not send in _meta what it has cut, but where it is", async () => {
    const { cut, kept } = cutting();
    const _meta = { "x/y": 1, "dev.waybill/result": { wire: LONG } };
    const result = await cut({ content: [text(JSON.stringify(LONG))], structuredContent: LONG, _meta });
    const facts = { stored: "x://1", storedWire: "x://2" };
    expect(result._meta).toEqual({ "x/y": 1, "dev.waybill/result": facts });
    expect(result.content.filter(({ type }) => type === "resource_link")).toHaveLength(1);
    expect(kept[1]).toMatchObject({ text: JSON.stringify(LONG), mimeType: "application/json" });
  });
});
