import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, describe, expect, it } from "vitest";
import { query, rejection, stream } from "../../../../test/make-operation.ts";
import { OperationRegistry } from "../../../core/registry/registry.ts";
import { callerKey } from "../../../gateway/serve/gateway-auth.ts";
import { createObserver } from "../../../gateway/serve/observe/observer.ts";
import { CallLog, type CallLogOptions, rowOf } from "./call-log.ts";
import { viewOfCall } from "./call-views.ts";
import { SourceLogs } from "./source-logs.ts";

const ALL = { identity: undefined, isOperator: true, isAuthOn: false, isCurrent: () => true };

let log: CallLog | undefined;
afterEach(() => log?.close());

let finish: (value: unknown) => void = () => {};

function logged(options: CallLogOptions = {}) {
  const observer = createObserver();
  const registry = new OperationRegistry([
    query("desk.echo", (input) => input ?? null),
    query("desk.sign", () => "ok", {
      inputSchema: {
        type: "object",
        properties: { name: { type: "string" }, secret: { type: "string", format: "password" } },
      },
    }),
    query("desk.wait", () => new Promise((resolve) => (finish = resolve))),
    query("desk.outer", (_, context) => context.execute("desk.inner", undefined)),
    query("desk.inner", (_, context) => context.execute("desk.echo", 1)),
    stream("desk.busy", async function* () {
      yield 1;
      yield await new Promise((resolve) => (finish = resolve));
    }),
    stream("desk.count", async function* () {
      for (let at = 0; at < 30; at++) yield at;
    }),
  ]);
  registry.use(observer);
  const made = new CallLog(observer, options);
  log = made;
  const view = (seq: number) => viewOfCall({ log: made, logs: new SourceLogs() }, seq, ALL);
  return { registry, observer, log: made, view };
}

describe("the call log", () => {
  it("keeps what went in and came out as it was at that moment", async () => {
    const { registry, view } = logged();
    const input = { list: [1] };
    const { data } = await registry.execute("desk.echo", input as never);
    (data as { list: number[] }).list.push(2);
    expect(view(1)).toMatchObject({
      row: { seq: 1, operation: "desk.echo", outcome: "ok" },
      input: { value: { list: [1] } },
      results: [{ envelope: { data: { list: [1] }, meta: { source: "local" } } }],
      earlier: 0,
    });
    await registry.execute("desk.echo");
    expect(view(2)?.input).toEqual({ omitted: "none" });
  });

  it("keeps as many calls as it is told, and forgets the oldest with all they hold", async () => {
    const { registry, log: made, view } = logged({ calls: 3 });
    for (let at = 1; at <= 3; at++) await registry.execute("desk.echo", at as never);
    expect([...made.calls()].map(({ seq }) => seq)).toEqual([1, 2, 3]);
    const { characters } = made;
    await registry.execute("desk.echo", 4 as never);
    expect([...made.calls()].map(({ seq }) => seq)).toEqual([2, 3, 4]);
    expect(view(1)).toBeUndefined();
    expect(made.characters).toBe(characters);
    made.close();
    expect(made.characters).toBe(0);
  });

  it("forgets the oldest texts first when there are too many characters, and keeps their calls", async () => {
    const { registry, log: made, view } = logged({ characters: 1_000 });
    const text = "x".repeat(198);
    await registry.execute("desk.echo", text as never);
    await registry.execute("desk.echo", text as never);
    expect(view(1)?.input).toEqual({ value: text });
    await registry.execute("desk.echo", text as never);
    expect(view(1)).toMatchObject({ input: { omitted: "forgotten" }, row: { outcome: "ok" } });
    expect(view(3)?.results).toHaveLength(1);
    expect(made.characters).toBeLessThanOrEqual(1_000);
  });

  it("keeps a text of the most characters, and none of one more", async () => {
    const { registry, view } = logged({ charactersEach: 100 });
    await registry.execute("desk.echo", "x".repeat(98) as never);
    await registry.execute("desk.echo", "x".repeat(99) as never);
    await registry.execute("desk.echo", '"'.repeat(60) as never);
    expect(view(1)?.input).toEqual({ value: "x".repeat(98) });
    expect(view(2)?.input).toEqual({ omitted: "too-long" });
    expect(view(3)?.input).toEqual({ omitted: "too-long" });
  });

  it("keeps the last twenty values of a subscription", async () => {
    const { registry, view } = logged();
    for await (const _ of registry.subscribe("desk.count"));
    const seen = view(1);
    expect(seen).toMatchObject({ earlier: 10, row: { values: 30, outcome: "ok" } });
    expect(seen?.results).toHaveLength(20);
    expect(seen?.results[0]).toMatchObject({ envelope: { data: 10 } });
  });

  it("tells a subscription that its reader left or whose time was over from one that ended", async () => {
    const { registry, view } = logged();
    for await (const _ of registry.subscribe("desk.count"));
    for await (const _ of registry.subscribe("desk.count")) break;
    const stop = new AbortController();
    await rejection(
      (async () => {
        for await (const _ of registry.subscribe("desk.count", undefined, { signal: stop.signal }))
          stop.abort();
      })(),
    );
    expect(view(1)?.row).not.toHaveProperty("code");
    expect(view(2)?.row).toMatchObject({ outcome: "ok", code: "ABORTED", values: 1 });
    const patience = { timeout: 20_000 };
    await expect.poll(() => view(3)?.row, patience).toMatchObject({ code: "ABORTED", values: 1 });
    const reading = registry.subscribe("desk.busy", undefined, { timeoutMs: 1_000 });
    await reading.next();
    await rejection(reading.next());
    finish(1);
    await expect.poll(() => view(4)?.row, patience).toMatchObject({ outcome: "call_error", code: "TIMEOUT" });
  });

  it("keeps no password", async () => {
    const { registry, view } = logged();
    const input = { name: "ann", secret: "hunter2" };
    await registry.execute("desk.sign", input as never);
    expect(view(1)?.input).toEqual({ value: { name: "ann", secret: "•••" } });
    expect(input.secret).toBe("hunter2");
  });

  it("finds the family of a call, whichever of them is asked for", async () => {
    const { registry, view } = logged();
    await registry.execute("desk.outer");
    await registry.execute("desk.echo");
    for (const seq of [1, 2, 3]) {
      expect(view(seq)?.family.map((row) => [row.seq, row.parent])).toEqual([
        [1, undefined],
        [2, 1],
        [3, 2],
      ]);
    }
    expect(view(4)?.family).toHaveLength(1);
  });

  it("takes no call for the parent of another only because a client chose its request id", async () => {
    const { registry, view } = logged();
    const waiting = registry.execute("desk.wait", undefined, { requestId: "same" });
    await registry.execute("desk.outer", undefined, { requestId: "same" });
    finish(1);
    await waiting;
    expect(view(3)?.row.parent).toBe(2);
    expect(view(1)?.family).toHaveLength(1);
  });

  it("remembers that a call which was pushed out while it ran has ended, and nothing of it", async () => {
    const told: unknown[] = [];
    const onChange: CallLogOptions["onChange"] = ({ row }) => void told.push([row.seq, row.outcome]);
    const { registry, log: made } = logged({ calls: 2, onChange });
    const waiting = registry.execute("desk.wait", { keep: "x".repeat(500) } as never);
    for (let at = 0; at < 3; at++) await registry.execute("desk.echo", at as never);
    told.length = 0;
    expect(made.runningOf()).toBe(1);
    finish("y".repeat(500));
    await waiting;
    expect(told).toEqual([[1, "ok"]]);
    expect(made.characters).toBeLessThan(500);
    expect(made.runningOf()).toBe(0);
  });

  const keyOf = (subject: string) => callerKey({ subject });

  it("counts running calls of each caller", async () => {
    const { registry, log: made } = logged();
    const waiting = registry.execute("desk.wait", undefined, { identity: { subject: "ann" } });
    expect([undefined, ...["ann", "bob"].map(keyOf)].map((key) => made.runningOf(key))).toEqual([1, 1, 0]);
    finish(1);
    await waiting;
    expect([undefined, keyOf("ann")].map((key) => made.runningOf(key))).toEqual([0, 0]);
  });

  it("bears with inputs that cannot be read", async () => {
    const { registry, view } = logged();
    const hostile = {
      get bad(): never {
        throw new Error("not for you");
      },
    };
    await registry.execute("desk.sign", hostile as never);
    expect(view(1)?.input).toEqual({ omitted: "not-json" });
  });

  it("keeps two hundred characters of an id, and holds on to no more", async () => {
    const { registry, view, log: made } = logged();
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const ask = (id: string) => rejection(registry.execute(id));
    await ask("a".repeat(200));
    await ask("b".repeat(201));
    collect();
    const before = process.memoryUsage().heapUsed;
    for (let at = 0; at < 20; at++) await ask(`${at}.${Buffer.alloc(4_000_000, "x").toString()}`);
    await new Promise(setImmediate);
    collect();
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(20_000_000);
    expect(made.lastSeq).toBe(22);
    expect(view(1)?.row.operation).toBe("a".repeat(200));
    expect(view(2)?.row.operation).toBe("b".repeat(200));
  });

  it("finds the parent of a call by the whole id", async () => {
    const { registry, view } = logged();
    const name = "n".repeat(199);
    registry.register(query(`desk.${name}1`, (_, context) => context.execute(`desk.${name}2`, undefined)));
    registry.register(query(`desk.${name}2`, (_, context) => context.execute("desk.echo", 1)));
    await registry.execute(`desk.${name}1`);
    expect([view(1), view(2), view(3)].map((seen) => seen?.row.parent)).toEqual([undefined, 1, 2]);
  });

  it("shows calls of a subject that is too long to operators alone", async () => {
    const { registry, log: made } = logged();
    const [fits, long] = ["s".repeat(1_000), "s".repeat(1_001)];
    await registry.execute("desk.echo", 1, { identity: { subject: fits } });
    await registry.execute("desk.echo", 1, { identity: { subject: long } });
    const seenBy = (subject: string, seq: number) =>
      viewOfCall({ log: made, logs: new SourceLogs() }, seq, {
        ...ALL,
        identity: { subject },
        isOperator: false,
      });
    expect(seenBy(fits, 1)?.row.subject).toBe("s".repeat(200));
    expect([seenBy(fits, 2), seenBy(long, 2), seenBy(long, 1)]).toEqual([undefined, undefined, undefined]);
    expect(viewOfCall({ log: made, logs: new SourceLogs() }, 2, ALL)?.row.subject).toBe("s".repeat(200));
  });

  it("keeps no input of an operation that nobody knows", async () => {
    const { registry, view } = logged();
    await rejection(registry.execute("desk.sing", { secret: "hunter2" } as never));
    expect(view(1)).toMatchObject({ input: { omitted: "none" }, row: { code: "OPERATION_NOT_FOUND" } });
  });

  it("tells each value of a subscription, and counts them while it runs", async () => {
    const counts: (number | undefined)[] = [];
    const { registry } = logged({ onChange: (call) => void counts.push(rowOf(call).values) });
    for await (const { data } of registry.subscribe("desk.count")) if (data === 2) break;
    expect(counts).toEqual([undefined, 1, 2, 3, 3]);
  });

  it("keeps no value of a subscription that was pushed out of the list", async () => {
    const { registry, log: made, view } = logged({ calls: 2, characters: 1_000 });
    const values = registry.subscribe("desk.count")[Symbol.asyncIterator]();
    await values.next();
    for (let at = 0; at < 2; at++) await registry.execute("desk.echo", "x".repeat(100) as never);
    const { characters } = made;
    while ((await values.next()).done !== true);
    expect(made.characters).toBe(characters);
    expect(view(2)?.input).toEqual({ value: "x".repeat(100) });
  });

  it("counts short numbers for what they are", async () => {
    const { registry, view } = logged({ charactersEach: 2_001 });
    await registry.execute("desk.echo", new Array(1_000).fill(1) as never);
    await registry.execute("desk.echo", new Array(1_001).fill(1) as never);
    expect(view(1)?.input).toHaveProperty("value");
    expect(view(2)?.input).toEqual({ omitted: "too-long" });
  });

  it("costs little for a small call", async () => {
    const { registry, log: made } = logged();
    const bare = new OperationRegistry([query("desk.echo", (input) => input ?? null)]);
    bare.use(createObserver());
    const input = { name: "Ann", list: [1, 2, 3], deep: { a: "b" } };
    // Of the processor, and the best of several: the machine has other work.
    const time = async (target: OperationRegistry) => {
      let best = Number.POSITIVE_INFINITY;
      for (let round = 0; round < 5; round++) {
        const start = process.cpuUsage();
        for (let at = 0; at < 3_000; at++) await target.execute("desk.echo", input as never);
        best = Math.min(best, process.cpuUsage(start).user / 3_000);
      }
      return best;
    };
    const without = await time(bare);
    const recorded = await time(registry);
    console.info(`recording: ${(recorded - without).toFixed(1)} µs a call (${without.toFixed(1)} without)`);
    expect(made.lastSeq).toBe(15_000);
    expect(recorded - without).toBeLessThan(60);
  });
});
