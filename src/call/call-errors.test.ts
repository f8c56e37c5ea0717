import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ERROR_CODES, type ErrorCode } from "../core/errors/error-codes.ts";
import { CallError } from "../core/errors/errors.ts";
import { compileSchema } from "../core/schema/compile-schema.ts";
import { fromErrorPayload, toCallErrorPayload } from "./call-errors.ts";
import { CallEventSchema, EVENT_LIMITS } from "./call-events.ts";

const schema = compileSchema(CallEventSchema["call.error"]);

describe("errors in events", () => {
  it("RE-17 every code of the table crosses and comes back the same", () => {
    for (const code of Object.keys(ERROR_CODES) as ErrorCode[]) {
      const error = new CallError(code, "Why.", { details: { at: "/a" } });
      const payload = toCallErrorPayload(error);
      expect(schema.check({ requestId: "r", error: payload })).toBe(true);
      const back = fromErrorPayload(JSON.parse(JSON.stringify(payload)));
      expect([back.toJSON(), back.httpStatus]).toEqual([error.toJSON(), error.httpStatus]);
    }
  });

  it("RE-20 any error of ours fits its schema, however long its message; cause and stack stay here", () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.boolean(),
        fc.boolean(),
        fc.integer({ min: 400, max: 599 }),
        (text, retryable, correctable, httpStatus) => {
          const message = text.repeat(2_000) || "x";
          const error = new CallError("CONFLICT", message, {
            retryable,
            correctable,
            httpStatus,
            cause: new Error("secret"),
          });
          const payload = toCallErrorPayload(error);
          expect(schema.check({ requestId: "r", error: payload })).toBe(true);
          expect(payload.message).toBe(message.slice(0, EVENT_LIMITS.message));
          expect(Object.keys(payload)).not.toContain("cause");
          expect(fromErrorPayload(payload)).toMatchObject({ retryable, correctable, httpStatus });
        },
      ),
    );
  });
});
