import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { describeSessionEventLog } from "../../../test/session-event-log-contract.ts";
import type { LoggedStream } from "../../mcp/server/http/session-event-log.ts";
import { createLocalStateStore } from "../state/local-state-store.ts";
import { ReplicaLease } from "../state/replica-lease.ts";
import { StateLog } from "../state/state-log.ts";
import type { StateStore } from "../state/state-store.ts";
import { StateEventLog } from "./state-event-log.ts";
import { EVENT_LOG } from "./stream-records.ts";

const here = new AbortController().signal;
const stream = (name: string, owner = "ann", session = "s"): LoggedStream => ({
  owner,
  session,
  stream: name,
});

/** A log of one replica on a store. */
const openLog = (store: StateStore, replica: string) => {
  const lease = new ReplicaLease(store, { replica });
  return new StateEventLog({ collection: "streams", shared: () => ({ store, lease }) });
};

describeSessionEventLog("a store in memory", async () => {
  const log = openLog(createLocalStateStore(), "aaaaaaaa");
  return { writer: log, reader: log };
});

describeSessionEventLog("a store in files", async () => {
  const folder = await mkdtemp(join(tmpdir(), "waybill-streams-"));
  const log = await StateLog.open(folder, { now: Date.now, onFault: () => {} });
  const store = createLocalStateStore({ log });
  const events = openLog(store, "aaaaaaaa");
  onTestFinished(async () => {
    await events.close();
    await store.close();
    await rm(folder, { recursive: true });
  });
  return { writer: events, reader: events };
});

describe("StateEventLog", () => {
  const logs: StateEventLog[] = [];
  afterEach(async () => {
    for (const log of logs.splice(0)) await log.close();
  });
  const open = () => {
    const store = createLocalStateStore();
    const log = openLog(store, "aaaaaaaa");
    logs.push(log);
    const read = async (name: LoggedStream, after: number) => {
      const found = await log.find(name, after, here);
      if (found === undefined) return undefined;
      const places: number[] = [];
      for await (const { place } of found.events) places.push(place);
      return places;
    };
    return { store, log, read };
  };
  /** Keeps a stream of so many characters in one message. */
  const keep = async (log: StateEventLog, name: LoggedStream, characters: number, ends = true) => {
    await log.open(name, [1]);
    await log.append(name, { place: 1, json: "x".repeat(characters) });
    if (ends) await log.end(name);
  };

  it("Mcp: writes what waits at the same time at once", async () => {
    const { store, log, read } = open();
    let writes = 0;
    const { create, update } = store;
    store.create = (...given) => {
      writes += 1;
      return create.apply(store, given);
    };
    store.update = (...given) => {
      writes += 1;
      return update.apply(store, given);
    };
    const writing = [log.open(stream("a"), [1])];
    for (let place = 1; place <= 20; place++) writing.push(log.append(stream("a"), { place, json: "{}" }));
    writing.push(log.end(stream("a")));
    await Promise.all(writing);
    expect([writes, await read(stream("a"), 0)]).toEqual([1, Array.from({ length: 20 }, (_, at) => at + 1)]);
  });

  it("Mcp: keeps the latest of a stream that is long, and gives nothing from a place that it forgot", async () => {
    const { log, read } = open();
    await log.open(stream("long"), [1]);
    const last = 1_000;
    for (let place = 1; place <= last; place++) {
      await log.append(stream("long"), { place, json: `${place} ${"x".repeat(2_000)}` });
    }
    await log.end(stream("long"));
    expect(await read(stream("long"), 0)).toBeUndefined();
    expect(await read(stream("long"), last - 100)).toEqual(
      Array.from({ length: 100 }, (_, at) => last - 99 + at),
    );
    expect(await read(stream("long"), last)).toEqual([]);
  });

  it("Mcp: keeps as many bytes of a stream as allowed, and nothing of one that has more", async () => {
    const { log, read } = open();
    const most = EVENT_LOG.streamBytes - 200;
    await keep(log, stream("fits"), most);
    expect(await read(stream("fits"), 0)).toEqual([1]);
    await expect(keep(log, stream("not"), EVENT_LOG.streamBytes)).rejects.toThrow("too long");
    expect(await read(stream("not"), 0)).toBeUndefined();
    await expect(log.append(stream("not"), { place: 2, json: "{}" })).rejects.toThrow("no such stream");
  });

  it("Mcp: lets go of the oldest stream of a session that has ended, where the session keeps too much", async () => {
    const { log, read } = open();
    const third = Math.floor(EVENT_LOG.sessionBytes / 3);
    for (const name of ["1", "2", "3"]) await keep(log, stream(name, "ann", "s"), third);
    await keep(log, stream("other", "ann", "t"), 100);
    const kept = await Promise.all(["1", "2", "3"].map((name) => read(stream(name), 0)));
    expect([kept, await read(stream("other", "ann", "t"), 0)]).toEqual([[undefined, [1], [1]], [1]]);
  });

  it("Mcp: drops a stream of a session that keeps too much in streams that run", async () => {
    const { log, read } = open();
    const third = Math.floor(EVENT_LOG.sessionBytes / 3);
    for (const name of ["1", "2"]) await keep(log, stream(name), third, false);
    await expect(keep(log, stream("3"), third, false)).rejects.toThrow("too long");
    const found = await log.find(stream("1"), 0, here);
    expect([found !== undefined, await read(stream("3"), 0)]).toEqual([true, undefined]);
  });

  it("Mcp: makes room for a stream of an owner whose share is taken, and for no other owner's", async () => {
    const { log, read } = open();
    const eighth = EVENT_LOG.bounds.ownBytes / 8 - 1_000;
    await keep(log, stream("b", "bob"), eighth);
    for (let at = 0; at < 9; at++) await keep(log, stream("x", "ann", `s${at}`), eighth);
    const kept = await Promise.all([0, 1, 8].map((at) => read(stream("x", "ann", `s${at}`), 0)));
    expect([kept, await read(stream("b", "bob"), 0)]).toEqual([[undefined, [1], [1]], [1]]);
  });
});
