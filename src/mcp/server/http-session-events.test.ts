import type { JSONRPCMessage } from "@modelcontextprotocol/server";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EventBudget, readEventBounds, readEventId, SessionEvents } from "./http-session-events.ts";

const note = (n: number): JSONRPCMessage => ({ jsonrpc: "2.0", method: "n", params: { n } });
const BYTES = JSON.stringify(note(0)).length;

async function replay(events: SessionEvents, after: string): Promise<unknown[]> {
  const sent: unknown[] = [];
  await events.replayEventsAfter(after, { send: async (_, message) => void sent.push(message) });
  return sent;
}

describe("SessionEvents", () => {
  it("Mcp: gives back what went over one stream after an event, in order", async () => {
    const ops = fc.array(fc.constantFrom("a", "b"), { minLength: 1, maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(ops, fc.nat(), async (streams, pick) => {
        const events = new SessionEvents(readEventBounds({}));
        const ids: string[] = [];
        for (const [n, stream] of streams.entries()) ids.push(await events.storeEvent(stream, note(n)));
        const at = pick % streams.length;
        const rest = streams.flatMap((stream, n) => (stream === streams[at] && n > at ? [note(n)] : []));
        expect(await replay(events, ids[at] ?? "")).toEqual(rest);
      }),
    );
  });

  it("Mcp: keeps as many messages as allowed, and one more makes the oldest go", async () => {
    const events = new SessionEvents(readEventBounds({ events: 3 }));
    const first = await events.storeEvent("a", {} as JSONRPCMessage);
    for (let n = 0; n < 3; n++) await events.storeEvent("a", note(n));
    expect(await replay(events, first)).toEqual([note(0), note(1), note(2)]);
    await events.storeEvent("a", note(3));
    expect(await replay(events, first)).toEqual([note(1), note(2), note(3)]);
  });

  it("Mcp: keeps as many bytes as allowed, and one too few makes the oldest go", async () => {
    for (const [eventBytes, kept] of [
      [2 * BYTES, 2],
      [2 * BYTES - 1, 1],
      [BYTES - 1, 0],
    ] as const) {
      const events = new SessionEvents(readEventBounds({ eventBytes }));
      await events.storeEvent("a", note(0));
      await events.storeEvent("a", note(1));
      expect(events.size).toBe(kept);
    }
  });

  it("Mcp: lets a message that cannot be kept drive nothing out", async () => {
    for (const limits of [{ eventBytes: 2 * BYTES }, { allEventBytes: 2 * BYTES }]) {
      const events = new SessionEvents(readEventBounds(limits));
      const first = await events.storeEvent("a", {} as JSONRPCMessage);
      await events.storeEvent("a", note(0));
      await events.storeEvent("a", { jsonrpc: "2.0", method: "x".repeat(2 * BYTES) });
      await events.storeEvent("a", note(1));
      expect(await replay(events, first)).toEqual([note(0), note(1)]);
    }
  });

  it("Mcp: keeps a message as it was sent, whatever becomes of it", async () => {
    const events = new SessionEvents(readEventBounds({}));
    const params = { n: 1 };
    const id = await events.storeEvent("a", {} as JSONRPCMessage);
    await events.storeEvent("a", { jsonrpc: "2.0", method: "n", params });
    params.n = 2;
    expect(await replay(events, id)).toEqual([note(1)]);
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
    const opening = {} as JSONRPCMessage;
    const answer: JSONRPCMessage = { jsonrpc: "2.0", id: 1, result: {} };
    await events.storeEvent("running", opening);
    for (const stream of ["a", "b", "c"]) {
      await events.storeEvent(stream, opening);
      await events.storeEvent(stream, answer);
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
      await bob.storeEvent("b", note(0));
      const first = await anns[0].storeEvent("a", {} as JSONRPCMessage);
      await anns[0].storeEvent("a", note(1));
      await anns[1].storeEvent("a", note(2));
      await anns[0].storeEvent("a", note(3));
      expect([...anns, bob].map(({ size }) => size)).toEqual(kept);
      expect((await replay(anns[0], first)).at(-1)).toEqual(note(3));
      expect(budget.bytes).toBe(kept.reduce((sum, size) => sum + size * BYTES, 0));
    }
  });

  it("Mcp: gives back the room of messages that went for another reason, and of sessions that ended", async () => {
    const budget = new EventBudget(10 * BYTES);
    const events = new SessionEvents(readEventBounds({ events: 1 }), { owner: "ann", budget });
    await events.storeEvent("a", note(0));
    await events.storeEvent("a", note(1));
    expect(budget.bytes).toBe(BYTES);
    events.close();
    await events.storeEvent("a", note(2));
    expect([events.size, budget.bytes]).toEqual([0, 0]);
  });

  it("Mcp: never holds more than allowed, whoever keeps what", async () => {
    const steps = fc.array(fc.tuple(fc.nat(3), fc.nat(60)), { maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(steps, async (list) => {
        const budget = new EventBudget(300);
        const all = ["a", "a", "b", "c"].map((owner) => share(budget, owner));
        for (const [at, size] of list) {
          await all[at]?.storeEvent("s", { jsonrpc: "2.0", method: "x".repeat(size) });
          expect(budget.bytes).toBeLessThanOrEqual(300);
        }
        for (const each of all) each.close();
        expect(budget.bytes).toBe(0);
      }),
    );
  });
});
