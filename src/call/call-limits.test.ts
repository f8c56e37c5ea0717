import { describe, expect, it } from "vitest";
import { CALL_LIMITS, readCallLimits } from "./call-options.ts";

describe("readLimits", () => {
  it("Call: fills in the defaults, for what is undefined too", () => {
    expect(readCallLimits()).toEqual(CALL_LIMITS);
    expect(readCallLimits({ pendingCalls: 1, streamBuffer: undefined } as object)).toEqual({
      ...CALL_LIMITS,
      pendingCalls: 1,
    });
  });

  it.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "1", null, 1n])(
    "Call: refuses %s as a limit, by its name",
    (value) => {
      for (const name of Object.keys(CALL_LIMITS)) {
        expect(() => readCallLimits({ [name]: value })).toThrow(
          new TypeError(`limits.${name} must be a whole number, 1 or more.`),
        );
      }
    },
  );

  it.each(["pendingcalls", "__proto__x", "constructor", "toString"])(
    "Call: refuses the unknown limit %s",
    (name) => {
      expect(() => readCallLimits({ [name]: 1 })).toThrow(`There is no limit called "${name}".`);
    },
  );

  it("Call: a message holds at least the error that says that something was too large: 2,048 bytes", () => {
    expect(readCallLimits({ messageBytes: 2_048 }).messageBytes).toBe(2_048);
    expect(() => readCallLimits({ messageBytes: 2_047 })).toThrow(
      "limits.messageBytes must be at least 2048.",
    );
  });
});
