import { describe, expect, it, vi } from "vitest";
import type { Delivery } from "../src/call/index.ts";
import { CallError, type OperationContext } from "../src/index.ts";
import type { Bench } from "./bus-contract.ts";
import { endsAtOnce, endsInTime } from "./lateness.ts";
import { query, rejection, sleep, until } from "./make-operation.ts";

/** Waits until the signal aborts, and says so. */
const untilAbort =
  (heard: (reason: unknown) => void, begun = () => {}) =>
  (_: unknown, { signal }: OperationContext) =>
    new Promise((_, reject) => {
      signal.addEventListener("abort", () => {
        heard(signal.reason);
        reject(signal.reason);
      });
      begun();
    });

/** Rows: abort, deadline. */
export function describeEnds(bench: () => Bench): void {
  describe("abort", () => describeAborts(bench));
  describe("deadline", () => describeDeadlines(bench));
}

function describeAborts(bench: () => Bench): void {
  it("Call: an abort rejects the call at once and reaches the handler and what it called", async () => {
    const [outer, inner, begun] = [vi.fn(), vi.fn(), vi.fn()];
    await bench().serve([
      query("a.outer", (_, context) => {
        context.signal.addEventListener("abort", outer);
        return context.execute("a.inner");
      }),
      query("a.inner", untilAbort(inner, begun)),
    ]);
    const map = bench().ask();
    const controller = new AbortController();
    const aborted = rejection(map.call("a.outer", undefined, { signal: controller.signal }));
    await until(() => begun.mock.calls.length === 1);
    const why = new Error("enough");
    controller.abort(why);
    expect(await endsAtOnce(aborted)).toBe(true);
    expect(await aborted).toMatchObject({ code: "ABORTED", cause: why });
    await vi.waitFor(
      () => expect([outer.mock.calls.length, inner.mock.calls.length]).toEqual([1, 1]),
      20_000,
    );
    expect(inner.mock.calls[0]?.[0]).toMatchObject({ code: "ABORTED" });
    expect(map.size).toBe(0);
  });

  it("Call: a signal that has aborted already sends nothing", async () => {
    const ran = vi.fn();
    await bench().serve([query("a.x", ran)]);
    const error = await rejection(
      bench()
        .ask()
        .call("a.x", 1, { signal: AbortSignal.abort("no") }),
    );
    expect(error).toMatchObject({ code: "ABORTED", cause: "no" });
    await sleep(20);
    expect(ran).not.toHaveBeenCalled();
  });

  it("Call: a handler that does not listen answers nobody after the abort", async () => {
    let finish = (_: string) => {};
    const deaf = () => new Promise<string>((resolve) => (finish = resolve));
    const { handler } = await bench().serve([query("a.deaf", deaf)]);
    const map = bench().ask();
    const controller = new AbortController();
    const settled = vi.fn();
    const call = map.call("a.deaf", 1, { signal: controller.signal });
    call.then(settled, settled);
    await vi.waitFor(() => expect(handler.running).toBe(1), 20_000);
    controller.abort();
    expect(await rejection(call)).toMatchObject({ code: "ABORTED" });
    await vi.waitFor(() => expect(handler.running).toBe(0), 20_000);
    finish("late");
    await sleep(80);
    expect([settled.mock.calls.length, map.size]).toEqual([1, 0]);
  });

  it("Call: closing the asking side aborts what is under way, here and there", async () => {
    const heard = vi.fn();
    const { handler } = await bench().serve([query("a.hang", untilAbort(heard))]);
    const map = bench().ask();
    const aborted = rejection(map.call("a.hang"));
    await vi.waitFor(() => expect(handler.running).toBe(1), 20_000);
    await map.close();
    expect(await aborted).toMatchObject({ code: "ABORTED" });
    await vi.waitFor(() => expect(heard).toHaveBeenCalledOnce(), 20_000);
    expect(await rejection(map.call("a.hang"))).toMatchObject({ code: "UNAVAILABLE", retryable: false });
  });

  it("Call: a handler that gives up by itself fails the call as it does at home", async () => {
    const { registry } = await bench().serve([
      query("a.quits", () => {
        throw new CallError("ABORTED", "I give up.");
      }),
    ]);
    const here = (await rejection(registry.execute("a.quits"))) as CallError;
    expect(await rejection(bench().ask().call("a.quits"))).toMatchObject({ code: here.code });
    expect(here.code).toBe("ABORTED");
  });
}

function describeDeadlines(bench: () => Bench): void {
  it("Call: a call ends at its deadline, not before it and not 50 ms after it", async () => {
    const heard = vi.fn();
    await bench().serve([query("a.hang", untilAbort(heard))]);
    const map = bench().ask();
    for (const timeoutMs of [0, 1, 40]) {
      const start = performance.now();
      const inTime = await endsInTime(timeoutMs, async () => {
        expect(await rejection(map.call("a.hang", 1, { timeoutMs }))).toMatchObject({ code: "TIMEOUT" });
        expect(performance.now() - start).toBeGreaterThanOrEqual(timeoutMs);
      });
      expect(inTime).toBe(true);
    }
    await vi.waitFor(() => expect(heard).toHaveBeenCalled(), 20_000);
    expect(heard.mock.lastCall?.[0]).toMatchObject({ code: "TIMEOUT" });
    expect(map.size).toBe(0);
  });

  it("Call: a call ends at its deadline by the caller's own clock, where nobody ever answers", async () => {
    const heard = vi.fn();
    await bench().pair.answering.join({ operationId: "a.mute" }, () => ({ receive: heard, lost: () => {} }));
    const map = bench().ask();
    for (const timeoutMs of [0, 1, 40, 115]) {
      const inTime = await endsInTime(timeoutMs, async () => {
        expect(await rejection(map.call("a.mute", 1, { timeoutMs }))).toMatchObject({ code: "TIMEOUT" });
      });
      expect(inTime).toBe(true);
    }
    await vi.waitFor(
      () => expect(heard).toHaveBeenCalledWith(expect.objectContaining({ reason: "deadline" })),
      20_000,
    );
    expect(map.size).toBe(0);
  });

  it("Call: a handler that does not listen is left behind at the deadline", async () => {
    await bench().serve([query("a.deaf", () => new Promise(() => {}))]);
    const inTime = await endsInTime(30, async () => {
      const error = await rejection(bench().ask().call("a.deaf", 1, { timeoutMs: 30 }));
      expect(error).toMatchObject({ code: "TIMEOUT" });
    });
    expect(inTime).toBe(true);
  });

  it("Call: the handler sees the deadline on its own clock, and what it calls has less", async () => {
    await bench().serve([
      query("a.outer", async (_, context) => {
        const now = performance.now();
        const left = (context.deadline ?? 0) - now;
        await sleep(20);
        return [left, (await context.execute("a.inner")).data, now];
      }),
      query("a.inner", (_, { deadline = 0 }) => deadline - performance.now()),
    ]);
    const start = performance.now();
    const { data } = await bench().ask().call("a.outer", 1, { timeoutMs: 20_000 });
    const [outer, inner, seenAt] = data as [number, number, number];
    expect(outer).toBeLessThanOrEqual(20_000);
    // It has lost what has passed since it was called, and no more.
    expect(outer).toBeGreaterThan(20_000 - (seenAt - start) - 1);
    expect(inner).toBeLessThan(outer - 15);
  });

  it("Call: the time left is sent, never a point in time", async () => {
    const seen: Delivery[] = [];
    let seenAt = 0;
    const identify = (delivery: Delivery) => {
      seen.push(delivery);
      seenAt = performance.now();
      return undefined;
    };
    await bench().serve([query("a.x", () => 1)], { authenticate: identify });
    const start = performance.now();
    await bench().ask().call("a.x", 1, { timeoutMs: 20_000 });
    const { request } = seen[0] as Delivery;
    expect(request.timeLeftMs).toBeGreaterThan(20_000 - (seenAt - start) - 1);
    expect(request.timeLeftMs).toBeLessThanOrEqual(20_000);
    const others = Object.entries(request).filter(([key]) => key !== "timeLeftMs");
    expect(others.filter(([, value]) => typeof value === "number" && value > 1_000)).toEqual([]);
  });

  it("Call: a call that names no deadline ends at the ceiling, one over it is refused at once", async () => {
    await bench().serve([
      query(
        "a.hang",
        untilAbort(() => {}),
      ),
      query("a.x", () => 1),
    ]);
    const brief = bench().ask({ limits: { deadlineMs: 60 } });
    expect(await rejection(brief.call("a.hang"))).toMatchObject({ code: "TIMEOUT" });
    const map = bench().ask({ limits: { deadlineMs: 20_000 } });
    expect((await map.call("a.x", 1, { timeoutMs: 20_000 })).data).toBe(1);
    for (const [refusing, allowed] of [[brief, 60] as const, [map, 20_000] as const]) {
      const refused = rejection(refusing.call("a.x", 1, { timeoutMs: allowed + 1 }));
      expect(await endsAtOnce(refused)).toBe(true);
      expect(await refused).toMatchObject({
        code: "RESOURCE_EXHAUSTED",
        retryable: false,
        details: { limit: "deadlineMs", allowed },
      });
    }
  });
}
