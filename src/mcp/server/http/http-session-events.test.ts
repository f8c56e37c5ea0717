import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EventBudget, readEventBounds, readEventId, SessionEvents } from "./http-session-events.ts";

const note = (n: number): string => JSON.stringify({ jsonrpc: "2.0", method: "n", params: { n } });
const BYTES = note(0).length;

function replay(events: SessionEvents, after: string): readonly string[] {
  return events.after(readEventId(after) ?? { place: 0, stream: "" }).map(([, json]) => json);
}

describe("SessionEvents", () => {
  it("Mcp: gives back what went over one stream after an event, in order", async () => {
    const ops = fc.array(fc.constantFrom("a", "b"), { minLength: 1, maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(ops, fc.nat(), async (streams, pick) => {
        const events = new SessionEvents(readEventBounds({}));
        const ids: string[] = [];
        for (const [n, stream] of streams.entries()) ids.push(events.keep(stream, note(n)));
        const at = pick % streams.length;
        const rest = streams.flatMap((stream, n) => (stream === streams[at] && n > at ? [note(n)] : []));
        expect(await replay(events, ids[at] ?? "")).toEqual(rest);
      }),
    );
  });

  it("Mcp: keeps as many messages as allowed, and one more makes the oldest go", async () => {
    const events = new SessionEvents(readEventBounds({ events: 3 }));
    const first = events.mark("a");
    for (let n = 0; n < 3; n++) events.keep("a", note(n));
    expect(await replay(events, first)).toEqual([note(0), note(1), note(2)]);
    events.keep("a", note(3));
    expect(await replay(events, first)).toEqual([note(1), note(2), note(3)]);
  });

  it("Mcp: keeps as many bytes as allowed, and one too few makes the oldest go", async () => {
    for (const [eventBytes, kept] of [
      [2 * BYTES, 2],
      [2 * BYTES - 1, 1],
      [BYTES - 1, 0],
    ] as const) {
      const events = new SessionEvents(readEventBounds({ eventBytes }));
      events.keep("a", note(0));
      events.keep("a", note(1));
      expect(events.size).toBe(kept);
    }
  });

  it("Mcp: lets a message that cannot be kept drive nothing out", async () => {
    for (const limits of [{ eventBytes: 2 * BYTES }, { allEventBytes: 2 * BYTES }]) {
      const events = new SessionEvents(readEventBounds(limits));
      const first = events.mark("a");
      events.keep("a", note(0));
      events.keep("a", "x".repeat(2 * BYTES + 1));
      events.keep("a", note(1));
      expect(await replay(events, first)).toEqual([note(0), note(1)]);
    }
  });

  it("Mcp: gives a message again under the id it was sent with", async () => {
    const events = new SessionEvents(readEventBounds({}));
    const id = events.mark("a");
    const kept = events.keep("a", note(1));
    expect(events.after(readEventId(id) as never)).toEqual([[kept, note(1)]]);
  });

  it("Mcp: refuses limits that are none, and knows ids from anything else", () => {
    for (const bad of [{ events: 0 }, { eventBytes: 1.5 }, { allEventBytes: 0 }, { events: Number.NaN }]) {
      expect(() => readEventBounds(bad)).toThrow(TypeError);
    }
    expect(readEventId("1:_GET_stream")).toEqual({ place: 1, stream: "_GET_stream" });
    for (const text of ["", "1", ":a", "x:a", "1:", "1:a b", `${"9".repeat(16)}:a`, `1:${"a".repeat(65)}`]) {
      expect(readEventId(text)).toBeUndefined();
    }
  });

  it("Mcp: knows the streams it gave ids for, running ones for ever and as many ended ones as it keeps messages", async () => {
    const events = new SessionEvents(readEventBounds({ events: 2 }));
    events.mark("running");
    for (const stream of ["a", "b", "c"]) {
      events.mark(stream);
      events.keep(stream, "{}");
      events.markAnswered(stream);
    }
    const known = (stream: string) => events.knows({ place: 1, stream });
    expect(["running", "a", "b", "c", "d"].map(known)).toEqual([true, false, true, true, false]);
    expect([7, 8].map((place) => events.knows({ place, stream: "c" }))).toEqual([true, false]);
  });
});

describe("EventBudget", () => {
  const share = (budget: EventBudget, owner: string) =>
    new SessionEvents(readEventBounds({}), { owner, budget });

  it("Mcp: keeps as many bytes of all sessions as allowed, and one too few makes the oldest go of who has most", async () => {
    for (const [max, kept] of [
      [4 * BYTES, [2, 1, 1]],
      [4 * BYTES - 1, [1, 1, 1]],
    ] as const) {
      const budget = new EventBudget(max);
      const bob = share(budget, "bob");
      const anns = [share(budget, "ann"), share(budget, "ann")] as const;
      bob.keep("b", note(0));
      const first = anns[0].mark("a");
      anns[0].keep("a", note(1));
      anns[1].keep("a", note(2));
      anns[0].keep("a", note(3));
      expect([...anns, bob].map(({ size }) => size)).toEqual(kept);
      expect((await replay(anns[0], first)).at(-1)).toEqual(note(3));
      expect(budget.bytes).toBe(kept.reduce((sum, size) => sum + size * BYTES, 0));
    }
  });

  it("Mcp: gives back the room of messages that went for another reason, and of sessions that ended", async () => {
    const budget = new EventBudget(10 * BYTES);
    const events = new SessionEvents(readEventBounds({ events: 1 }), { owner: "ann", budget });
    events.keep("a", note(0));
    events.keep("a", note(1));
    expect(budget.bytes).toBe(BYTES);
    events.close();
    events.keep("a", note(2));
    expect([events.size, budget.bytes]).toEqual([0, 0]);
  });

  it("Mcp: never holds more than allowed, whoever keeps what", async () => {
    const steps = fc.array(fc.tuple(fc.nat(3), fc.nat(60)), { maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(steps, async (list) => {
        const budget = new EventBudget(300);
        const all = ["a", "a", "b", "c"].map((owner) => share(budget, owner));
        for (const [at, size] of list) {
          all[at]?.keep("s", "x".repeat(size));
          expect(budget.bytes).toBeLessThanOrEqual(300);
        }
        for (const each of all) each.close();
        expect(budget.bytes).toBe(0);
      }),
    );
  });
});
