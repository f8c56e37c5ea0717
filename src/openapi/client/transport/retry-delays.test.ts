import { describe, expect, it } from "vitest";
import { backoffMs } from "../../../core/limits/backoff.ts";
import { isPassing, toRetryAfterMs } from "./create-transport.ts";

describe("backoffMs", () => {
  it("RE-25 doubles the wait, varies it by half, and keeps to the longest", () => {
    for (let round = 0; round < 50; round++) {
      for (const [before, most] of [200, 400, 800, 1_000, 1_000].entries()) {
        const delay = backoffMs(before + 1, 200, 1_000);
        expect(delay).toBeGreaterThanOrEqual(most / 2);
        expect(delay).toBeLessThanOrEqual(most);
      }
    }
  });
});

describe("toRetryAfterMs", () => {
  const now = Date.parse("2026-01-01T00:00:00Z");

  it.each([
    ["0", 0],
    ["7", 7_000],
    [" 7 ", 7_000],
    ["1.5", 1_500],
    ["Thu, 01 Jan 2026 00:00:10 GMT", 10_000],
    ["Wed, 31 Dec 2025 23:59:00 GMT", 0],
    ["9".repeat(400), Number.POSITIVE_INFINITY],
    ["", undefined],
    ["soon", undefined],
    ["-5", undefined],
    ["2026-01-01", undefined],
    ["0x10", undefined],
  ])("RE-25 reads %j as %j", (text, expected) => {
    expect(toRetryAfterMs({ "retry-after": text }, now)).toBe(expected);
  });

  it("RE-25 reads the first of several, and nothing where there is none", () => {
    expect(toRetryAfterMs({ "retry-after": ["1", "2"] })).toBe(1_000);
    expect(toRetryAfterMs({})).toBeUndefined();
  });
});

it("RE-25 takes six statuses for passing", () => {
  const passing = Array.from({ length: 600 }, (_, status) => status).filter(isPassing);
  expect(passing).toEqual([408, 425, 429, 502, 503, 504]);
});
