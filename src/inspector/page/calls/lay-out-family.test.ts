import { describe, expect, it } from "vitest";
import type { CallRow } from "../../protocol.ts";
import { layOutFamily } from "./call-detail.tsx";

const call = (seq: number, startedAt: number, part: Partial<CallRow> = {}): CallRow => ({
  seq,
  requestId: `r${seq}`,
  operation: `op${seq}`,
  startedAt,
  outcome: "ok",
  durationMs: 10,
  ...part,
});
const outline = (family: readonly CallRow[]): readonly string[] =>
  layOutFamily(family, 0).hops.map(({ row, depth }) => `${"-".repeat(depth)}${row.seq}`);

describe("layOutFamily", () => {
  it("puts callers before what they called, in the order calls began", () => {
    const family = [
      call(1, 0, { durationMs: 100 }),
      call(2, 10, { parent: 1 }),
      call(3, 12, { parent: 2 }),
      call(4, 30, { parent: 1 }),
    ];
    expect(outline(family)).toEqual(["1", "-2", "--3", "-4"]);
  });

  it("draws calls to scale over the whole time, with the part that waited", () => {
    const { hops, spanMs } = layOutFamily(
      [call(1, 1_000, { durationMs: 100 }), call(2, 1_050, { parent: 1, durationMs: 25, waitedMs: 5 })],
      0,
    );
    expect(spanMs).toBe(100);
    expect(hops[1]).toMatchObject({ left: 0.5, width: 0.25, waited: 0.05 });
  });

  it("lets calls that run grow up to the present", () => {
    const { outcome: _outcome, durationMs: _durationMs, ...running } = call(1, 1_000);
    expect(layOutFamily([running], 1_200)).toMatchObject({
      spanMs: 200,
      hops: [{ width: 1 }],
    });
    // A clock that is behind makes nothing negative.
    expect(layOutFamily([running], 900).hops[0]).toMatchObject({ width: 0 });
  });

  it("keeps a wait within its call, and calls that outlive their caller within the whole", () => {
    const { hops, spanMs } = layOutFamily(
      [call(1, 0), call(2, 5, { parent: 1, durationMs: 45, waitedMs: 900 })],
      0,
    );
    expect(spanMs).toBe(50);
    expect(hops[1]).toMatchObject({ width: 0.9, waited: 0.9 });
  });

  it("puts calls at the top whose caller is not remembered", () => {
    expect(outline([call(7, 0, { parent: 3 }), call(8, 1, { parent: 7 })])).toEqual(["7", "-8"]);
  });

  it("ends with calls that would call each other in a circle, or themselves", () => {
    expect(outline([call(1, 0), call(2, 0, { parent: 3 }), call(3, 1, { parent: 2 })])).toEqual(["1"]);
    expect(outline([call(4, 0), call(5, 0, { parent: 5 })])).toEqual(["4"]);
  });

  it("takes families of thousands, in one line or side by side", () => {
    const chain = Array.from({ length: 5_000 }, (_, index) => call(index, index, { parent: index - 1 }));
    expect(layOutFamily(chain, 0).hops.at(-1)).toMatchObject({ depth: 4_999 });
    const fan = Array.from({ length: 5_000 }, (_, index) => call(index, 0, index === 0 ? {} : { parent: 0 }));
    expect(layOutFamily(fan, 0).hops).toHaveLength(5_000);
  });

  it("has a place for a family that took no time, and for none at all", () => {
    expect(layOutFamily([call(1, 0, { durationMs: 0 })], 0).hops[0]).toMatchObject({ left: 0, width: 0 });
    expect(layOutFamily([], 5).hops).toEqual([]);
  });
});
