import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CallError } from "../../core/errors/errors.ts";
import { SourceFault } from "./source-fault.ts";
import { toCause } from "./told-cause.ts";

describe("what callers are told of a source that is down", () => {
  it.each([
    [
      'MCP server "files" (node) could not be connected to: its process exited with code 3; it last said: KEY hunter2.',
      "its process exited with code 3.",
    ],
    ["Cannot start npx: there is none (ENOENT)", "its program cannot be started."],
    ['MCP server "a": it answered with HTTP status 503.', "it answered with HTTP status 503."],
    ["http://127.0.0.1/openapi.json answered 401.", "it answered with HTTP status 401."],
    ["the connection failed (DEPTH_ZERO_SELF_SIGNED_CERT).", "its certificate is not trusted."],
    ["X did not finish the handshake in time.", "it did not answer in time."],
    ["nats://a cannot be reached: nothing listens there; check the broker.", "it cannot be reached."],
    ["its process is gone; it last said: exited with code 9", "it cannot be used."],
  ])("RE-30 of %j is %j", (reason, cause) => {
    expect(toCause(new CallError("UNAVAILABLE", reason))).toBe(cause);
  });

  it("RE-30 is that it cannot work, for what only another config can mend", () => {
    expect(toCause(new SourceFault("secret words"))).toBe("it cannot work as it is configured.");
    expect(toCause(new CallError("TIMEOUT", "words"))).toBe("it did not answer in time.");
  });

  it("RE-30 holds nothing of what came from elsewhere", () => {
    fc.assert(
      fc.property(fc.string({ minLength: 12, maxLength: 40 }), (words) => {
        expect(toCause(new Error(`${words} exited with code 3; it last said: ${words}`))).not.toContain(
          words,
        );
      }),
    );
  });
});
