import { describe, expect, it } from "vitest";
import { rejection } from "../../test/make-operation.ts";
import { openEnd } from "../../test/open-end.ts";
import { localEnvelope } from "../core/envelope/envelope.ts";

describe("a subscription from the asking side", () => {
  const yieldOf = (requestId: string, sequence: number | undefined) =>
    ({ type: "call.responded", requestId, output: localEnvelope(sequence, "a.b"), sequence }) as const;

  function open(window = 4) {
    const end = openEnd({ limits: { streamBuffer: window } });
    const values = end.map.subscribe("a.b", 1, { requestId: "s" });
    const first = values.next();
    return { ...end, values, first, asker: end.last().asker };
  }

  it("RE-28 a gap ends the stream with an error, and whoever yields is told", async () => {
    const { map, asker, values, first, sent } = open();
    asker.receive(yieldOf("s", 0));
    asker.receive(yieldOf("s", 2));
    await first;
    expect(await rejection(values.next())).toMatchObject({
      code: "UNAVAILABLE",
      details: { expected: 1, received: 2 },
    });
    expect([map.counters.gaps, map.size, sent.at(-1)]).toEqual([
      1,
      0,
      { type: "call.aborted", requestId: "s", reason: "aborted" },
    ]);
  });

  it("RE-28 an end that counts more yields than came is a gap", async () => {
    const { map, asker, values, first } = open();
    asker.receive(yieldOf("s", 0));
    asker.receive({ type: "call.completed", requestId: "s", count: 2 });
    await first;
    expect(await rejection(values.next())).toMatchObject({ code: "UNAVAILABLE" });
    expect(map.counters.gaps).toBe(1);
  });

  it("RE-28 a yield that comes twice is dropped, one without its place too", async () => {
    const { map, asker, values, first } = open();
    for (const sequence of [0, 0, undefined, 1]) asker.receive(yieldOf("s", sequence));
    asker.receive({ type: "call.completed", requestId: "s", count: 2 });
    expect([
      (await first).value?.data,
      (await values.next()).value?.data,
      (await values.next()).done,
    ]).toEqual([0, 1, true]);
    expect([map.counters.duplicate, map.counters.unexpected]).toEqual([1, 1]);
  });

  it("Call: streamBuffer yields may come, one more than granted ends the stream", async () => {
    const { map, asker, values, first } = open(4);
    for (let n = 0; n < 4; n++) asker.receive(yieldOf("s", n));
    await first;
    expect([map.size, map.counters.overLimit]).toEqual([1, 0]);
    asker.receive(yieldOf("s", 4));
    expect([map.size, map.counters.overLimit]).toEqual([0, 1]);
    expect(await rejection(values.next())).toMatchObject({
      code: "RESOURCE_EXHAUSTED",
      details: { limit: "streamBuffer", allowed: 4 },
    });
  });

  it.each([
    [9_999, 1, 0],
    [10_000, 0, 1],
  ])(
    "Call: after %i bytes of 10,000 one more yield may come: %i, or ends the stream",
    async (sum, size, over) => {
      const end = openEnd({ limits: { streamBytes: 10_000 } }, true);
      const values = end.map.subscribe("a.b", 1, { requestId: "s" });
      const first = values.next();
      const { asker, request } = end.last();
      expect(request).toMatchObject({ credit: 64, creditBytes: 10_000 });
      // The reader has read the first one, of which too little was counted to be granted anew.
      asker.receive(yieldOf("s", 0), 3_000);
      await first;
      asker.receive(yieldOf("s", 1), sum - 3_000);
      asker.receive(yieldOf("s", 2), 20_000);
      expect([end.map.size, end.map.counters.overLimit]).toEqual([size, over]);
      if (over === 1) {
        const details = { limit: "streamBytes", allowed: 10_000 };
        expect(await rejection(values.next())).toMatchObject({ code: "RESOURCE_EXHAUSTED", details });
        return;
      }
      await values.next();
      expect(end.sent).toEqual([{ type: "call.credit", requestId: "s", credit: 2, bytes: sum }]);
      asker.receive(yieldOf("s", 3), 20_000);
      expect([end.map.size, end.map.counters.overLimit]).toEqual([0, 1]);
    },
  );

  it("Call: yields that are small, or come over a bus that writes nothing down, count as values alone", async () => {
    for (const [isMeasured, bytes] of [
      [true, 2_048],
      [false, undefined],
    ] as const) {
      const end = openEnd({ limits: { streamBytes: 2_049 } }, isMeasured);
      const values = end.map.subscribe("a.b", 1, { requestId: "s" });
      void values.next();
      for (let n = 0; n < 64; n++) end.last().asker.receive(yieldOf("s", n), bytes);
      expect([end.map.size, end.last().request.creditBytes]).toEqual([1, isMeasured ? 2_049 : undefined]);
      await values.return?.();
    }
  });

  it("RE-21 leaving publishes call.aborted, once, and what comes later is counted", async () => {
    const { map, asker, values, first, sent, closed } = open();
    asker.receive(yieldOf("s", 0));
    await first;
    await values.return?.();
    await values.return?.();
    asker.receive(yieldOf("s", 1));
    expect(sent.filter(({ type }) => type === "call.aborted")).toEqual([
      { type: "call.aborted", requestId: "s", reason: "left" },
    ]);
    expect([closed, map.size, map.counters.late]).toEqual([["s"], 0, 1]);
  });

  it("RE-21 a stream that ends by itself publishes no call.aborted", async () => {
    const { asker, first, sent } = open();
    asker.receive({ type: "call.completed", requestId: "s", count: 0 });
    expect((await first).done).toBe(true);
    expect(sent).toEqual([]);
  });
});
