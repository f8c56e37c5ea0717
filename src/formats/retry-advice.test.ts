import { describe, expect, it } from "vitest";
import { META, TIERED, text } from "../../test/sample-results.ts";
import { ERROR_CODES } from "../index.ts";
import { decodeToolResult, FORMATS, TIERED_ERROR_CODES, toToolResult, transcode } from "./index.ts";

describe("errors", () => {
  const failed = (category: string, recoverable: boolean, code = "X") =>
    decodeToolResult(toToolResult({ payload: { category, code, message: "m", recoverable }, meta: META }))
      .error;
  const advice = (error?: { retryable?: boolean; correctable?: boolean }) => [
    error?.retryable,
    error?.correctable,
  ];

  it.each([
    ["validation", true, [false, true]],
    ["not_found", true, [false, true]],
    ["timeout", true, [true, false]],
    ["network", true, [true, false]],
    ["rate_limit", true, [true, false]],
    ["model", true, [true, false]],
    ["execution", true, [true, false]],
    ["quantum", true, [true, false]],
    ["timeout", false, [false, false]],
    ["validation", false, [false, false]],
  ] as const)("X-2 tells a retry from a correction: %s, recoverable %s", (category, recoverable, wanted) => {
    expect(advice(failed(category, recoverable))).toEqual(wanted);
  });

  it("X-2 prefers a code of the table to a category", () => {
    expect(advice(failed("execution", true, "RATE_LIMITED"))).toEqual([true, false]);
    expect(advice(failed("execution", true, "VALIDATION_ERROR"))).toEqual([false, true]);
  });

  it.each([
    ["timeout", [true, false]],
    ["resource_exhausted", [true, false]],
    ["dependency_unavailable", [true, false]],
    ["invalid_argument", [false, true]],
    ["invalid_path", [false, true]],
    ["too_large", [false, true]],
    ["not_found", [false, true]],
    ["forbidden", [false, false]],
    ["upgrade_required", [false, false]],
    ["internal_error", [false, false]],
    ["melted", [undefined, undefined]],
  ])("X-2 knows what to do about the tiered code %s", (error_code, wanted) => {
    const error = { error: "m", error_code, error_details: null };
    const result = { content: [], structuredContent: { ...TIERED, error }, isError: true };
    expect(advice(decodeToolResult(result).error)).toEqual(wanted);
  });

  it.each(TIERED_ERROR_CODES)(
    "X-5 %s says the same about a retry as a tool envelope, without a residual",
    (error_code) => {
      const error = { error: "m", error_code, error_details: null };
      const tiered = { content: [], structuredContent: { ...TIERED, error }, isError: true };
      const envelope = transcode(tiered, "tool-envelope", { residual: false });
      expect(advice(decodeToolResult(envelope).error)).toEqual(advice(decodeToolResult(tiered).error));
    },
  );

  it.each(Object.entries(ERROR_CODES))(
    "X-5 %s keeps its category and advice in a tool envelope",
    (code, traits) => {
      const { error } = decodeToolResult(
        FORMATS["tool-envelope"].encode({ isError: true, error: { message: "m", code } }),
      );
      expect(error).toMatchObject({
        category: traits.category,
        retryable: traits.retryable,
        correctable: traits.correctable,
      });
    },
  );

  it("X-2 takes the text of a plain error for its message", () => {
    expect(decodeToolResult({ content: [text("no such table")], isError: true })).toMatchObject({
      isError: true,
      error: { message: "no such table" },
    });
    expect(decodeToolResult({ content: [], isError: true }).error?.message).toBe("The tool failed.");
  });

  it("X-2 reads an error payload or a tiered error as a failure even where isError is missing, and says so", () => {
    const payload = { category: "timeout", code: "X", message: "m", recoverable: true };
    const { isError: _, ...unflagged } = toToolResult({ payload, meta: META });
    expect(decodeToolResult(unflagged)).toMatchObject({ isError: true, odd: [{ code: "unflagged_error" }] });
    expect(decodeToolResult({ ...unflagged, isError: false })).toMatchObject({
      isError: false,
      data: payload,
    });
    const error = { error: "m", error_code: "timeout", error_details: null };
    expect(decodeToolResult({ content: [], structuredContent: { ...TIERED, error } })).toMatchObject({
      isError: true,
      odd: [{ code: "flag_mismatch" }],
    });
  });

  it.each(["Error: boom", "❌ no", "### Error\nboom", "Failed to fetch", "error searching"])(
    "X-2 notices a failure reported as success, and does not change the outcome: %j",
    (message) => {
      const { isError, odd } = decodeToolResult({ content: [text(message)] });
      expect({ isError, codes: odd.map(({ code }) => code) }).toEqual({
        isError: false,
        codes: ["error_as_success"],
      });
    },
  );

  it.each(["Errors: 0", "No error", "errorless", "Failure-free"])("X-2 does not suspect %j", (message) => {
    expect(decodeToolResult({ content: [text(message)] }).odd).toEqual([]);
  });
});
