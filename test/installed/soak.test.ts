import { describe, expect, it } from "vitest";
import { service } from "../gateway-process.ts";
import { CLI } from "../installed-command.ts";
import { HARDENED, runNode } from "../run-node.ts";

// What a soak looks for is the same under the flags of the second run, and takes as long.
describe.skipIf(HARDENED)("a gateway that is kept busy for a minute while its sources are killed", () => {
  it("RE-30 settles every call, and holds nothing afterwards that it did not hold before", async () => {
    const ran = await runNode([service("run-soak.js"), "--minutes", "1", "--cli", CLI]);
    expect([ran.code, ran.stdout]).toEqual([0, expect.not.stringContaining("FAULT")]);
    expect(ran.stdout).toMatch(/^\d+ calls/);
  }, 900_000);
});
