import { describe, expect, it } from "vitest";
import { ERROR_CODES, errorTraits, isErrorCode } from "./error-codes.ts";

type Row = readonly [
  status: number,
  category: string,
  tieredCode: string,
  outlook: "final" | "retryable" | "correctable",
];

/** The table of X-5, written a second time so that no row changes unnoticed. */
const EXPECTED: Readonly<Record<string, Row>> = {
  OPERATION_NOT_FOUND: [404, "not_found", "not_found", "final"],
  ACCESS_DENIED: [403, "authorization", "forbidden", "final"],
  VALIDATION_ERROR: [400, "validation", "invalid_argument", "correctable"],
  TIMEOUT: [504, "timeout", "timeout", "retryable"],
  ABORTED: [499, "execution", "internal_error", "final"],
  EXECUTION_ERROR: [500, "execution", "internal_error", "final"],
  UNKNOWN_ERROR: [500, "internal", "internal_error", "final"],
  UNAUTHENTICATED: [401, "authorization", "forbidden", "final"],
  NOT_FOUND: [404, "not_found", "not_found", "correctable"],
  RATE_LIMITED: [429, "rate_limit", "resource_exhausted", "retryable"],
  TOO_LARGE: [413, "validation", "too_large", "correctable"],
  RESOURCE_EXHAUSTED: [503, "rate_limit", "resource_exhausted", "retryable"],
  NOT_IMPLEMENTED: [501, "execution", "not_implemented", "final"],
  UPGRADE_REQUIRED: [402, "authorization", "upgrade_required", "final"],
  UNAVAILABLE: [503, "network", "dependency_unavailable", "retryable"],
  NO_RESPONDER: [503, "network", "dependency_unavailable", "retryable"],
  OUTPUT_INVALID: [500, "internal", "internal_error", "final"],
  WITHHELD: [502, "authorization", "forbidden", "final"],
  APPROVAL_REQUIRED: [428, "authorization", "forbidden", "retryable"],
  APPROVAL_DENIED: [403, "authorization", "forbidden", "final"],
  DEFINITION_CHANGED: [409, "authorization", "forbidden", "final"],
  CONFLICT: [409, "validation", "invalid_argument", "correctable"],
};

const CODES = Object.keys(EXPECTED);

describe("the error table", () => {
  it("X-5 holds every code and no other", () => {
    expect(Object.keys(ERROR_CODES).sort()).toEqual([...CODES].sort());
  });

  it.each(CODES)("X-5 maps %s to its status, category, tiered code and outlook", (code) => {
    const [httpStatus, category, tieredCode, outlook] = EXPECTED[code] as Row;
    expect(errorTraits(code)).toMatchObject({
      httpStatus,
      category,
      tieredCode,
      retryable: outlook === "retryable",
      correctable: outlook === "correctable",
    });
  });

  it.each(CODES)("X-5 gives %s a problem type of its own name, a title and a sentence", (code) => {
    const { problemType, title, message } = errorTraits(code);
    expect(problemType).toBe(`https://waybill.dev/problems/${code.toLowerCase().replaceAll("_", "-")}`);
    expect(title).toMatch(/^[A-Z][a-z ]+$/);
    expect(message).toMatch(/^[A-Z].{10,}\.$/);
  });

  it("X-5 gives no two codes the same title or sentence", () => {
    const rows = Object.values(ERROR_CODES);
    expect(new Set(rows.map((row) => row.title)).size).toBe(rows.length);
    expect(new Set(rows.map((row) => row.message)).size).toBe(rows.length);
  });

  it("X-5 answers MCP clients with an error result, and unknown tools with a protocol error", () => {
    const others = CODES.filter((code) => code !== "OPERATION_NOT_FOUND");
    expect(ERROR_CODES.OPERATION_NOT_FOUND.mcpAnswer).toBe("protocol-error");
    expect(new Set(others.map((code) => errorTraits(code).mcpAnswer))).toEqual(new Set(["error-result"]));
  });

  it("X-5 publishes call.error for every code but an abort", () => {
    const others = CODES.filter((code) => code !== "ABORTED");
    expect(ERROR_CODES.ABORTED.callEvent).toBe("call.aborted");
    expect(new Set(others.map((code) => errorTraits(code).callEvent))).toEqual(new Set(["call.error"]));
  });
});

describe("looking a code up", () => {
  it.each(CODES)("X-5 recognises %s", (code) => {
    expect(isErrorCode(code)).toBe(true);
  });

  it.each(["constructor", "__proto__", "toString", "hasOwnProperty", "", "timeout", "OUT_OF_STOCK"])(
    "X-5 does not take %j for a code of the table",
    (name) => {
      expect(isErrorCode(name)).toBe(false);
      expect(errorTraits(name)).toBe(ERROR_CODES.EXECUTION_ERROR);
    },
  );

  it.each([undefined, null, 7, {}, ["TIMEOUT"], { toString: () => "TIMEOUT" }])(
    "X-5 does not take the non-string %j for a code",
    (value) => {
      expect(isErrorCode(value)).toBe(false);
    },
  );
});
