import { describe, expect, it, vi } from "vitest";
import { createMemoryTransport, MemoryBroker } from "./transport.ts";

const bytes = (...values: number[]) => Uint8Array.from(values);

describe("createMemoryTransport", () => {
  it("Call: everybody who subscribes gets a copy, of those in a queue one", async () => {
    const broker = new MemoryBroker();
    const [one, other] = [createMemoryTransport({ broker }), createMemoryTransport({ broker })];
    const [all, some, queued] = [vi.fn(), vi.fn(), vi.fn()];
    one.subscribe("a.*", all);
    other.subscribe("a.b", some);
    for (const transport of [one, other]) transport.subscribe("a.b", queued, "q");
    for (let n = 0; n < 4; n++) one.publish("a.b", bytes(n));
    one.publish("a.b.c", bytes(9));
    await one.flush();
    expect([all, some, queued].map(({ mock }) => mock.calls.length)).toEqual([4, 4, 4]);
    expect(all.mock.calls.map(([{ data }]) => data[0])).toEqual([0, 1, 2, 3]);
  });

  it("Call: says when nobody took a message that expects an answer", async () => {
    const transport = createMemoryTransport();
    const heard = vi.fn();
    transport.subscribe("me.1", heard);
    transport.publish("nobody", bytes(1), "me.1");
    transport.publish("nobody", bytes(1));
    await transport.flush();
    expect(heard.mock.calls).toEqual([[expect.objectContaining({ subject: "me.1", isUndelivered: true })]]);
  });

  it("Call: carries a message of its size, and one byte more is an error", async () => {
    const transport = createMemoryTransport({ maxMessageBytes: 3 });
    const heard = vi.fn();
    transport.subscribe("a", heard);
    transport.publish("a", bytes(1, 2, 3));
    expect(() => transport.publish("a", bytes(1, 2, 3, 4))).toThrow(RangeError);
    await transport.flush();
    expect(heard).toHaveBeenCalledOnce();
  });

  it("Call: does not see what a sender does to its buffer afterwards", async () => {
    const transport = createMemoryTransport();
    const heard = vi.fn();
    transport.subscribe("a", heard);
    const sent = bytes(1);
    transport.publish("a", sent);
    sent[0] = 2;
    await transport.flush();
    expect(heard.mock.calls[0]?.[0].data).toEqual(bytes(1));
  });

  it("Call: draining hears what is on its way, stopping does not, and closing tells", async () => {
    const transport = createMemoryTransport();
    const [drained, stopped, closed] = [vi.fn(), vi.fn(), vi.fn()];
    const draining = transport.subscribe("a", drained);
    const stopping = transport.subscribe("a", stopped);
    transport.onClosed(closed);
    transport.publish("a", bytes(1));
    stopping.stop();
    await draining.drain();
    transport.publish("a", bytes(2));
    await transport.flush();
    expect([drained.mock.calls.length, stopped.mock.calls.length]).toEqual([1, 0]);
    await transport.close();
    await transport.close();
    expect([closed.mock.calls.length, transport.isConnected]).toEqual([1, false]);
  });
});
