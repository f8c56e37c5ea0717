import { describe, expect, it } from "vitest";
import { takeSteps, takeStepsInSlices } from "./to-openapi.ts";

function* count(to: number, each: () => void = () => {}): Generator<undefined, number, undefined> {
  for (let i = 0; i < to; i++) {
    each();
    yield;
  }
  return to;
}

function spend(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

describe("takeSteps", () => {
  it("RE-30 takes all steps, none being one of them", () => {
    expect(takeSteps(count(1_000))).toBe(1_000);
    expect(takeSteps(count(0))).toBe(0);
  });
});

describe("takeStepsInSlices", () => {
  it("RE-30 lets others have a turn while a long work is under way", async () => {
    let turns = 0;
    const others = setInterval(() => turns++, 1);
    expect(await takeStepsInSlices(count(100, () => spend(1)))).toBe(100);
    clearInterval(others);
    expect(turns).toBeGreaterThan(2);
  });

  it("RE-30 does a short work at once", async () => {
    let done = false;
    const working = takeStepsInSlices(
      count(1, () => {
        done = true;
      }),
    );
    expect(done).toBe(true);
    expect(await working).toBe(1);
  });

  it("X-6 rejects with what a step throws", async () => {
    const failing = count(3, () => {
      throw new RangeError("step");
    });
    await expect(takeStepsInSlices(failing)).rejects.toThrow(new RangeError("step"));
  });
});
