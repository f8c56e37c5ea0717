import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cpuMs } from "../../test/cpu-ms.ts";
import { runs } from "../../test/runs.ts";
import { envelope, refusal, text } from "../../test/sample-results.ts";
import {
  type CallToolResult,
  decodeToolResult,
  FORMAT_NAMES,
  FORMATS,
  isFormatError,
  transcode,
} from "./index.ts";

describe("totality", () => {
  const anything = fc.anything({
    withNullPrototype: true,
    withBigInt: true,
    withDate: true,
    withMap: true,
    withSparseArray: true,
  });

  it("X-2 any value gives an answer or a FormatError", () => {
    const result = fc.record(
      { content: anything, structuredContent: anything, isError: anything, _meta: anything },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(
        fc.oneof(
          anything,
          result,
          result.map((value) => ({ ...value, content: [value, text("__ENVELOPE_V1__:e30=")] })),
        ),
        (value) => {
          for (const read of [decodeToolResult, ...FORMAT_NAMES.map((name) => FORMATS[name].decode)]) {
            try {
              read(value);
            } catch (error) {
              expect(isFormatError(error)).toBe(true);
            }
          }
        },
      ),
      runs(1_000),
    );
  });

  const thrower = new Proxy(
    {},
    {
      get() {
        throw new Error("no");
      },
      ownKeys() {
        throw new Error("no");
      },
      getPrototypeOf() {
        throw new Error("no");
      },
    },
  );

  it.each([
    ["a throwing proxy", thrower],
    [
      "a throwing getter",
      {
        get content() {
          throw new Error("no");
        },
      },
    ],
    ["a block that throws", { content: [thrower, thrower] }],
    [
      "structured content that throws",
      {
        content: [],
        structuredContent: {
          data: 1,
          get meta() {
            throw new Error("no");
          },
        },
      },
    ],
  ])("X-2 %s gives a FormatError or an answer, never another error", (_, value) => {
    expect(["unreadable", "not_a_tool_result", "accepted"]).toContain(refusal(() => decodeToolResult(value)));
  });

  it("X-2 deep and wide values are answered in bounded time", () => {
    const deep = JSON.parse(`${"[".repeat(200_000)}${"]".repeat(200_000)}`);
    const before = cpuMs();
    for (const result of [
      { content: [], structuredContent: deep },
      { content: [text("x"), text(`__ENVELOPE_V1__:${"A".repeat(1_000_000)}`)] },
      { content: Array.from({ length: 100_000 }, () => text("__ENVELOPE_V1__:e30=")) },
      { content: Array.from({ length: 100_000 }, () => envelope(1).content[1]) },
      { content: [text(`{"data":${"[".repeat(100_000)}`)] },
      { ...envelope(1), structuredContent: deep },
    ]) {
      expect(refusal(() => decodeToolResult(result as CallToolResult))).not.toContain("not a FormatError");
      for (const name of FORMAT_NAMES)
        expect(refusal(() => transcode(result, name))).not.toContain("not a FormatError");
    }
    expect(cpuMs() - before).toBeLessThan(5_000);
  });
});
