import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CallError } from "../../core/errors/errors.ts";
import type { FailureCause } from "../../core/errors/failure.ts";
import { toCause, toDownCause } from "./down-cause.ts";

const failed = (failure: FailureCause) => new CallError("UNAVAILABLE", "words of any kind", { failure });
const network = (code: string) =>
  new CallError("UNAVAILABLE", "words", {
    cause: new Error("x", { cause: Object.assign(new Error(), { code }) }),
  });

describe("what callers are told of a source that is down", () => {
  it.each<[unknown, string]>([
    [failed({ reason: "exit", value: 3 }), "its process exited with code 3."],
    [failed({ reason: "signal", value: "SIGKILL" }), "its process was ended by SIGKILL."],
    [failed({ reason: "start" }), "its program cannot be started."],
    [failed({ reason: "status", value: 503 }), "it answered with HTTP status 503."],
    [failed({ reason: "document-credentials", value: 401 }), "it answered with HTTP status 401."],
    [failed({ reason: "private-address" }), "its address is private, and not allowed."],
    [failed({ reason: "handshake-time" }), "it did not answer in time."],
    [failed({ reason: "sign-in" }), "it refused the gateway's credentials."],
    [failed({ reason: "plain-http" }), "it cannot work as it is configured."],
    [network("DEPTH_ZERO_SELF_SIGNED_CERT"), "its certificate is not trusted."],
    [network("ECONNREFUSED"), "it cannot be reached."],
    [network("ENOTFOUND"), "it cannot be reached."],
    [network("ETIMEDOUT"), "it did not answer in time."],
    [new CallError("TIMEOUT", "words"), "it did not answer in time."],
    [new CallError("UNAUTHENTICATED", "words"), "it refused the gateway's credentials."],
    [new CallError("OUTPUT_INVALID", "words"), "it cannot be used."],
    [new Error("its process exited with code 3"), "it cannot be used."],
    ["certificate", "it cannot be used."],
  ])("RE-30 of %o is %j", (thrown, cause) => {
    expect(toCause(toDownCause(thrown))).toBe(cause);
  });

  it("RE-30 is that it cannot work, for what only another config can mend", () => {
    expect(toCause({ kind: "config" })).toBe("it cannot work as it is configured.");
  });

  it("RE-30 is not read from a sentence, and holds nothing of one", () => {
    fc.assert(
      fc.property(fc.string({ minLength: 12, maxLength: 40 }), (words) => {
        const failure = { reason: "exit", value: 3, advice: words } as const;
        const cause = toCause(toDownCause(new CallError("UNAVAILABLE", `${words} (ENOENT)`, { failure })));
        expect(cause).toBe("its process exited with code 3.");
      }),
    );
  });
});
