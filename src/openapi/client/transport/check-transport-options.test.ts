import { describe, expect, it } from "vitest";
import type { TransportLimits, TransportOptions } from "../openapi-options.ts";
import {
  checkTransportOptions,
  TRANSPORT_LIMITS,
  TRANSPORT_OPTIONS,
  toTransportSettings,
} from "./transport-settings.ts";

type Options = TransportOptions & { readonly limits?: TransportLimits };

describe("checkTransportOptions", () => {
  it.each<[object, string]>([
    [{ timeoutMs: -1 }, "timeoutMs must be a number of milliseconds, 0 or more; it is -1."],
    [{ timeoutMs: 0 }, "timeoutMs must be more than 0; it is 0."],
    [{ connectTimeoutMs: "1" }, "connectTimeoutMs must be a number of milliseconds; it is of type string."],
    [{ idleTimeoutMs: Number.NaN }, "idleTimeoutMs must be a number of milliseconds, 0 or more; it is NaN."],
    [{ concurrency: 0 }, "concurrency must be a whole number, 1 or more; it is 0."],
    [
      { concurrency: Number.POSITIVE_INFINITY },
      "concurrency must be a whole number, 1 or more; it is Infinity.",
    ],
    [{ queue: -1 }, "queue must be a whole number, 0 or more; it is -1."],
    [{ redirects: 1.5 }, "redirects must be a whole number, 0 or more; it is 1.5."],
    [{ rate: 5 }, "rate must be an object with any of: calls, perMs."],
    [{ rate: { calls: 5 } }, "rate.perMs must be a number of milliseconds, more than 0; it is null."],
    [{ rate: { perMs: 5 } }, "rate.calls must be a whole number, 1 or more; it is null."],
    [{ rate: { calls: 5, per: 1 } }, 'There is no option "rate.per"; did you mean "rate.perMs"?'],
    [{ retry: true }, "retry must be an object with any of: attempts, delayMs, maxDelayMs."],
    [{ retry: { attempts: 0 } }, "retry.attempts must be a whole number from 1 to 100; it is 0."],
    [{ retry: { delay: 1 } }, 'There is no option "retry.delay"; did you mean "retry.delayMs"?'],
    [
      { allowPrivate: "localhost" },
      'allowPrivate must be true, false or a list of hosts such as "localhost:3000" or "10.0.0.5:*"; it is of type string.',
    ],
    [
      { allowPrivate: [1] },
      'allowPrivate must be true, false or a list of hosts such as "localhost:3000" or "10.0.0.5:*"; it is a list.',
    ],
    [
      { allowPrivate: ["http://localhost:3000"] },
      'allowPrivate must be true, false or a list of hosts such as "localhost:3000" or "10.0.0.5:*"; it is a list.',
    ],
    [{ allowUndelimited: 1 }, "allowUndelimited must be true or false; it is 1."],
    [{ limits: 5 }, "limits must be an object; it is 5."],
    [{ limits: { responseBytes: 0 } }, "limits.responseBytes must be a whole number, 1 or more; it is 0."],
    [{ limits: { decodedRatio: 0.5 } }, "limits.decodedRatio must be a number, 1 or more; it is 0.5."],
  ])("RE-25 refuses %o", (options, message) => {
    expect(() => checkTransportOptions(options as Options)).toThrow(new TypeError(message));
  });

  it("RE-25 takes what the options say they take, and leaves other options alone", () => {
    const options = {
      namespace: "pets",
      timeoutMs: Number.POSITIVE_INFINITY,
      connectTimeoutMs: 1,
      idleTimeoutMs: 1,
      concurrency: 1,
      queue: 0,
      redirects: 0,
      rate: { calls: 1, perMs: 0.5 },
      retry: false,
      allowPrivate: ["localhost", "10.0.0.1:80"],
      allowUndelimited: true,
      limits: { ...TRANSPORT_LIMITS, files: 1 },
    } as const;
    expect(() => checkTransportOptions(options)).not.toThrow();
    expect(() => checkTransportOptions({})).not.toThrow();
    const { namespace: _, limits: __, ...own } = options;
    expect(TRANSPORT_OPTIONS.toSorted()).toEqual(Object.keys(own).sort());
  });
});

describe("toTransportSettings", () => {
  it("RE-25 fills in the documented defaults", () => {
    expect(toTransportSettings({ trusted: [] })).toEqual({
      timeoutMs: 30_000,
      connectTimeoutMs: 10_000,
      idleTimeoutMs: 300_000,
      concurrency: 64,
      rate: undefined,
      queue: 10_000,
      attempts: 3,
      delayMs: 200,
      maxDelayMs: 20_000,
      redirects: 5,
      responseBytes: 33_554_432,
      decodedRatio: 100,
      headerBytes: 65_536,
      requestBytes: 33_554_432,
      urlCharacters: 32_768,
    });
    expect(toTransportSettings({ trusted: [], retry: false }).attempts).toBe(1);
  });
});
