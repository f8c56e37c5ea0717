import { describe, expect, it } from "vitest";
import { CallSlots } from "./call-slots.ts";

const taken = (slots: CallSlots, owner: string): boolean => {
  try {
    slots.take(owner);
    return true;
  } catch (thrown) {
    expect(thrown).toMatchObject({ code: "RESOURCE_EXHAUSTED", retryable: true });
    return false;
  }
};

describe("call slots", () => {
  it("are three quarters for one caller among others, and all of them for all together", () => {
    const slots = new CallSlots({ calls: 4 }, true);
    slots.take("ben");
    slots.giveBack("ben");
    expect([1, 2, 3, 4].map(() => taken(slots, "ann"))).toEqual([true, true, true, false]);
    expect([taken(slots, "ben"), taken(slots, "ben"), taken(slots, "cid")]).toEqual([true, false, false]);
    slots.giveBack("ann");
    expect([taken(slots, "ann"), taken(slots, "ann")]).toEqual([true, false]);
  });

  it("are all for anybody where callers are not told apart, or where there is one alone", () => {
    const open = new CallSlots({ calls: 4 }, false);
    expect([1, 2, 3, 4, 5].map(() => taken(open, ""))).toEqual([true, true, true, true, false]);
    const lone = new CallSlots({ calls: 4 }, true);
    expect([1, 2, 3, 4, 5].map(() => taken(lone, "ann"))).toEqual([true, true, true, true, false]);
    // Whoever comes then waits for the first one to end, and finds it.
    expect(taken(lone, "ben")).toBe(false);
    lone.giveBack("ann");
    expect([taken(lone, "ann"), taken(lone, "ben")]).toEqual([false, true]);
    const single = new CallSlots({ calls: 1 }, true);
    expect([taken(single, "ann"), taken(single, "ann")]).toEqual([true, false]);
  });

  it("follow a limit that changes", () => {
    const limits = { calls: 1 };
    const slots = new CallSlots(limits, false);
    expect([taken(slots, ""), taken(slots, "")]).toEqual([true, false]);
    limits.calls = 2;
    expect([taken(slots, ""), taken(slots, "")]).toEqual([true, false]);
  });
});
