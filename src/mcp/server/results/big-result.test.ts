import { describe, expect, it } from "vitest";
import type { ResultEntry } from "../../../core/result/result-store.ts";
import type { CallToolResult, ContentBlock } from "../../../core/result/tool-result.ts";
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

  it("X-10 cuts promised data at N + 1 characters so that it still matches, and names the cut", async () => {
    const rows = Array.from({ length: 30 }, (_, id) => ({ id }));
    const data = { rows, truncated: false };
    const json = JSON.stringify(data);
    const schema = {
      type: "object",
      properties: { rows: { type: "array" }, truncated: { type: "boolean" } },
      required: ["rows", "truncated"],
    };
    const promise = { isPromised: true, schema };
    const whole = cutting({ ...promise, inlineCharacters: json.length });
    const result = { content: [text(json)], structuredContent: data };
    expect(await whole.cut(result)).toBe(result);
    const { cut, kept } = cutting({ ...promise, inlineCharacters: json.length - 1 });
    const sent = await cut(result);
    const rest = { rows: rows.slice(0, 29), truncated: true };
    expect(sent.structuredContent).toEqual(rest);
    expect(kept).toEqual([{ text: json, mimeType: "application/json", name: "n" }]);
    const facts = { stored: "x://1", cuts: [{ pointer: "/rows", kind: "items", kept: 29, total: 30 }] };
    expect(sent._meta).toEqual({ "dev.waybill/result": facts });
    expect(sent.content).toEqual([
      text(JSON.stringify(rest)),
      text(
        `… cut: /rows shows 29 of 30 items; read x://1 for all ${json.length} characters (application/json), or a part of them with ?offset=…&length=….`,
      ),
      expect.objectContaining({ type: "resource_link", uri: "x://1" }),
    ]);
  });

  it("X-10 shows text of 2,000 characters beside data of a larger budget, each cut for itself", async () => {
    const data = { rows: Array.from({ length: 3_000 }, (_, id) => ({ id, name: `Row ${id}` })) };
    const schema = { type: "object", properties: { rows: { type: "array" } }, required: ["rows"] };
    const { cut } = cutting({ isPromised: true, schema, inlineCharacters: 20_000 });
    const { content, structuredContent } = await cut({
      content: [text(JSON.stringify(data))],
      structuredContent: data,
    });
    const [shown, note] = content.map((block) => (block.type === "text" ? block.text : ""));
    const parsed = JSON.parse(shown ?? "") as typeof data;
    expect(shown?.length).toBeGreaterThan(1_900);
    expect(shown?.length).toBeLessThanOrEqual(2_000);
    expect(note).toContain(`/rows shows ${parsed.rows.length} of 3,000 items`);
    expect(JSON.stringify(structuredContent).length).toBeGreaterThan(19_900);
    expect(JSON.stringify(structuredContent).length).toBeLessThanOrEqual(20_000);
  });

  it("X-10 sends promised data whole where its schema allows no cut, and says so", async () => {
    const schema = { type: "object", properties: { a: { const: LONG.a } }, required: ["a"] };
    const { cut, kept } = cutting({ isPromised: true, schema });
    const uncut = { uncut: { characters: 18, budget: 10 } };
    const short = { content: [text("hi")], structuredContent: LONG };
    expect(await cut(short)).toEqual({ ...short, _meta: { "dev.waybill/result": uncut } });
    expect(kept).toEqual([]);
    const same = await cut({ content: [text(JSON.stringify(LONG))], structuredContent: LONG });
    expect(same).toMatchObject({ structuredContent: LONG, _meta: { "dev.waybill/result": uncut } });
    expect(same.content[1]).toMatchObject({
      text: expect.stringMatching(/^… cut: .*read x:\/\/1 .* The structured content is whole\.$/),
    });
    expect(kept).toHaveLength(1);
  });

  it("X-10 lists a hundred cuts for programs and three for people, and counts the others", async () => {
    const data = Array.from({ length: 130 }, (_, i) => ({ [`\u202ekey ${i}`]: "word ".repeat(100) }));
    const schema = { type: "array", minItems: 130 };
    const { cut } = cutting({ isPromised: true, schema, inlineCharacters: 20_000 });
    const { content, _meta } = await cut({ content: [text("hi")], structuredContent: data as never });
    const facts = _meta?.["dev.waybill/result"] as { cuts: unknown[]; omittedCuts: number };
    expect(facts.cuts).toHaveLength(100);
    expect(facts.omittedCuts).toBe(30);
    const note = (content[1] as { text: string }).text;
    expect(note).toMatch(/^… cut: (\/\d+\/key \d+ shows \d+ of 500 characters, ){3}127 more cuts; read x/);
  });

  it("X-10 keeps count of the blocks that an operation wrote", async () => {
    const { cut } = cutting();
    const link: ContentBlock = { type: "resource_link", uri: "y://1", name: "y" };
    const content = [text("one"), text("two two two"), text("three"), link];
    const result = await cut({ content, _meta: { "dev.waybill/result": { blocks: [1, 2, 3] } } });
    expect(result.content.map((block) => (block.type === "text" ? block.text : block.type))).toEqual([
      "one",
      "two two",
      expect.stringMatching(/^… cut/),
      "resource_link",
      "resource_link",
    ]);
    expect(result._meta).toEqual({ "dev.waybill/result": { blocks: [1, 3] } });
    expect(result.content[3]).toBe(link);
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
