import { describe, expect, it } from "vitest";
import { CreditGate, countedBytes } from "./credit-gate.ts";

/** How many pass without more being granted, up to a thousand. */
async function passing(gate: CreditGate): Promise<number> {
  let passed = 0;
  const going = (async () => {
    while (passed < 1_000) {
      await gate.take();
      passed++;
    }
  })();
  await Promise.race([going, new Promise((resolve) => setTimeout(resolve, 5))]);
  return passed;
}

describe("CreditGate", () => {
  it.each([1, 2, 64])("Call: lets as many pass as were granted: %i", async (credit) => {
    expect(await passing(new CreditGate(credit))).toBe(credit);
  });

  it("Call: lets more pass when more is granted, no sooner", async () => {
    const gate = new CreditGate(1);
    await gate.take();
    let passed = false;
    const waiting = gate.take().then(() => {
      passed = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(passed).toBe(false);
    gate.grant(3);
    await waiting;
    expect(await passing(gate)).toBe(2);
  });

  it.each([
    [99, 2],
    [100, 1],
  ])("Call: of 100 bytes, a value of %i lets %i pass in all", async (bytes, passed) => {
    const gate = new CreditGate(1_000, 100);
    await gate.take();
    gate.spend(bytes);
    const next = gate.take().then(() => "passes");
    const isOver = new Promise((resolve) => setTimeout(() => resolve("waits"), 5));
    expect(await Promise.race([next, isOver])).toBe(passed === 2 ? "passes" : "waits");
    gate.grant(1, 1);
    await next;
  });

  it.each([
    [undefined, 0],
    [2_048, 0],
    [2_049, 2_049],
  ])("Call: a message of %s bytes counts for %i", (bytes, counted) => {
    expect(countedBytes(bytes)).toBe(counted);
  });

  it("Call: a flood of grants stays a number", async () => {
    const gate = new CreditGate(2 ** 31 - 1);
    for (let n = 0; n < 100; n++) gate.grant(Number.MAX_SAFE_INTEGER);
    expect(await passing(gate)).toBe(1_000);
  });

  it("Call: is open for good once it is over, for one who waits too", async () => {
    const gate = new CreditGate(1);
    await gate.take();
    const waiting = gate.take();
    gate.open();
    await waiting;
    expect(await passing(gate)).toBe(1_000);
  });
});
