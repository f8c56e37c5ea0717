import { Type } from "typebox";
import { describe, expect, it, vi } from "vitest";
import { CallError, isResponseEnvelope, toolError } from "../src/index.ts";
import type { Bench } from "./bus-contract.ts";
import { query, rejection, sleep, until } from "./make-operation.ts";

const VALUES: Readonly<Record<string, unknown>> = {
  text: "a\u0000b \u{1F9FE} \ud800",
  numbers: [0, -0, 1.5, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 2 ** 53],
  bytes: Uint8Array.of(0, 1, 255),
  "no bytes": new Uint8Array(),
  date: new Date(8.64e15),
  bigint: [0n, -(2n ** 200n)],
  undefined: { a: undefined, b: [undefined, null] },
  map: new Map<unknown, unknown>([[{ k: 1 }, new Set([1, "1"])]]),
  "own key": { $waybill: ["date", 1] },
  "proto key": JSON.parse('{"__proto__":{"polluted":true},"constructor":1}'),
  "deep list": JSON.parse(`${"[".repeat(400)}${"]".repeat(400)}`),
};

/** Rows: call, error, progress. */
export function describeCalls(bench: () => Bench): void {
  describe("call", () => describeResults(bench));
  describe("error", () => describeErrors(bench));
  describe("progress", () => describeProgress(bench));
}

function describeResults(bench: () => Bench): void {
  it("RE-19 resolves with the envelope the operation made, its own meta included", async () => {
    await bench().serve([query("a.add", ({ n }: { n: number }) => n + 1)]);
    const envelope = await bench().ask().call("a.add", { n: 1 });
    expect(isResponseEnvelope(envelope)).toBe(true);
    expect(envelope).toMatchObject({ data: 2, meta: { source: "local", operationId: "a.add" } });
  });

  it("RE-20 a tool error is a response, never call.error", async () => {
    await bench().serve([query("a.no", () => toolError({ why: "closed" }, { code: "CLOSED" }))]);
    const envelope = await bench().ask().call("a.no");
    expect(envelope).toMatchObject({
      data: { why: "closed" },
      meta: { isError: true, waybill: { code: "CLOSED" } },
    });
  });

  it("Call: a handler that returns nothing answers with nothing", async () => {
    await bench().serve([query("a.void", () => undefined)]);
    const envelope = await bench().ask().call("a.void");
    expect("data" in envelope && envelope.data).toBeUndefined();
  });

  it.each(Object.keys(VALUES))("Call: %s comes back as it was sent", async (name) => {
    const seen = vi.fn();
    const echo = (input: unknown) => {
      seen(input);
      return input;
    };
    await bench().serve([query("a.echo", echo)]);
    const { data } = await bench().ask().call("a.echo", VALUES[name]);
    expect(seen.mock.calls[0]?.[0]).toStrictEqual(VALUES[name]);
    expect(data).toStrictEqual(VALUES[name]);
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });

  it("Call: an error among the data arrives as an error with its name and message", async () => {
    await bench().serve([query("a.echo", (input) => input)]);
    const { data } = await bench()
      .ask()
      .call("a.echo", { why: new RangeError("too far") });
    const { why } = data as { why: Error };
    expect(why).toBeInstanceOf(Error);
    expect([why.name, why.message]).toEqual(["RangeError", "too far"]);
  });

  it("Call: metadata and the request id reach the handler", async () => {
    await bench().serve([query("a.who", (_, { requestId, metadata }) => ({ requestId, metadata }))]);
    const { data } = await bench()
      .ask()
      .call("a.who", undefined, { requestId: "r-1", metadata: { a: 1n } });
    expect(data).toEqual({ requestId: "r-1", metadata: { a: 1n } });
  });

  it("Call: 500 calls at a time get an answer each, their own", async () => {
    await bench().serve([query("a.slow", (n) => sleep(Math.random() * 5).then(() => n))]);
    const map = bench().ask();
    const answers = await Promise.all(Array.from({ length: 500 }, (_, n) => map.call("a.slow", n)));
    expect(answers.map(({ data }) => data)).toEqual(Array.from({ length: 500 }, (_, n) => n));
    expect([map.size, Object.values(map.counters).every((count) => count === 0)]).toEqual([0, true]);
  });
}

const declared = {
  errors: [{ code: "SOLD_OUT", description: "", schema: Type.Object({ left: Type.Number() }) }],
};

function describeErrors(bench: () => Bench): void {
  it("RE-20 a thrown exception rejects the call, and its text stays where it was thrown", async () => {
    const thrower = query("a.throws", () => {
      throw new Error("password is 1234");
    });
    const { registry } = await bench().serve([thrower]);
    const here = (await rejection(registry.execute("a.throws"))) as CallError;
    const there = (await rejection(bench().ask().call("a.throws"))) as CallError;
    expect(there).toBeInstanceOf(CallError);
    expect(there.toJSON()).toEqual(here.toJSON());
    expect(JSON.stringify([there.toJSON(), String(there.cause)])).not.toContain("1234");
  });

  it("RE-20 a CallError keeps its code, details, status and whether to try again", async () => {
    const details = { at: "/n", bytes: [1, 2], why: "busy" };
    const options = { details, retryable: false, correctable: true, httpStatus: 418 };
    await bench().serve([
      query("a.throws", () => {
        throw new CallError("RATE_LIMITED", "Later.", options);
      }),
    ]);
    const error = await rejection(bench().ask().call("a.throws"));
    expect(error).toMatchObject({ code: "RATE_LIMITED", message: "Later.", ...options });
  });

  it("RE-20 a declared error keeps its code and details, an undeclared one is hidden, as at home", async () => {
    const throws = (code: string) => () => {
      throw Object.assign(new Error("x"), { code, details: { left: 0 } });
    };
    const { registry } = await bench().serve([
      query("a.declared", throws("SOLD_OUT"), declared),
      query("a.undeclared", throws("SECRET"), declared),
    ]);
    const map = bench().ask();
    for (const id of ["a.declared", "a.undeclared"]) {
      const here = (await rejection(registry.execute(id))) as CallError;
      expect(((await rejection(map.call(id))) as CallError).toJSON()).toEqual(here.toJSON());
    }
    expect(JSON.stringify(await rejection(map.call("a.undeclared")))).not.toContain("SECRET");
  });

  it("RE-20 input that does not fit is refused with pointers to what is wrong", async () => {
    const ran = vi.fn();
    const { registry } = await bench().serve([
      query("a.strict", ran, { inputSchema: Type.Object({ list: Type.Array(Type.Number()) }) }),
    ]);
    const here = (await rejection(registry.execute("a.strict", { list: [1, "2"] }))) as CallError;
    const there = (await rejection(
      bench()
        .ask()
        .call("a.strict", { list: [1, "2"] }),
    )) as CallError;
    expect(there.code).toBe("VALIDATION_ERROR");
    expect(there.toJSON()).toEqual(here.toJSON());
    expect(JSON.stringify(there.details)).toContain("/list/1");
    expect(ran).not.toHaveBeenCalled();
  });

  it("Call: an operation that nobody answers is NO_RESPONDER at once", async () => {
    await bench().serve([query("a.x", () => sleep(1))]);
    const map = bench().ask();
    const order: unknown[] = [];
    const asked = [
      rejection(map.call("a.other")),
      rejection(map.subscribe("b.other").next()),
      map.call("a.x").then(() => "answered"),
    ];
    for (const one of asked) one.then((end) => order.push(end));
    await Promise.all(asked);
    // Before the answer to what was asked after them: they wait for nothing but the bus.
    expect(order).toMatchObject([
      { code: "NO_RESPONDER", retryable: true },
      { code: "NO_RESPONDER" },
      "answered",
    ]);
    expect(map.size).toBe(0);
  });

  it("Call: a bus that was closed is UNAVAILABLE or has nobody, and loses calls under way", async () => {
    const stopped = vi.fn();
    const { handler } = await bench().serve([
      query("a.hang", (_, { signal }) => new Promise(() => signal.addEventListener("abort", stopped))),
    ]);
    const map = bench().ask();
    const lost = rejection(map.call("a.hang"));
    await until(() => handler.running === 1);
    await bench().pair.asking.close();
    expect(await lost).toMatchObject({ code: "UNAVAILABLE" });
    expect(await rejection(map.call("a.hang"))).toHaveProperty(
      "code",
      expect.stringMatching(/UNAVAILABLE|NO_RESPONDER/),
    );
    await vi.waitFor(() => expect(stopped).toHaveBeenCalled(), 20_000);
  });

  it("Call: what cannot cross is told to whoever is to blame, and the next call works", async () => {
    await bench().serve([query("a.echo", (input) => input), query("a.bad", () => ({ f: () => 1 }))]);
    const map = bench().ask();
    if (bench().sizes !== undefined) {
      expect(await rejection(map.call("a.echo", { f: () => 1 }))).toMatchObject({ code: "VALIDATION_ERROR" });
      expect(await rejection(map.call("a.bad"))).toMatchObject({ code: "OUTPUT_INVALID" });
    }
    expect((await map.call("a.echo", 1)).data).toBe(1);
    expect(map.size).toBe(0);
  });
}

function describeProgress(bench: () => Bench): void {
  it("Call: progress arrives in order, before the answer, and only where somebody listens", async () => {
    await bench().serve([
      query("a.work", async (_, { progress }) => {
        for (let n = 0; n < 5; n++) progress({ n, at: new Date(n) });
        await sleep(5);
        return "done";
      }),
    ]);
    const map = bench().ask();
    const heard: unknown[] = [];
    const { data } = await map.call("a.work", undefined, { onProgress: (value) => heard.push(value) });
    expect([data, heard]).toEqual(["done", [0, 1, 2, 3, 4].map((n) => ({ n, at: new Date(n) }))]);
    expect((await map.call("a.work")).data).toBe("done");
    expect(map.counters.unexpected).toBe(0);
  });

  it("Call: a listener that throws, and progress that cannot cross, do not fail the call", async () => {
    await bench().serve([
      query("a.work", async (_, { progress }) => {
        progress({ f: () => 1 });
        progress(1);
        return "done";
      }),
    ]);
    const onProgress = vi.fn(() => {
      throw new Error("x");
    });
    expect((await bench().ask().call("a.work", undefined, { onProgress })).data).toBe("done");
    expect(onProgress).toHaveBeenCalledWith(1);
  });
}
