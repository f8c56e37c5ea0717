import { describe, expectTypeOf, it } from "vitest";
import type { JsonValue } from "../json/json-value.ts";
import { ERROR_CODES, type ErrorCode, type ErrorTraits, isErrorCode } from "./error-codes.ts";
import {
  CallError,
  type CallErrorJSON,
  isCallError,
  type Problem,
  toCallError,
  toProblem,
} from "./errors.ts";

describe("errors, by type", () => {
  it("X-5 codes are the keys of the table, and every row has all traits", () => {
    expectTypeOf<ErrorCode>().toEqualTypeOf<keyof typeof ERROR_CODES>();
    expectTypeOf<"DEFINITION_CHANGED">().toExtend<ErrorCode>();
    expectTypeOf<"OUT_OF_STOCK">().not.toExtend<ErrorCode>();
    expectTypeOf(ERROR_CODES).toExtend<Readonly<Record<string, ErrorTraits>>>();
  });

  it("X-5 a CallError takes codes of the table and declared ones", () => {
    expectTypeOf(CallError).toBeConstructibleWith("TIMEOUT");
    expectTypeOf(CallError).toBeConstructibleWith("OUT_OF_STOCK", "None left.", {
      httpStatus: 409,
      details: 1,
    });
    // @ts-expect-error a code is a string
    new CallError(404);
    // @ts-expect-error details go into `details`
    new CallError("OUT_OF_STOCK", "None left.", { sku: 7 });
    // @ts-expect-error among the options too
    new CallError("OUT_OF_STOCK", "None left.", { httpStatus: 409, sku: 7 });
    const details = { sku: 7 };
    // @ts-expect-error a value with a name is no different
    new CallError("OUT_OF_STOCK", "None left.", details);
    expectTypeOf<CallError["details"]>().toEqualTypeOf<JsonValue | undefined>();
    expectTypeOf<CallError["toJSON"]>().returns.toEqualTypeOf<CallErrorJSON>();
    expectTypeOf<CallError>().toExtend<Error>();
  });

  it("X-5 guards narrow, and a thrown value becomes a CallError", () => {
    expectTypeOf(isErrorCode).guards.toEqualTypeOf<ErrorCode>();
    expectTypeOf(isCallError).guards.toEqualTypeOf<CallError>();
    expectTypeOf(toCallError).parameter(0).toBeUnknown();
    expectTypeOf(toCallError).returns.toEqualTypeOf<CallError>();
    expectTypeOf(toProblem).returns.toEqualTypeOf<Problem>();
  });
});
