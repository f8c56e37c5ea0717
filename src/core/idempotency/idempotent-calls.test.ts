import { afterEach, describe, expect, it, vi } from "vitest";
import { deferred, rejection, until } from "../../../test/make-operation.ts";
import { localEnvelope, toolError } from "../envelope/envelope.ts";
import { CallError, turnDown } from "../errors/errors.ts";
import { MemoryIdempotencyStore } from "./idempotency-store.ts";
import { IdempotentCalls, type KeyEnding, keyEndingOf, type RepeatedCall } from "./idempotent-calls.ts";

const LIMITS = { idempotencyKeys: 4, idempotencyBytes: 10_000, idempotencyMs: 1_000 };
const never = new AbortController().signal;

interface Asked {
  readonly owner?: string;
  readonly signal?: AbortSignal;
  readonly patienceMs?: number;
}

type Outcome = RepeatedCall["outcome"];

const ended = (outcome: Outcome): RepeatedCall => ({ requestId: "r-1", durationMs: 7, outcome });
const result = (data: unknown): Outcome => ({ envelope: localEnvelope(data, "a.put") });
const shown = (outcome: Outcome): unknown => ("envelope" in outcome ? outcome.envelope.data : outcome.error);

/** Asks for the call of a key; gives the data or the error that it came to, and throws what the key is refused with. */
function ask(
  calls: IdempotentCalls,
  key: string,
  run: () => Promise<{ answer: unknown; end: KeyEnding }>,
  { owner = "ann", signal = never, patienceMs = 60_000 }: Asked = {},
): Promise<unknown> {
  const call = { owner, key, fingerprint: "f", signal, patienceMs };
  return calls.run(call, { run, repeat: ({ outcome }) => shown(outcome) });
}

const gives =
  (data: unknown, ending: "final" | "passing" | "unknown" = "final") =>
  async (): Promise<{ answer: unknown; end: KeyEnding }> => ({
    answer: data,
    end: ending === "final" ? { ending, call: ended(result(data)) } : { ending },
  });

const whole = (isShared = false) => new IdempotentCalls(LIMITS, isShared);

/** Two processes with one store outside of both, which takes its time. */
function replicas(): readonly [IdempotentCalls, IdempotentCalls] {
  const store = new MemoryIdempotencyStore();
  const later = async <T>(step: () => Promise<T>): Promise<T> => {
    await Promise.resolve();
    return structuredClone(await step());
  };
  const far = {
    claim: (...args: Parameters<typeof store.claim>) => later(() => store.claim(...args)),
    settle: (...args: Parameters<typeof store.settle>) => later(() => store.settle(...args)),
    release: (...args: Parameters<typeof store.release>) => later(() => store.release(...args)),
    ended: (...args: Parameters<typeof store.ended>) => later(() => store.ended(...args)),
  };
  return [new IdempotentCalls(LIMITS, false, far), new IdempotentCalls(LIMITS, false, far)];
}

function one(): readonly [IdempotentCalls, IdempotentCalls] {
  const calls = whole();
  return [calls, calls];
}

describe.each([
  ["one process", one],
  ["two processes with one store", replicas],
] as const)("calls that must not run twice, in %s", (_, open) => {
  afterEach(() => void vi.useRealTimers());

  it("RE-30 tells a caller who leaves while the first call runs, or has left before, and lets that go on", async () => {
    const [here, there] = open();
    const { promise, resolve } = deferred();
    const first = ask(here, "a", async () => {
      await promise;
      return gives("done")();
    });
    const leaving = new AbortController();
    const second = rejection(ask(there, "a", gives("again"), { signal: leaving.signal }));
    leaving.abort();
    expect(await second).toMatchObject({ code: "ABORTED" });
    const third = ask(there, "a", gives("again"), { signal: leaving.signal });
    expect(await rejection(third)).toMatchObject({ code: "ABORTED" });
    resolve();
    expect(await first).toBe("done");
    expect(await ask(there, "a", gives("again"))).toBe("done");
  });

  it("RE-30 says how long is waited: a call that has no patience is told that the first still runs", async () => {
    const [here, there] = open();
    const { promise, resolve } = deferred();
    const first = ask(here, "a", async () => {
      await promise;
      return gives("done")();
    });
    const late = ask(there, "a", gives("again"), { patienceMs: 0 });
    expect(await rejection(late)).toMatchObject({
      code: "CONFLICT",
      httpStatus: 409,
      message: expect.stringContaining("still runs"),
      details: { reason: "running", retryAfterMs: 1_000 },
    });
    resolve();
    await first;
  });

  it("RE-30 lets the next one run where the first came to nothing that is kept, in its place", async () => {
    const [here, there] = open();
    const { promise, resolve } = deferred();
    const first = ask(here, "a", async () => {
      await promise;
      return gives("try again", "passing")();
    });
    const second = ask(there, "a", gives("done"));
    resolve();
    expect([await first, await second]).toEqual(["try again", "done"]);
    expect(await ask(here, "a", gives("again"))).toBe("done");
  });

  it("RE-30 uses up the key of a call whose end is not known, thrown errors included", async () => {
    const [here, there] = open();
    const broken = ask(here, "a", () => Promise.reject(new Error("lost")));
    expect(await rejection(broken)).toMatchObject({ message: "lost" });
    await ask(here, "b", gives("", "unknown"));
    for (const key of ["a", "b"]) {
      expect(await rejection(ask(there, key, gives("again")))).toMatchObject({
        code: "CONFLICT",
        httpStatus: 409,
        message: expect.stringContaining("not known"),
        details: { reason: "unknown" },
      });
    }
  });

  it("RE-30 forgets no call that still runs, and each outcome when its time is over", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const [here, there] = open();
    const { promise, resolve } = deferred();
    let runs = 0;
    const first = ask(here, "a", async () => {
      runs += 1;
      await promise;
      return gives("done")();
    });
    await until(() => runs === 1);
    vi.advanceTimersByTime(5_000);
    const second = ask(there, "a", gives("again"));
    await new Promise(setImmediate);
    resolve();
    expect([await first, await second]).toEqual(["done", "done"]);
    await ask(here, "b", gives("one"));
    vi.advanceTimersByTime(999);
    expect(await ask(there, "b", gives("two"))).toBe("one");
    vi.advanceTimersByTime(1);
    expect(await ask(there, "b", gives("two"))).toBe("two");
  });

  it("RE-30 refuses a key that was used for another input", async () => {
    const [here, there] = open();
    await ask(here, "a", gives("done"));
    const other = { owner: "ann", key: "a", fingerprint: "g", signal: never, patienceMs: 1 };
    const refused = there.run<unknown>(other, { run: gives("again"), repeat: () => "again" });
    expect(await rejection(refused)).toMatchObject({
      code: "CONFLICT",
      httpStatus: 422,
      details: { reason: "other_input" },
    });
  });
});

describe("what is kept of a call that must not run twice", () => {
  it("RE-30 is the outcome as it was, a copy for each caller, with the request it was the outcome of", async () => {
    const calls = whole();
    const error = new CallError("CONFLICT", "Taken.", { details: { by: "bob" }, httpStatus: 423 });
    const outcomes: Record<string, Outcome> = {
      plain: result({ at: new Date(0), bytes: new Uint8Array([1, 2]), big: 3n }),
      no: { envelope: toolError("It is gone.", { code: "GONE", operationId: "a.put" }) },
      error: { error },
    };
    for (const [key, outcome] of Object.entries(outcomes)) {
      const call = { owner: "ann", key, fingerprint: "f", signal: never, patienceMs: 1 };
      const once = {
        run: async () => ({ answer: ended(outcome), end: keyEndingOf("a.put", ended(outcome)) }),
        repeat: (repeated: RepeatedCall) => repeated,
      };
      const first = await calls.run(call, once);
      const [second, third] = [await calls.run(call, once), await calls.run(call, once)];
      expect(second).toEqual(first);
      expect(second).not.toBe(third);
      expect(second.outcome).not.toBe(outcome);
    }
  });

  it("RE-30 is an error where the result cannot be written down", async () => {
    const calls = whole();
    await ask(calls, "a", async () => ({
      answer: 1,
      end: { ending: "final", call: ended(result({ run: () => 1 })) },
    }));
    expect(await ask(calls, "a", gives("again"))).toMatchObject({ code: "OUTPUT_INVALID" });
  });

  it("RE-30 is one caller's for a quarter of the room where callers are told apart, from when they are", async () => {
    const calls = whole();
    for (const key of ["1", "2"]) await ask(calls, key, gives(""));
    calls.setShared(true);
    expect(await rejection(ask(calls, "3", gives("")))).toMatchObject({
      code: "RESOURCE_EXHAUSTED",
      message: expect.stringContaining("try again later"),
    });
    await ask(calls, "3", gives(""), { owner: "bob" });
    calls.setShared(false);
    await ask(calls, "4", gives(""));
    expect(await rejection(ask(calls, "5", gives("")))).toMatchObject({ code: "RESOURCE_EXHAUSTED" });
  });

  it("RE-30 is nothing of a call that never ran, or may not have", () => {
    const of = (error: CallError) => keyEndingOf("a.put", ended({ error })).ending;
    expect(of(turnDown(new CallError("VALIDATION_ERROR"), "a.put"))).toBe("passing");
    expect(of(turnDown(new CallError("VALIDATION_ERROR"), "a.other"))).toBe("final");
    expect(of(new CallError("VALIDATION_ERROR"))).toBe("final");
    expect(of(turnDown(new CallError("OUTPUT_INVALID"), "a.put"))).toBe("final");
    for (const code of ["NO_RESPONDER", "OPERATION_NOT_FOUND", "UNAUTHENTICATED"]) {
      expect(of(new CallError(code))).toBe("passing");
    }
    for (const code of ["TIMEOUT", "ABORTED"]) expect(of(new CallError(code))).toBe("unknown");
  });
});
