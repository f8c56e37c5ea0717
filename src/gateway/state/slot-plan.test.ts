import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../../test/runs.ts";
import {
  decodeSlots,
  encodeSlots,
  NO_SLOTS,
  planSlots,
  type SlotRecord,
  withoutReplica,
} from "./slot-plan.ts";

interface Side {
  readonly name: string;
  waiting: number;
  used: number;
  cap: number;
  granted: number;
  served: number;
}

/** Replicas that take their turns at one record, one after another, as the store orders their changes. */
class Fleet {
  record: SlotRecord = NO_SLOTS;
  readonly sides: readonly Side[];
  readonly count: number;

  constructor(count: number, replicas: number) {
    this.count = count;
    this.sides = Array.from({ length: replicas }, (_, at) => ({
      name: `r${at}`,
      waiting: 0,
      used: 0,
      cap: Number.POSITIVE_INFINITY,
      granted: 0,
      served: 0,
    }));
  }

  get held(): number {
    return Object.values(this.record.held).reduce((sum, held) => sum + held, 0);
  }

  /** A replica looks at the record, and starts what it may. */
  step(side: Side, shrinkTo?: number): void {
    const { name, used, waiting, granted } = side;
    const plan = planSlots(this.record, {
      replica: name,
      count: this.count,
      used,
      waiting,
      granted,
      shrinkTo,
    });
    this.record = plan.record;
    side.cap = plan.cap;
    side.granted += plan.taken;
    while (
      side.waiting > 0 &&
      side.used < Math.min(plan.held, Math.max(side.cap, side.used + side.granted))
    ) {
      side.waiting--;
      side.used++;
      side.granted = Math.max(side.granted - 1, 0);
      side.served++;
    }
    if (side.waiting === 0) side.granted = 0;
  }

  end(side: Side): void {
    if (side.used > 0) side.used--;
  }
}

const move = fc.record({
  at: fc.nat(4),
  what: fc.constantFrom("ask", "ask", "end", "step", "step", "step", "shrink"),
});

describe("the slots of a limit", () => {
  it("are never more than there are, whatever replicas do in which order, and all of them are had in the end", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 12 }),
        fc.integer({ min: 1, max: 5 }),
        fc.array(move, { maxLength: 200 }),
        (count, replicas, moves) => {
          const fleet = new Fleet(count, replicas);
          const check = (): void => {
            expect(fleet.held).toBeLessThanOrEqual(count);
            for (const { name, used } of fleet.sides)
              expect(fleet.record.held[name] ?? 0).toBeGreaterThanOrEqual(used);
          };
          for (const { at, what } of moves) {
            const side = fleet.sides[at % replicas] as Side;
            if (what === "ask") side.waiting++;
            else if (what === "end") fleet.end(side);
            else fleet.step(side, what === "shrink" ? side.used : undefined);
            check();
          }
          // Everybody who waits gets through once those who run have ended, however the turns go.
          const asked = fleet.sides.reduce((sum, { waiting, served }) => sum + waiting + served, 0);
          for (let round = 0; round < 40 + 4 * asked * replicas; round++) {
            for (const side of fleet.sides) {
              fleet.step(side);
              check();
              fleet.end(side);
            }
          }
          expect(fleet.sides.reduce((sum, { served }) => sum + served, 0)).toBe(asked);
        },
      ),
      runs(300),
    );
  });

  it.each([
    [10, 2],
    [10, 3],
    [3, 3],
    [2, 3],
    [1, 3],
    [1, 2],
    [7, 5],
  ])("are had by all who want more than there are: %i slots, %i replicas", (count, replicas) => {
    const fleet = new Fleet(count, replicas);
    for (const side of fleet.sides) side.waiting = 100_000;
    const rounds = 300;
    for (let round = 0; round < rounds; round++) {
      for (const side of fleet.sides) fleet.step(side);
      for (const side of fleet.sides) while (side.used > 0) fleet.end(side);
    }
    const served = fleet.sides.map((side) => side.served);
    const fair = (rounds * count) / replicas;
    // A slot that goes round is on its way for some of the time.
    for (const own of served) expect(own).toBeGreaterThan(fair / 3);
    expect(Math.max(...served) / Math.min(...served)).toBeLessThan(count % replicas === 0 ? 1.2 : 2.1);
  });

  it("are not asked of the store again where a block is left, nor where everybody has a share", () => {
    const fleet = new Fleet(16, 2);
    const [one, two] = fleet.sides as [Side, Side];
    one.waiting = 1;
    fleet.step(one);
    expect(fleet.record).toEqual({ held: { r0: 3 }, queue: [] });
    const block = fleet.record;
    one.waiting = 2;
    one.granted = 2;
    fleet.step(one);
    expect([fleet.record, one.used]).toEqual([block, 3]);
    one.waiting = 100;
    two.waiting = 100;
    for (let round = 0; round < 30; round++) {
      fleet.step(one);
      fleet.step(two);
      for (const side of [one, two]) if (side.used > 8) fleet.end(side);
    }
    const shared = fleet.record;
    expect(shared.held).toEqual({ r0: 8, r1: 8 });
    for (let round = 0; round < 30; round++) {
      for (const side of [one, two]) {
        fleet.end(side);
        fleet.step(side);
      }
    }
    expect(fleet.record).toBe(shared);
  });

  it("of a replica that is gone are there again, those that rest not before their time", () => {
    const record: SlotRecord = { held: { gone: 4, here: 1 }, queue: ["gone", "here"] };
    expect(withoutReplica(record, "gone", false)).toEqual({ held: { gone: 4, here: 1 }, queue: ["here"] });
    expect(withoutReplica(record, "gone", true)).toEqual({ held: { here: 1 }, queue: ["here"] });
  });

  it("that are in use are counted where the record knows nothing of them", () => {
    const need = { replica: "a", count: 4, used: 3, waiting: 0, granted: 0 };
    expect(planSlots({ held: { b: 4 }, queue: [] }, need)).toMatchObject({ held: 3, taken: 0 });
  });

  it("are read as they were written; what is no such record is refused", () => {
    const record: SlotRecord = { held: { a: 1 }, queue: ["b"] };
    expect(decodeSlots(encodeSlots(record))).toEqual(record);
    for (const text of [
      "",
      "{}",
      '{"held":[],"queue":[]}',
      '{"held":{"a":"1"},"queue":[]}',
      '{"held":{},"queue":[1]}',
    ])
      expect(() => decodeSlots(Buffer.from(text))).toThrow(/cannot be read/);
  });
});
