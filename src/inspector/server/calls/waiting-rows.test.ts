import { afterEach, describe, expect, it } from "vitest";
import { query, until } from "../../../../test/make-operation.ts";
import { OperationRegistry } from "../../../core/registry/registry.ts";
import { createObserver } from "../../../gateway/serve/observe/observer.ts";
import type { Viewer } from "../viewer.ts";
import { CallLog, isRunning, type LoggedCall } from "./call-log.ts";
import { UndeliveredCalls } from "./live-feeds.ts";

const ALL: Viewer = { identity: undefined, isOperator: true, isAuthOn: false, isCurrent: () => true };
const ANN: Viewer = { ...ALL, identity: { subject: "ann" }, isOperator: false };

let close = (): void => {};
afterEach(() => close());

function watched(viewer: Viewer = ALL, calls?: number) {
  const observer = createObserver();
  const waiting: (() => void)[] = [];
  const registry = new OperationRegistry([
    query("desk.echo", () => null),
    query("desk.wait", () => new Promise<void>((resolve) => waiting.push(resolve))),
  ]);
  registry.use(observer);
  const taking: { untold?: UndeliveredCalls } = {};
  const log = new CallLog(observer, { calls, onChange: (call) => taking.untold?.take(call) });
  close = () => log.close();
  return {
    log,
    open: () => (taking.untold = new UndeliveredCalls(log, viewer)),
    async echo(count: number, subject = "bob") {
      for (let at = 0; at < count; at++)
        await registry.execute("desk.echo", at as never, { identity: { subject } });
    },
    /** Starts calls, and returns how to end them. */
    async wait(count: number, subject = "bob") {
      const from = waiting.length;
      const all = Array.from({ length: count }, () =>
        registry.execute("desk.wait", undefined, { identity: { subject } }),
      );
      await until(() => waiting.length === from + count);
      return async () => {
        for (const end of waiting.slice(from, from + count)) end();
        await Promise.all(all);
      };
    },
  };
}

function all(untold: UndeliveredCalls): LoggedCall[] {
  const told: LoggedCall[] = [];
  for (let next = untold.next(); next.length > 0; next = untold.next()) told.push(...next);
  return told;
}

describe("calls that a page was not told yet", () => {
  it("are left out beyond two thousand, and counted once", async () => {
    const { open, echo } = watched();
    const untold = open();
    await echo(2_000);
    expect(untold.dropped).toBe(0);
    await echo(1);
    expect(untold.dropped).toBe(1);
    expect(all(untold)).toHaveLength(2_000);
  });

  it("always include the end of one that is shown as running", async () => {
    const { open, echo, wait } = watched();
    const untold = open();
    const end = await wait(3);
    expect(all(untold).map(isRunning)).toEqual([true, true, true]);
    await echo(2_500);
    await end();
    expect(untold.next().map((call) => [call.seq, isRunning(call)])).toEqual([
      [1, false],
      [2, false],
      [3, false],
    ]);
    expect(untold.dropped).toBe(500);
  });

  it("are ended ones rather than running ones where there is no room for both", async () => {
    const { open, echo, wait } = watched();
    const untold = open();
    const end = await wait(2_000);
    await echo(1_500);
    expect(untold.dropped).toBe(0);
    // Those that gave way are told once there is room.
    const told = all(untold);
    expect(new Set(told.map(({ seq }) => seq)).size).toBe(3_500);
    expect(told).toHaveLength(3_500);
    await end();
    expect(all(untold).filter((call) => !isRunning(call))).toHaveLength(2_000);
  });

  it("count as left out when they are forgotten first", async () => {
    const { open, echo } = watched(ALL, 600);
    await echo(700);
    const untold = open();
    expect(untold.next()).toHaveLength(500);
    await echo(550);
    const told = all(untold);
    expect(untold.dropped).toBe(50);
    expect(told.map(({ seq }) => seq)).toEqual([
      ...Array.from({ length: 50 }, (_, at) => at + 651),
      ...Array.from({ length: 550 }, (_, at) => at + 701),
    ]);
  });

  it("are those that the viewer may see, and so are those left out", async () => {
    const { open, echo } = watched(ANN, 600);
    await echo(10, "ann");
    const untold = open();
    await echo(600, "bob");
    expect(all(untold)).toEqual([]);
    expect(untold.dropped).toBe(10);
    await echo(2_001, "ann");
    expect(untold.dropped).toBe(11);
  });
});
