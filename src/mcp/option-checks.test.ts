import { describe, expect, it } from "vitest";
import type { McpRequestOptions } from "./client/mcp-connection.ts";
import { checkRequestOptions } from "./option-checks.ts";

describe("the options of a request", () => {
  it.each([
    [{ signal: {} }, "signal must be an AbortSignal; it is of type object."],
    [
      { signal: new AbortController() },
      "signal must be an AbortSignal (the signal of the controller); it is of type object.",
    ],
    [{ signal: null }, "signal must be an AbortSignal; it is null."],
    [{ timeoutMs: "3" }, "timeoutMs must be a number of milliseconds; it is of type string."],
    [{ timeoutMs: -1 }, "timeoutMs must be a number of milliseconds, 0 or more; it is -1."],
    [{ timeoutMs: Number.NaN }, "timeoutMs must be a number of milliseconds, 0 or more; it is NaN."],
    [{ onProgress: "x" }, "onProgress must be a function; it is of type string."],
    [
      new AbortController().signal,
      "The options of a request must be an object, such as { signal, timeoutMs }.",
    ],
    [7, "The options of a request must be an object, such as { signal, timeoutMs }."],
  ])("X-4 are refused where they cannot work (%#)", (options, message) => {
    expect(() => checkRequestOptions(options as unknown as McpRequestOptions)).toThrow(
      new TypeError(message),
    );
  });

  it("X-4 are taken where they can", () => {
    const { signal } = new AbortController();
    for (const options of [
      undefined,
      {},
      { signal },
      { timeoutMs: 0 },
      { timeoutMs: Number.POSITIVE_INFINITY },
    ]) {
      expect(() => checkRequestOptions(options)).not.toThrow();
    }
  });
});
