import { describe, expect, it } from "vitest";
import { localEnvelope, toolError } from "../core/envelope/envelope.ts";
import { compileSchema } from "../core/schema/compile-schema.ts";
import { CallEventSchema, type CallEventType, EVENT_LIMITS } from "./call-events.ts";

const fits = (type: CallEventType, event: unknown) => compileSchema(CallEventSchema[type]).check(event);
const requested = (more: object) => fits("call.requested", { requestId: "r", operationId: "a.b", ...more });

describe("CallEventSchema", () => {
  it("RE-17 has a schema for each of the five events, and two more of our own", () => {
    expect(Object.keys(CallEventSchema)).toEqual([
      "call.requested",
      "call.responded",
      "call.completed",
      "call.aborted",
      "call.error",
      "call.credit",
      "call.progress",
    ]);
  });

  it("RE-17 call.responded takes an envelope, a tool error included", () => {
    for (const output of [localEnvelope(null, "a.b"), toolError("no")]) {
      expect(fits("call.responded", { requestId: "r", output })).toBe(true);
      expect(fits("call.responded", { requestId: "r", output, sequence: 0 })).toBe(true);
    }
  });

  it.each([
    1,
    "text",
    null,
    undefined,
    [],
    {},
    { data: 1 },
    { data: 1, meta: {} },
    { data: 1, meta: { source: "local" } },
    { meta: localEnvelope(1, "a.b").meta },
  ])("RE-17 call.responded never carries a raw value such as %j", (output) => {
    expect(fits("call.responded", { requestId: "r", output })).toBe(false);
  });

  it("RE-17 every event names its request, in printable characters", () => {
    const rest = {
      "call.requested": { operationId: "a.b" },
      "call.responded": { output: localEnvelope(1, "a.b") },
      "call.completed": { count: 0 },
      "call.aborted": {},
      "call.error": { error: { code: "X", message: "", retryable: false, correctable: false } },
      "call.credit": { credit: 1 },
      "call.progress": {},
    } as const;
    for (const [type, fields] of Object.entries(rest) as [CallEventType, object][]) {
      expect(fits(type, { requestId: "r", later: "field", ...fields })).toBe(true);
      for (const requestId of [undefined, "", 1, "a b", "é", "x".repeat(EVENT_LIMITS.requestId + 1)]) {
        expect(fits(type, { ...fields, requestId })).toBe(false);
      }
      expect(fits(type, { ...fields, requestId: "x".repeat(EVENT_LIMITS.requestId) })).toBe(true);
    }
  });

  it("RE-17 holds the fields of a request to their bounds, at N and N+1", () => {
    for (const [field, least, most] of [
      ["credit", 1, 2 ** 31 - 1],
      ["attempt", 1, 1_000],
      ["depth", 0, 1_000],
    ] as const) {
      expect([least, most].map((value) => requested({ [field]: value }))).toEqual([true, true]);
      const wrong = [least - 1, most + 1, 1.5, "1", null];
      expect(wrong.map((value) => requested({ [field]: value }))).toEqual(wrong.map(() => false));
    }
    expect([0, 0.5, 1e9].map((timeLeftMs) => requested({ timeLeftMs }))).toEqual([true, true, true]);
    expect([-1, "1", null].map((timeLeftMs) => requested({ timeLeftMs }))).toEqual([false, false, false]);
    const text = (length: number) => "x".repeat(length);
    const { credential, operationId } = EVENT_LIMITS;
    expect([credential, credential + 1, 0].map((n) => requested({ credential: text(n) }))).toEqual([
      true,
      false,
      false,
    ]);
    expect([operationId, operationId + 1].map((n) => requested({ operationId: text(n) }))).toEqual([
      true,
      false,
    ]);
  });

  it("RE-17 an abort gives one of the known reasons or none", () => {
    for (const reason of ["aborted", "deadline", "left", "disconnected"]) {
      expect(fits("call.aborted", { requestId: "r", reason })).toBe(true);
    }
    expect(fits("call.aborted", { requestId: "r", reason: "bored" })).toBe(false);
  });

  it("RE-17 an error has a code, a message and what to do about it", () => {
    const error = { code: "X", message: "", retryable: false, correctable: false };
    const check = (more: object) => fits("call.error", { requestId: "r", error: { ...error, ...more } });
    expect([check({}), check({ httpStatus: 400 }), check({ httpStatus: 599, details: [1] })]).toEqual([
      true,
      true,
      true,
    ]);
    const wrong = [
      { httpStatus: 399 },
      { httpStatus: 600 },
      { code: "" },
      { code: 1 },
      { retryable: "no" },
      { message: null },
    ];
    expect(wrong.map(check)).toEqual(wrong.map(() => false));
    expect(check({ message: "x".repeat(EVENT_LIMITS.message + 1) })).toBe(false);
  });
});
