import { describe, expect, it } from "vitest";
import { HARDENED, runNode } from "./run-node.ts";

const ATTEMPT = "try { new Function(); console.log('allowed'); } catch { console.log('forbidden'); }";

describe("the hardened run", () => {
  it("carries its flags, and no other run does", () => {
    expect(HARDENED).toBe(process.env["MODE"] === "hardened");
  });

  it("hands them to the processes that tests start", async () => {
    expect((await runNode(["--eval", ATTEMPT])).stdout).toBe(HARDENED ? "forbidden\n" : "allowed\n");
  });
});
