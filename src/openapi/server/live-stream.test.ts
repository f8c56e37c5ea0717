import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { localEnvelope, type ResponseEnvelope } from "../../core/envelope/envelope.ts";
import { CallError } from "../../core/errors/errors.ts";
import { LiveStream } from "./live-stream.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function create(values: AsyncIterable<ResponseEnvelope>, limits = {}) {
  const heard: string[] = [];
  const source = {
    operationId: "a.b",
    requestId: "r",
    owner: "",
    caller: "",
    values,
    onError: () => {},
    abort: () => heard.push("abort"),
    onGone: () => heard.push("gone"),
  };
  const all = { now: 0, most: 1_000_000 };
  const bounds = { streamEvents: 10, streamBytes: 10_000, resumeMs: 1_000, all, ...limits };
  return { stream: new LiveStream(source, bounds), heard };
}

async function* silent(): AsyncGenerator<ResponseEnvelope> {
  yield localEnvelope(1, "a.b");
  await new Promise(() => {});
}

async function* counting(): AsyncGenerator<ResponseEnvelope> {
  for (let n = 0; ; n += 1) yield localEnvelope(n, "a.b");
}

describe("a live stream", () => {
  it("RE-28 gives a sign of life every 15 seconds while there is nothing else", async () => {
    const { stream } = create(silent());
    await stream.begin(1_000);
    const reader = stream.read(0);
    expect((await reader.next()).value).toBe("retry: 1000\n\n");
    expect((await reader.next()).value).toContain('data: {"data":1}');
    for (let n = 0; n < 3; n += 1) {
      const next = reader.next();
      await vi.advanceTimersByTimeAsync(14_999);
      let isThere = false;
      next.then(() => {
        isThere = true;
      });
      await vi.advanceTimersByTimeAsync(0);
      expect(isThere).toBe(false);
      await vi.advanceTimersByTimeAsync(1);
      expect((await next).value).toBe(": keep-alive\n\n");
    }
  });

  it("RE-28 is gone when nobody reads it in time, from its start on or later", async () => {
    const never = create(silent());
    await never.stream.begin(1_000);
    await vi.advanceTimersByTimeAsync(999);
    expect(never.heard).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(never.heard).toEqual(["abort", "gone"]);
    const left = create(counting());
    await left.stream.begin(1_000);
    const reader = left.stream.read(0);
    await reader.next();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(left.heard).toEqual([]);
    await reader.return?.();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(left.heard).toEqual(["abort", "gone"]);
    expect((await reader.next()).done).toBe(true);
  });

  it("RE-28 keeps as many events as it may, and never fewer than the last", async () => {
    const { stream } = create(counting(), { streamEvents: 3, streamBytes: 1 });
    await stream.begin(1_000);
    const reader = stream.read(0);
    for (let n = 0; n < 6; n += 1) await reader.next();
    expect([stream.has(3), stream.has(4), stream.has(5), stream.has(6)]).toEqual([false, true, true, false]);
    const wide = create(counting(), { streamEvents: 3 }).stream;
    await wide.begin(1_000);
    const other = wide.read(0);
    for (let n = 0; n < 6; n += 1) await other.next();
    expect([wide.has(1), wide.has(2), wide.has(5), wide.has(6)]).toEqual([false, true, true, false]);
  });

  it("RE-28 keeps no more than all streams together may, and never fewer than the last", async () => {
    const all = { now: 0, most: 1_000_000 };
    const streams = [create(counting(), { all }).stream, create(counting(), { all }).stream];
    const read = async (stream: LiveStream, events: number) => {
      await stream.begin(1_000);
      const reader = stream.read(0);
      for (let n = 0; n < events; n += 1) await reader.next();
    };
    await read(streams[0] as LiveStream, 4);
    Object.assign(all, { most: all.now });
    expect([streams[0]?.has(0), all.now > 0]).toEqual([true, true]);
    await read(streams[1] as LiveStream, 4);
    expect([streams[0]?.has(0), streams[1]?.has(1), streams[1]?.has(2)]).toEqual([true, false, true]);
    for (const stream of streams) stream.drop();
    expect(all.now).toBe(0);
  });

  it("RE-28 gives the error that came before anything else, and tells readers of a later end", async () => {
    const failing: AsyncIterable<ResponseEnvelope> = {
      [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(new CallError("CONFLICT")) }),
    };
    expect((await create(failing).stream.begin(1_000))?.code).toBe("CONFLICT");
    const { stream, heard } = create(silent());
    expect(await stream.begin(1_000)).toBeUndefined();
    const reader = stream.read(1);
    await reader.next();
    const last = reader.next();
    stream.end(new CallError("UNAVAILABLE"));
    expect((await last).value).toContain("event: error");
    expect((await reader.next()).done).toBe(true);
    expect(heard).toEqual(["abort"]);
  });

  it("RE-28 waits no longer for a first event than it is told", async () => {
    const nothing: AsyncIterable<ResponseEnvelope> = {
      [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }),
    };
    const begun = create(nothing).stream.begin(1_000);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await begun).toBeUndefined();
  });
});
