import { afterEach, describe, expect, it, vi } from "vitest";
import { query, rejection, sleep } from "../../../test/make-operation.ts";
import type { CallError } from "../errors/errors.ts";
import { OperationRegistry } from "../registry/registry.ts";

const code = (expected: string) => expect.objectContaining({ code: expected });
const echo = query("a.echo", (input) => input, { inputSchema: { type: "string" } });
const scoped = query("a.scoped", (input) => input, { access: { scopes: { allOf: ["s"] } } });

describe("bounds that a hook sets", () => {
  const slow = query("a.slow", async (_, { signal, deadline, requestId }) => {
    heard.push(requestId, deadline);
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    heard.push((signal.reason as CallError).code);
    throw signal.reason;
  });
  let heard: unknown[] = [];

  /** Lets ten milliseconds pass, and no more, while something is under way that has begun before. */
  const inTenMs = async <T>(begin: () => Promise<T>): Promise<T> => {
    vi.useFakeTimers();
    const pending = begin();
    await vi.advanceTimersByTimeAsync(10);
    return pending;
  };

  afterEach(() => void vi.useRealTimers());

  it("RE-10 reach the handler as its deadline and signal, and end the call at once", async () => {
    heard = [];
    const registry = new OperationRegistry([slow]);
    registry.use((_, next) => next({}, { timeoutMs: 10 }));
    const ended = await inTenMs(() => rejection(registry.execute(slow, {}, { requestId: "r1" })));
    expect(ended).toEqual(code("TIMEOUT"));
    expect(heard).toEqual(["r1", expect.any(Number), "TIMEOUT"]);
  });

  it("RE-10 hold for a handler that hears nothing, for the calls it makes and for hooks inside", async () => {
    const deaf = query("a.deaf", () => new Promise<never>(() => {}));
    const outer = query("a.outer", (_, { execute }) => execute(deaf));
    const registry = new OperationRegistry([deaf, outer]);
    const deadlines: unknown[] = [];
    registry.use((call, next) =>
      call.operationId === "a.outer" ? next(call.input, { timeoutMs: 10 }) : next(),
    );
    registry.use((call, next) => {
      deadlines.push(call.context.deadline);
      return next();
    });
    expect(await inTenMs(() => rejection(registry.execute(outer)))).toEqual(code("TIMEOUT"));
    expect(deadlines).toEqual([expect.any(Number), deadlines[0]]);
  });

  it("RE-10 never give a call more time than its caller does", async () => {
    heard = [];
    const registry = new OperationRegistry([slow]);
    registry.use((_, next) => next({}, { timeoutMs: 60_000 }));
    const ended = await inTenMs(() => rejection(registry.execute(slow, {}, { timeoutMs: 10 })));
    expect(ended).toEqual(code("TIMEOUT"));
    await vi.advanceTimersByTimeAsync(1);
    expect(heard[2]).toBe("TIMEOUT");
  });

  it("RE-10 let a hook abort what is inside, with its own reason as the cause", async () => {
    heard = [];
    const registry = new OperationRegistry([slow]);
    const leaving = new AbortController();
    registry.use((_, next) => next({}, { signal: leaving.signal }));
    const ended = rejection(registry.execute(slow));
    await sleep(1);
    leaving.abort("enough");
    expect(await ended).toEqual(expect.objectContaining({ code: "ABORTED", cause: "enough" }));
    expect(heard[2]).toBe("ABORTED");
  });

  it("RE-10 keep a detached run going when its caller leaves, and tell that caller no more of it", async () => {
    const progress: unknown[] = [];
    const ends: unknown[] = [];
    let go = (): void => {};
    const work = query("a.work", async (_, context) => {
      context.progress(1);
      await new Promise<void>((resolve) => {
        go = resolve;
      });
      context.progress(2);
      return context.signal.aborted;
    });
    const registry = new OperationRegistry([work]);
    registry.use((_, next) => {
      const run = next({}, { detached: true });
      run.then((envelope) => ends.push(envelope.data));
      return run;
    });
    const leaving = new AbortController();
    const ended = rejection(
      registry.execute(work, {}, { signal: leaving.signal, onProgress: (value) => progress.push(value) }),
    );
    await sleep(1);
    leaving.abort();
    expect(await ended).toEqual(code("ABORTED"));
    go();
    await sleep(1);
    expect(ends).toEqual([false]);
    expect(progress).toEqual([1]);
  });

  it("RE-10 that make no sense fail the call, and a refused call is told to hooks before", async () => {
    const refusals: unknown[] = [];
    const registry = new OperationRegistry([echo, scoped]);
    registry.use((call, next) => {
      refusals.push(call.refusal?.code);
      return next(call.input, { timeoutMs: -1 });
    });
    expect(await rejection(registry.execute(echo, "x"))).toEqual(code("EXECUTION_ERROR"));
    expect(await rejection(registry.execute(scoped))).toEqual(code("UNAUTHENTICATED"));
    expect(refusals).toEqual([undefined, "UNAUTHENTICATED"]);
  });
});
