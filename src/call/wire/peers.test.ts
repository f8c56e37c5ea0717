import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Peers, peerAt } from "./peers.ts";
import { Subjects } from "./subjects.ts";
import type { Transport } from "./transport.ts";
import { createMemoryTransport, MemoryBroker } from "./transport.ts";

const BEAT_MS = 100;
const subjects = new Subjects();
const closing: (() => void)[] = [];

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  for (const close of closing.splice(0)) close();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** One side, whose connection can be said to be back. */
function side(broker: MemoryBroker, isAwaited = true) {
  const listeners = new Set<() => void>();
  const transport: Transport = Object.defineProperties(createMemoryTransport({ broker }), {
    onReconnect: {
      value: (listener: () => void) => {
        listeners.add(listener);
        return () => void listeners.delete(listener);
      },
    },
  });
  const peers = new Peers(transport, subjects, { beatMs: BEAT_MS, onTick: () => isAwaited });
  closing.push(() => peers.close());
  return { peers, transport, listeners };
}

const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

describe("Peers", () => {
  it("Call: the calls of a peer that gives no sign of life are lost, after three and a half beats", async () => {
    const { peers } = side(new MemoryBroker());
    const lines = [{ lost: vi.fn() }, { lost: vi.fn() }];
    for (const line of lines) peers.track("silent", line);
    await pass(3 * BEAT_MS);
    expect(lines[0]?.lost).not.toHaveBeenCalled();
    await pass(BEAT_MS);
    for (const { lost } of lines)
      expect(lost).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ code: "UNAVAILABLE" }));
    await pass(10 * BEAT_MS);
    expect(lines[0]?.lost).toHaveBeenCalledOnce();
  });

  it("Call: beats keep them, for as long as they come", async () => {
    const broker = new MemoryBroker();
    const [one, other] = [side(broker), side(broker)];
    const line = { lost: vi.fn() };
    one.peers.track(other.peers.ownAddress, line);
    await pass(50 * BEAT_MS);
    expect(line.lost).not.toHaveBeenCalled();
    other.peers.close();
    await pass(5 * BEAT_MS);
    expect(line.lost).toHaveBeenCalledOnce();
  });

  it("Call: whoever has nobody waiting gives no sign, a service always does", async () => {
    const broker = new MemoryBroker();
    const quiet = side(broker, false);
    const heard = vi.fn();
    broker.add({ parts: subjects.beat("*.*").split("."), queue: undefined, hear: heard });
    await pass(5 * BEAT_MS);
    expect(heard).not.toHaveBeenCalled();
    quiet.peers.isService = true;
    await pass(5 * BEAT_MS);
    expect(heard.mock.calls.length).toBeGreaterThanOrEqual(4);
  });

  it("Call: a connection that comes back forgives the silence before", async () => {
    const { peers, listeners } = side(new MemoryBroker());
    const line = { lost: vi.fn() };
    peers.track("far", line);
    await pass(3 * BEAT_MS);
    for (const back of listeners) back();
    await pass(3 * BEAT_MS);
    expect(line.lost).not.toHaveBeenCalled();
    await pass(BEAT_MS);
    expect(line.lost).toHaveBeenCalledOnce();
  });

  it("Call: what is not tracked any more is not lost", async () => {
    const { peers } = side(new MemoryBroker());
    const [gone, stays] = [{ lost: vi.fn() }, { lost: vi.fn() }];
    peers.track("silent", gone);
    peers.track("silent", stays);
    peers.untrack("silent", gone);
    peers.untrack("nobody", gone);
    await pass(5 * BEAT_MS);
    expect([gone.lost.mock.calls.length, stays.lost.mock.calls.length]).toEqual([0, 1]);
  });

  it("Call: hears of services that it does not know, not of itself nor of plain callers", async () => {
    const broker = new MemoryBroker();
    const [one, service] = [side(broker), side(broker), side(broker)];
    const heard = vi.fn();
    one?.peers.onUnknownService(heard);
    if (one !== undefined) one.peers.isService = true;
    if (service !== undefined) service.peers.isService = true;
    await pass(BEAT_MS);
    expect(heard.mock.calls).toEqual([[service?.peers.ownAddress]]);
  });

  it("Call: leaves no timer behind", () => {
    const { peers, listeners } = side(new MemoryBroker());
    peers.close();
    expect([vi.getTimerCount(), listeners.size]).toEqual([0, 0]);
  });

  it.each([
    ["_INBOX.abc.token", "ada.abc"],
    ["a.b.c.d", "ada.c"],
    ["x", "ada."],
    ["", "ada."],
    ["a.b", "ada.a"],
  ])("Call: ada waiting at %j is %j", (replyTo, peer) => {
    expect(peerAt(replyTo, "ada")).toBe(peer);
  });

  it("Call: a side that did not get to run itself holds it against nobody", async () => {
    const { peers } = side(new MemoryBroker());
    const line = { lost: vi.fn() };
    peers.track("quiet", line);
    await pass(2 * BEAT_MS);
    const now = performance.now.bind(performance);
    // The clock goes on while no timer does.
    vi.spyOn(performance, "now").mockImplementation(() => now() + 10 * BEAT_MS);
    await pass(3 * BEAT_MS);
    expect(line.lost).not.toHaveBeenCalled();
    await pass(2 * BEAT_MS);
    expect(line.lost).toHaveBeenCalledOnce();
  });
});
