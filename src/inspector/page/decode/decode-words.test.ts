import { describe, expect, it } from "vitest";
import type { DecodedView } from "../../protocol.ts";
import { answerWords, outcomeWords, wrappingWords } from "./decode-words.ts";

const RESULT: DecodedView = {
  format: "mcp",
  wrapping: "none",
  isError: false,
  text: "",
  odd: [],
};
const ODD = { code: "unflagged_error", message: "It says no, and is not marked so." };

describe("the words about a decoded text", () => {
  it("name the one result, or how many there are, and how much is odd", () => {
    expect(answerWords({ results: [RESULT] })).toBe("MCP's own result, nothing odd.");
    expect(answerWords({ results: [{ ...RESULT, odd: [ODD] }] })).toBe("MCP's own result, 1 thing odd.");
    expect(answerWords({ results: [RESULT, { ...RESULT, odd: [ODD, ODD] }] })).toBe(
      "2 results, 2 things odd.",
    );
    expect(answerWords({ results: [] })).toBe("There is no result in it.");
  });

  it("tell a tool error from a call that failed", () => {
    expect(outcomeWords(RESULT)[1]).toBe("ok");
    expect(outcomeWords({ ...RESULT, isError: true })[1]).toBe("tool error");
    for (const format of ["json-rpc-error", "call-error", "problem"] as const) {
      expect(outcomeWords({ format, isError: true })[1]).toBe("the call failed");
    }
  });

  it("say how a result was wrapped", () => {
    expect(wrappingWords("json-rpc")).toBe("json rpc");
    expect(wrappingWords("__proto__")).toBe("__proto__");
  });
});
