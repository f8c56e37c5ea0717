import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  decodeToolResult,
  FORMATS,
  isFormatError,
  parseTieredEnvelope,
  type TieredEnvelope,
} from "../index.ts";

const { examples } = JSON.parse(
  readFileSync(new URL("./published-examples.json", import.meta.url), "utf8"),
) as { examples: TieredEnvelope[] };

describe("the published examples", () => {
  it.each(examples)("CS-10 parse and serialise back unchanged: $tool_id", (example) => {
    expect(JSON.stringify(parseTieredEnvelope(JSON.stringify(example)))).toBe(JSON.stringify(example));
    const isError = example.error !== null;
    const text = JSON.stringify(example);
    const result = {
      content: [{ type: "text", text }],
      structuredContent: example,
      ...(isError && { isError }),
    };
    const { result: canonical } = FORMATS["tiered-envelope"].decode(result);
    expect(JSON.stringify(FORMATS["tiered-envelope"].encode(canonical))).toBe(JSON.stringify(result));
  });
});

describe("reading", () => {
  const good = examples[0] as TieredEnvelope;
  const refusal = (value: unknown) => {
    try {
      parseTieredEnvelope(value);
      return "accepted";
    } catch (error) {
      return isFormatError(error) ? `${error.code}: ${error.message}` : String(error);
    }
  };

  it.each([
    ["tier", undefined, "tier"],
    ["tier", "gold", "tier"],
    ["tool_version", 3, "tool_version"],
    ["tool_id", null, "tool_id"],
    ["request_id", undefined, "request_id"],
    ["capabilities", "envelope-v1", "capabilities"],
    ["capabilities", [1], "capabilities"],
    ["duration_ms", undefined, "duration_ms"],
    ["duration_ms", -1, "duration_ms"],
    ["duration_ms", "3", "duration_ms"],
    ["error", undefined, "error"],
    ["error", "no", "error"],
    ["error", { error: "x" }, "error"],
    ["error", { error: "x", error_code: "y", error_details: [] }, "error"],
    ["upgrade_hints", [{}], "upgrade_hints"],
    ["upgrade_hints", [{ feature: "f", tier: "pro" }], "upgrade_hints"],
  ])("CS-1 CS-2 CS-4 CS-5 refuses %s %j", (field, value, named) => {
    expect(refusal({ ...good, [field]: value })).toMatch(
      new RegExp(`^bad_shape: Not a tiered envelope: "${named}"`),
    );
  });

  it("CS-1 refuses what lacks data, is no object or no JSON", () => {
    const { data: _, ...rest } = good;
    expect(refusal(rest)).toContain('"data" is missing');
    expect(refusal([])).toContain("not an object");
    expect(refusal("{")).toContain("bad_json");
  });

  it("CS-4 lets a community tool leave the duration out, and nobody else", () => {
    const { duration_ms: _, ...rest } = good;
    expect(refusal({ ...rest, tier: "community" })).toBe("accepted");
    expect(refusal({ ...rest, tier: "pro" })).toContain("duration_ms");
    expect(refusal({ ...rest, tier: "enterprise" })).toContain("duration_ms");
  });

  it("CS-7 keeps codes and fields it does not know", () => {
    const odd = { ...good, error: { error: "x", error_code: "melted", error_details: null }, trace: 1 };
    expect(parseTieredEnvelope(odd)).toEqual(odd);
    const result = { content: [], structuredContent: odd, isError: true };
    expect(decodeToolResult(result)).toMatchObject({ format: "tiered-envelope", error: { code: "melted" } });
  });

  it("CS-2 never takes an inherited or forged tier for one", () => {
    const { tier: _, ...rest } = good;
    expect(refusal(Object.assign(Object.create({ tier: "enterprise" }), rest))).toContain("tier");
  });
});
