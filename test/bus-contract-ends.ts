import { describe, expect, it, vi } from "vitest";
import type { Delivery } from "../src/call/bus.ts";
import { CallError } from "../src/core/errors/errors.ts";
import type { OperationContext } from "../src/core/operation/operation-context.ts";
import type { Bench } from "./bus-contract.ts";
import { lateness } from "./lateness.ts";
import { query, rejection, sleep } from "./make-operation.ts";

/** Waits until the signal aborts, and says so. */
const untilAbort =
  (heard: (reason: unknown) => void) =>
  (_: unknown, { signal }: OperationContext) =>
    new Promise((_, reject) =>
      signal.addEventListener("abort", () => {
        heard(signal.reason);
        reject(signal.reason);
      }),
    );

/** Rows: abort, deadline. */
export function describeEnds(bench: () => Bench): void {
  describe("abort", () => describeAborts(bench));
  describe("deadline", () => describeDeadlines(bench));
}

function describeAborts(bench: () => Bench): void {
  it("Call: an abort rejects the call at once and reaches the handler and what it called", async () => {
    const [outer, inner] = [vi.fn(), vi.fn()];
    await bench().serve([
      query("a.outer", (_, context) => {
        context.signal.addEventListener("abort", outer);
        return context.execute("a.inner");
      }),
      query("a.inner", untilAbort(inner)),
    ]);
    const map = bench().ask();
    const controller = new AbortController();
    const aborted = rejection(map.call("a.outer", undefined, { signal: controller.signal }));
    await sleep(30);
    const why = new Error("enough");
    const start = performance.now();
    controller.abort(why);
    expect(await aborted).toMatchObject({ code: "ABORTED", cause: why });
    expect(performance.now() - start).toBeLessThan(50);
    await vi.waitFor(() => expect([outer.mock.calls.length, inner.mock.calls.length]).toEqual([1, 1]));
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
    const { handler } = await bench().serve([query("a.deaf", () => sleep(60).then(() => "late"))]);
    const map = bench().ask();
    const controller = new AbortController();
    const settled = vi.fn();
    const call = map.call("a.deaf", 1, { signal: controller.signal });
    call.then(settled, settled);
    await vi.waitFor(() => expect(handler.running).toBe(1));
    controller.abort();
    expect(await rejection(call)).toMatchObject({ code: "ABORTED" });
    await vi.waitFor(() => expect(handler.running).toBe(0));
    await sleep(80);
    expect([settled.mock.calls.length, map.size]).toEqual([1, 0]);
  });

  it("Call: closing the asking side aborts what is under way, here and there", async () => {
    const heard = vi.fn();
    const { handler } = await bench().serve([query("a.hang", untilAbort(heard))]);
    const map = bench().ask();
    const aborted = rejection(map.call("a.hang"));
    await vi.waitFor(() => expect(handler.running).toBe(1));
    await map.close();
    expect(await aborted).toMatchObject({ code: "ABORTED" });
    await vi.waitFor(() => expect(heard).toHaveBeenCalledOnce());
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
      const late = await lateness(timeoutMs, async () => {
        expect(await rejection(map.call("a.hang", 1, { timeoutMs }))).toMatchObject({ code: "TIMEOUT" });
        expect(performance.now() - start).toBeGreaterThanOrEqual(timeoutMs);
      });
      expect(late).toBeLessThan(50);
    }
    await vi.waitFor(() => expect(heard).toHaveBeenCalled());
    expect(heard.mock.lastCall?.[0]).toMatchObject({ code: "TIMEOUT" });
    expect(map.size).toBe(0);
  });

  it("Call: a call ends at its deadline by the caller's own clock, where nobody ever answers", async () => {
    const heard = vi.fn();
    await bench().pair.answering.join({ operationId: "a.mute" }, () => ({ receive: heard, lost: () => {} }));
    const map = bench().ask();
    for (const timeoutMs of [0, 1, 40, 115]) {
      const late = await lateness(timeoutMs, async () => {
        expect(await rejection(map.call("a.mute", 1, { timeoutMs }))).toMatchObject({ code: "TIMEOUT" });
      });
      expect(late).toBeLessThan(50);
    }
    await vi.waitFor(() =>
      expect(heard).toHaveBeenCalledWith(expect.objectContaining({ reason: "deadline" })),
    );
    expect(map.size).toBe(0);
  });

  it("Call: a handler that does not listen is left behind at the deadline", async () => {
    await bench().serve([query("a.deaf", () => sleep(150).then(() => "late"))]);
    const late = await lateness(30, async () => {
      const error = await rejection(bench().ask().call("a.deaf", 1, { timeoutMs: 30 }));
      expect(error).toMatchObject({ code: "TIMEOUT" });
    });
    expect(late).toBeLessThan(50);
  });

  it("Call: the handler sees the deadline on its own clock, and what it calls has less", async () => {
    await bench().serve([
      query("a.outer", async (_, context) => {
        const left = (context.deadline ?? 0) - performance.now();
        await sleep(20);
        return [left, (await context.execute("a.inner")).data];
      }),
      query("a.inner", (_, { deadline = 0 }) => deadline - performance.now()),
    ]);
    const { data } = await bench().ask().call("a.outer", 1, { timeoutMs: 5_000 });
    const [outer, inner] = data as [number, number];
    expect(outer).toBeLessThanOrEqual(5_000);
    expect(outer).toBeGreaterThan(4_000);
    expect(inner).toBeLessThan(outer - 15);
  });

  it("Call: the time left is sent, never a point in time", async () => {
    const seen: Delivery[] = [];
    const identify = (delivery: Delivery) => {
      seen.push(delivery);
      return undefined;
    };
    await bench().serve([query("a.x", () => 1)], { authenticate: identify });
    await bench().ask().call("a.x", 1, { timeoutMs: 5_000 });
    const { request } = seen[0] as Delivery;
    expect(request.timeLeftMs).toBeGreaterThan(4_000);
    expect(request.timeLeftMs).toBeLessThanOrEqual(5_000);
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
    const map = bench().ask({ limits: { deadlineMs: 60 } });
    expect(await rejection(map.call("a.hang"))).toMatchObject({ code: "TIMEOUT" });
    expect((await map.call("a.x", 1, { timeoutMs: 60 })).data).toBe(1);
    expect(await rejection(map.call("a.x", 1, { timeoutMs: 61 }))).toMatchObject({
      code: "RESOURCE_EXHAUSTED",
      retryable: false,
      details: { limit: "deadlineMs", allowed: 60 },
    });
  });
}
