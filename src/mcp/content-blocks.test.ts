import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isContentBlock } from "../core/envelope/envelope.ts";
import { mapMCPContentBlocks } from "./content-blocks.ts";

const KNOWN = [
  { type: "text", text: "a", annotations: { audience: ["user"], priority: 1 }, extra: 1 },
  { type: "image", data: "AAAA", mimeType: "image/png" },
  { type: "audio", data: "AAAA", mimeType: "audio/wav", _meta: { a: 1 } },
  { type: "resource", resource: { uri: "demo://1", text: "x" } },
  { type: "resource_link", uri: "demo://1", name: "one", size: 3 },
];

describe("mapMCPContentBlocks", () => {
  it("RE-24 keeps every kind MCP defines exactly as it is", () => {
    const mapped = mapMCPContentBlocks(KNOWN);
    expect(mapped).toEqual(KNOWN);
    for (const [i, block] of mapped.entries()) expect(block).toBe(KNOWN[i]);
  });

  it.each([
    ["a type of tomorrow", { type: "hologram", uri: "demo://1" }],
    ["a text block without text", { type: "text" }],
    ["an image without data", { type: "image", mimeType: "image/png" }],
    ["no type at all", { text: "x" }],
    ["a type that is no string", { type: 7 }],
    ["null", null],
    ["a string", "text"],
    ["a list", [1]],
    ["a name such as __proto__", JSON.parse('{"__proto__":{"type":"text","text":"x"}}')],
  ])("RE-24 turns %s into a text block with its JSON", (_, block) => {
    expect(mapMCPContentBlocks([KNOWN[0], block])).toEqual([
      KNOWN[0],
      { type: "text", text: JSON.stringify(block) },
    ]);
  });

  it("RE-24 is one to one for any JSON, and gives nothing but blocks", () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue({ maxDepth: 4 }), { maxLength: 8 }), (blocks) => {
        const mapped = mapMCPContentBlocks(blocks);
        expect(mapped).toHaveLength(blocks.length);
        expect(mapped.every(isContentBlock)).toBe(true);
      }),
    );
  });

  it("RE-24 survives what cannot be read or written", () => {
    let deep: unknown = 1;
    for (let i = 0; i < 100_000; i++) deep = [deep];
    const circular: Record<string, unknown> = { type: "x" };
    circular["self"] = circular;
    const throwing = {
      get type(): string {
        throw new Error("no");
      },
    };
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    const mapped = mapMCPContentBlocks([deep, circular, throwing, proxy, 1n, undefined]);
    expect(mapped).toHaveLength(6);
    expect(mapped.every(isContentBlock)).toBe(true);
    const noList = Proxy.revocable([], {});
    noList.revoke();
    for (const value of [undefined, null, "text", {}, { length: 3 }, noList.proxy]) {
      expect(mapMCPContentBlocks(value)).toEqual([]);
    }
  });
});
