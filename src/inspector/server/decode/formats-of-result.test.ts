import { expect, test } from "vitest";
import { FORMATS } from "../../../formats/index.ts";
import type { DifferenceView, FormatView } from "../../protocol.ts";
import { formatsOfResult } from "./decode-results.ts";

const MCP = {
  data: { parcel: "P-1" },
  meta: {
    source: "mcp",
    isError: false,
    content: [{ type: "text", text: "P-1 is on its way." }],
    structuredContent: { parcel: "P-1" },
    waybill: { durationMs: 12, obtained: "structured-content" },
  },
};

function formats(envelope: unknown, operation?: string): ReadonlyMap<string, FormatView> {
  return new Map(formatsOfResult(envelope, operation).formats.map((view) => [view.format, view]));
}

const pointers = (told: readonly DifferenceView[] = []): string[] => told.map(({ pointer }) => pointer);

const local = (operationId: string) => ({
  data: { parcel: "P-1" },
  meta: { source: "local", operationId, timestamp: 1 },
});

test("what a format loses is told apart from what it makes up, and together they are its losses", () => {
  for (const envelope of [MCP, local("post.track")]) {
    const { result } = FORMATS["response-envelope"].decode(envelope);
    for (const [format, { lost, madeUp }] of formats(envelope)) {
      const losses = FORMATS[format as keyof typeof FORMATS].losses(result);
      expect([...pointers(lost), ...pointers(madeUp)].sort()).toEqual(losses);
      for (const pointer of pointers(madeUp)) expect(result).not.toHaveProperty(pointer.slice(1));
    }
  }
});

test("both say how the value begins", () => {
  const all = formats(MCP);
  expect(all.get("mcp")?.lost).toContainEqual({ pointer: "/durationMs", text: "12" });
  expect(all.get("mcp")?.madeUp).toEqual([]);
  const tiered = all.get("tiered-envelope");
  expect(tiered?.madeUp).toContainEqual({ pointer: "/tier", text: '"community"' });
  const id = tiered?.madeUp.find(({ pointer }) => pointer === "/requestId")?.text ?? "";
  expect(id).toMatch(/^".+"$/);
  expect(JSON.stringify(tiered?.encoded)).toContain(id.slice(1, -1));
});

test("a name that the result does not say itself is not lost where a format has no place for it", () => {
  const told = formats(MCP, "post.track");
  expect(told.get("mcp")?.encoded).toMatchObject({
    _meta: { "dev.waybill/result": { residual: { set: { "/tool": "post.track" } } } },
  });
  for (const { lost, madeUp } of told.values()) {
    expect([...pointers(lost), ...pointers(madeUp)]).not.toContain("/tool");
  }
  expect(pointers(formats(local("post.track")).get("mcp")?.lost)).toContain("/tool");
});

test("at most 200 characters of a value are told", () => {
  const lost = (length: number) => formats(local("x".repeat(length))).get("mcp")?.lost;
  expect(lost(198)).toContainEqual({ pointer: "/tool", text: `"${"x".repeat(198)}"` });
  expect(lost(199)).toContainEqual({ pointer: "/tool", text: `"${"x".repeat(199)}` });
});

test("names of prototypes are data", () => {
  const envelope = JSON.parse(
    '{"data":{"__proto__":1},"meta":{"source":"local","operationId":"a.b","timestamp":1}}',
  ) as unknown;
  for (const { encoded, refused } of formats(envelope).values()) {
    expect(encoded === undefined ? refused : JSON.stringify(encoded)).toBeTypeOf("string");
  }
});
