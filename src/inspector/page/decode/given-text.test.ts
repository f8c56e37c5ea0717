import { describe, expect, it } from "vitest";
import { reportResult } from "../../../formats/report/describe-result.ts";
import { findResults } from "../../../formats/report/find-results.ts";
import { DECODED_BODY_BYTES } from "../../server/inspector-limits.ts";
import { DECODE_EXAMPLES, MOST_DECODED_BYTES, sentBytes, toGiven, tooLong } from "./decode-view.tsx";

describe("a text to decode", () => {
  it("is edited unless it is so long that browsers stutter", () => {
    expect(toGiven("{}", "a.json")).toEqual({ text: "{}" });
    expect(toGiven("x".repeat(400_000), "a.json").name).toBe("a.json");
  });

  it("is too long by the bytes it takes", () => {
    expect(tooLong("The text", MOST_DECODED_BYTES)).toBeUndefined();
    expect(tooLong("a.json", MOST_DECODED_BYTES + 1)).toMatch(
      /^a\.json takes 2\.1 MB, and 2\.1 MB is the most/,
    );
  });

  it("takes what the server takes, as it is sent", () => {
    expect(MOST_DECODED_BYTES).toBe(DECODED_BODY_BYTES);
    expect(sentBytes('"é')).toBe('{"text":"\\"é"}'.length + 1);
    expect(sentBytes("x".repeat(MOST_DECODED_BYTES - 11))).toBe(MOST_DECODED_BYTES);
    expect(tooLong("The text", sentBytes("x".repeat(MOST_DECODED_BYTES - 10)))).toBeDefined();
    expect(tooLong("The text", sentBytes("x".repeat(MOST_DECODED_BYTES + 1)))).toBeDefined();
  });
});

describe("the examples", () => {
  it.each(DECODE_EXAMPLES)("can be decoded: $title", ({ title, text }) => {
    const [found] = findResults(text, "The text");
    if (found === undefined) throw new Error("Nothing was found.");
    const report = reportResult(found, "The text", { recoverJson: true });
    const expected = {
      "Text that holds JSON": { format: "mcp", wrapping: "none", obtained: "text-json" },
      "Tool envelope": { format: "tool-envelope", tool: "track", obtained: "envelope-block" },
      "JSON-RPC answer": { format: "mcp", wrapping: "json-rpc", isError: true },
    }[title];
    expect(expected).toBeDefined();
    expect(report).toMatchObject({ ...expected, odd: [] });
  });
});
