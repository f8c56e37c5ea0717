import { afterEach, describe, expect, it, vi } from "vitest";
import { deferred, rejection, until } from "../../../test/make-operation.ts";
import { IdempotentAnswers, type Ran, type RepeatableCall } from "./idempotency.ts";

const LIMITS = { idempotencyKeys: 4, idempotencyBytes: 10_000, idempotencyMs: 1_000 };
const never = new AbortController().signal;

function call(key: string, more: Partial<RepeatableCall> = {}): RepeatableCall {
  return { owner: "ann", key, fingerprint: "f", signal: never, patienceMs: 60_000, ...more };
}

const ran = (body: string, ending: Ran["ending"] = "final"): Ran => ({
  answer: { status: 200, headers: {}, body },
  ending,
});
const answers = (isShared = false) => new IdempotentAnswers(LIMITS, isShared);

describe("answers to calls that must not run twice", () => {
  afterEach(() => void vi.useRealTimers());

  it("RE-30 tells a caller who leaves while the first call runs, or has left before, and lets that go on", async () => {
    const kept = answers();
    const { promise, resolve } = deferred();
    const first = kept.run(call("a"), async () => {
      await promise;
      return ran("done");
    });
    const leaving = new AbortController();
    const second = rejection(kept.run(call("a", { signal: leaving.signal }), async () => ran("again")));
    leaving.abort();
    expect(await second).toMatchObject({ code: "ABORTED" });
    const third = kept.run(call("a", { signal: leaving.signal }), async () => ran("again"));
    expect(await rejection(third)).toMatchObject({ code: "ABORTED" });
    resolve();
    expect((await first).body).toBe("done");
    expect((await kept.run(call("a"), async () => ran("again"))).body).toBe("done");
  });

  it("RE-30 says how long is waited: a call that has no patience is told that the first still runs", async () => {
    const kept = answers();
    const { promise, resolve } = deferred();
    const first = kept.run(call("a"), async () => {
      await promise;
      return ran("done");
    });
    const late = kept.run(call("a", { patienceMs: 0 }), async () => ran("again"));
    expect(await rejection(late)).toMatchObject({
      code: "CONFLICT",
      message: expect.stringContaining("still runs"),
    });
    resolve();
    await first;
  });

  it("RE-30 lets the next one run where the first came to nothing that is kept, in its place", async () => {
    const kept = answers();
    const { promise, resolve } = deferred();
    const first = kept.run(call("a"), async () => {
      await promise;
      return ran("try again", "passing");
    });
    const second = kept.run(call("a"), async () => ran("done"));
    resolve();
    expect([(await first).body, (await second).body]).toEqual(["try again", "done"]);
    expect((await kept.run(call("a"), async () => ran("again"))).body).toBe("done");
  });

  it("RE-30 uses up the key of a call whose end is not known, thrown errors included", async () => {
    const kept = answers();
    const broken = kept.run(call("a"), () => Promise.reject(new Error("lost")));
    expect(await rejection(broken)).toMatchObject({ message: "lost" });
    await kept.run(call("b"), async () => ran("", "unknown"));
    for (const key of ["a", "b"]) {
      const again = kept.run(call(key), async () => ran("again"));
      expect(await rejection(again)).toMatchObject({
        code: "CONFLICT",
        message: expect.stringContaining("not known"),
      });
    }
  });

  it("RE-30 forgets no call that still runs, and each answer when its time is over", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const kept = answers();
    const { promise, resolve } = deferred();
    let runs = 0;
    const first = kept.run(call("a"), async () => {
      runs += 1;
      await promise;
      return ran("done");
    });
    await until(() => runs === 1);
    vi.advanceTimersByTime(5_000);
    const second = kept.run(call("a"), async () => ran("again"));
    resolve();
    expect([(await first).body, (await second).body]).toEqual(["done", "done"]);
    await kept.run(call("b"), async () => ran("one"));
    vi.advanceTimersByTime(999);
    expect((await kept.run(call("b"), async () => ran("two"))).body).toBe("one");
    vi.advanceTimersByTime(1);
    expect((await kept.run(call("b"), async () => ran("two"))).body).toBe("two");
  });

  it("RE-30 gives one caller a quarter of the room where callers are told apart, from when they are", async () => {
    const kept = answers();
    for (const key of ["1", "2"]) await kept.run(call(key), async () => ran(""));
    kept.setShared(true);
    expect(await rejection(kept.run(call("3"), async () => ran("")))).toMatchObject({
      code: "RESOURCE_EXHAUSTED",
      message: expect.stringContaining("try again later"),
    });
    await kept.run(call("3", { owner: "bob" }), async () => ran(""));
    kept.setShared(false);
    await kept.run(call("4"), async () => ran(""));
    expect(await rejection(kept.run(call("5"), async () => ran("")))).toMatchObject({
      code: "RESOURCE_EXHAUSTED",
    });
  });

  it("RE-30 repeats the answer as it was, whatever became of the one that was sent", async () => {
    const kept = answers();
    const sent = await kept.run(call("a"), async () => ({
      answer: { status: 201, headers: { location: "/1" }, body: "made" },
      ending: "final",
    }));
    (sent.headers as Record<string, string>)["x-request-id"] = "first";
    const again = await kept.run(call("a"), async () => ran("again"));
    expect(again).toEqual({
      status: 201,
      headers: { location: "/1", "idempotency-replayed": "true" },
      body: "made",
    });
  });
});
