import { describe, expect, it } from "vitest";
import type { ResponseEnvelope } from "../../../core/envelope/envelope.ts";
import { writtenResult } from "./written-json.ts";

const envelopeOf = (data: unknown, more: object = {}) =>
  ({
    data,
    meta: { source: "mcp", operationId: "a.b", timestamp: 1, ...more },
  }) as unknown as ResponseEnvelope;

describe("a written result", () => {
  it("has at most so many characters, and none of one more", () => {
    const written = writtenResult(envelopeOf("x"), 1_000);
    const { length } = "text" in written ? written.text : "";
    expect(writtenResult(envelopeOf("x"), length)).toEqual(written);
    expect(writtenResult(envelopeOf("x"), length - 1)).toEqual({ omitted: "too-long", characters: length });
  });

  it("is not written to find out that what is said about it is too long", () => {
    let isWritten = false;
    const trap = {
      toJSON() {
        isWritten = true;
      },
    };
    const content = [trap, { type: "text", text: "x".repeat(2_000) }];
    expect(writtenResult(envelopeOf(1, { content }), 1_000)).toMatchObject({ omitted: "too-long" });
    expect(isWritten).toBe(false);
  });
});
