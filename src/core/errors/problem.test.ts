import { describe, expect, it } from "vitest";
import { ERROR_CODES, type ErrorCode } from "./error-codes.ts";
import { CallError, toProblem } from "./errors.ts";

describe("RFC 9457 problems", () => {
  it.each(Object.keys(ERROR_CODES) as ErrorCode[])("X-5 gives %s its problem from the table", (code) => {
    const { problemType, title, httpStatus, message, retryable, correctable } = ERROR_CODES[code];
    expect(toProblem(new CallError(code))).toEqual({
      type: problemType,
      title,
      status: httpStatus,
      detail: message,
      code,
      retryable,
      correctable,
    });
  });

  it("X-5 adds details and the instance when there are any, and no empty members otherwise", () => {
    const error = new CallError("CONFLICT", "Taken.", { details: { id: 7 } });
    expect(toProblem(error, "urn:call:1")).toMatchObject({
      detail: "Taken.",
      details: { id: 7 },
      instance: "urn:call:1",
    });
    expect(Object.keys(toProblem(new CallError("CONFLICT")))).not.toContain("instance");
    expect(Object.keys(toProblem(new CallError("CONFLICT")))).not.toContain("details");
  });

  it("X-5 gives a declared domain error its own status and a type that says so", () => {
    const error = new CallError("OUT_OF_STOCK", "None left.", { httpStatus: 409, retryable: true });
    expect(toProblem(error)).toEqual({
      type: "https://waybill.dev/problems/declared-error",
      title: "Error declared by the operation",
      status: 409,
      detail: "None left.",
      code: "OUT_OF_STOCK",
      retryable: true,
      correctable: false,
    });
    expect(toProblem(new CallError("constructor")).title).toBe("Error declared by the operation");
  });

  it("X-5 never shows the cause", () => {
    const error = new CallError("UNAVAILABLE", undefined, { cause: new Error("secret") });
    expect(JSON.stringify(toProblem(error))).not.toContain("secret");
  });
});
