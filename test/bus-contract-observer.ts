import { describe, expect, it } from "vitest";
import type { CallObservation } from "../src/call/index.ts";
import { CallError, toolError } from "../src/index.ts";
import type { Bench } from "./bus-contract.ts";
import { collect, query, rejection, stream, until } from "./make-operation.ts";

/** Observes both sides of a bench, or the one bus that is both. */
function observe({ pair }: Bench): CallObservation[] {
  const heard: CallObservation[] = [];
  for (const bus of new Set([pair.asking, pair.answering])) bus.onCall((call) => void heard.push(call));
  return heard;
}

/** What one end reported, each step in a few words. */
function stepsOf(heard: readonly CallObservation[], end: CallObservation["end"]): string[] {
  return heard.filter((call) => call.end === end).map(inWords);
}

function inWords(call: CallObservation): string {
  const { type, outcome, code } = call;
  const values = type !== "requested" && call.values !== undefined ? `${call.values} values` : undefined;
  const reason = type === "aborted" ? call.reason : undefined;
  return [type, reason, values, outcome, code].filter((word) => word !== undefined).join(" ");
}

const endings = (heard: readonly CallObservation[]) =>
  heard.filter(({ outcome }) => outcome !== undefined).length;

/** Row: observer. */
export function describeObserver(bench: () => Bench): void {
  describe("observer", () => {
    describeSteps(bench);
    describeSizes(bench);
  });
}

function describeSteps(bench: () => Bench): void {
  it("RE-17 onCall hears a request and its answer at both ends, under one id, with how long it took", async () => {
    const heard = observe(bench());
    await bench().serve([query("a.add", ({ n }: { n: number }) => n + 1)]);
    await bench().ask().call("a.add", { n: 1 }, { requestId: "r-1" });
    for (const end of ["caller", "handler"] as const) {
      expect(stepsOf(heard, end)).toEqual(["requested", "responded ok"]);
    }
    for (const call of heard) {
      expect(call).toMatchObject({ operationId: "a.add", requestId: "r-1" });
      if (call.type !== "requested") expect(call.durationMs).toBeGreaterThanOrEqual(0);
    }
  });

  it("RE-17 RE-20 onCall tells a tool error from an error, and says the code of each", async () => {
    const heard = observe(bench());
    await bench().serve([
      query("a.no", () => toolError({ why: "closed" }, { code: "CLOSED" })),
      query("a.bad", () => {
        throw new CallError("RATE_LIMITED", "Later.");
      }),
    ]);
    const map = bench().ask();
    await map.call("a.no");
    await rejection(map.call("a.bad"));
    const steps = [
      ...["requested", "responded tool_error CLOSED"],
      ...["requested", "error call_error RATE_LIMITED"],
    ];
    expect(stepsOf(heard, "caller")).toEqual(steps);
    expect(stepsOf(heard, "handler")).toEqual(steps);
    await rejection(map.call("a.none"));
    expect(stepsOf(heard, "caller").slice(4)).toEqual(["requested", "error call_error NO_RESPONDER"]);
    expect(stepsOf(heard, "handler")).toHaveLength(4);
  });

  it("RE-17 RE-21 onCall counts the values of a stream at both ends, up to its end", async () => {
    const heard = observe(bench());
    await bench().serve([
      stream("a.two", async function* () {
        yield "x";
        yield toolError("y");
      }),
      stream("a.breaks", async function* () {
        yield 1;
        throw new CallError("CONFLICT", "No.");
      }),
    ]);
    const map = bench().ask();
    await collect(map.subscribe("a.two"));
    await rejection(collect(map.subscribe("a.breaks")));
    const steps = [
      ...["requested", "responded 1 values", "responded 2 values", "completed 2 values ok"],
      ...["requested", "responded 1 values", "error 1 values call_error CONFLICT"],
    ];
    expect(stepsOf(heard, "caller")).toEqual(steps);
    await until(() => endings(heard) === 4);
    expect(stepsOf(heard, "handler")).toEqual(steps);
    const errors = heard.filter((call) => call.type === "responded" && call.isError);
    expect(errors.map((call) => call.type === "responded" && call.values)).toEqual([2, 2]);
  });

  it("RE-17 RE-21 onCall hears at both ends that a reader left, which is no failure", async () => {
    const heard = observe(bench());
    await bench().serve([
      stream("a.count", async function* () {
        for (let n = 0; ; n++) yield n;
      }),
    ]);
    for await (const { data } of bench().ask().subscribe("a.count")) if (data === 2) break;
    await until(() => endings(heard) === 2);
    for (const end of ["caller", "handler"] as const) {
      expect(stepsOf(heard, end).at(-1)).toMatch(/^aborted left \d+ values ok$/);
    }
  });

  it("RE-17 onCall hears at both ends that a caller gave up, or that its time was over", async () => {
    const heard = observe(bench());
    const { handler } = await bench().serve([query("a.hang", () => new Promise(() => {}))]);
    const map = bench().ask();
    const controller = new AbortController();
    const aborted = rejection(map.call("a.hang", undefined, { signal: controller.signal }));
    await until(() => handler.running === 1);
    controller.abort();
    await aborted;
    await until(() => endings(heard) === 2);
    await rejection(map.call("a.hang", undefined, { timeoutMs: 50 }));
    await until(() => endings(heard) === 4);
    const abort = "aborted aborted call_error ABORTED";
    // Each end has a clock: the first to notice tells the other.
    const late = expect.stringMatching(/^(aborted deadline|error) call_error TIMEOUT$/);
    for (const end of ["caller", "handler"] as const) {
      expect(stepsOf(heard, end)).toEqual(["requested", abort, "requested", late]);
    }
  });
}

function describeSizes(bench: () => Bench): void {
  /** Sizes of requests and answers as one end measured them, in the order of request ids. */
  const sizesAt = (heard: readonly CallObservation[], end: CallObservation["end"]) =>
    heard
      .filter((call) => call.end === end)
      .map(({ type, requestId, sentBytes, receivedBytes }) => {
        const isSent = (type === "requested") === (end === "caller");
        expect(isSent ? receivedBytes : sentBytes).toBeUndefined();
        return `${requestId} ${type} ${isSent ? sentBytes : receivedBytes}`;
      })
      .sort();

  it("RE-17 both ends measure the same bytes where messages are written, in chunks and together too", async () => {
    const heard = observe(bench());
    await bench().serve([query("a.echo", (input) => input)]);
    const map = bench().ask();
    const texts = ["", "\u{1F9FE} ü", "x".repeat(3_000), "y".repeat(20_000)];
    for (const [at, text] of texts.entries()) await map.call("a.echo", text, { requestId: `one-${at}` });
    const many = Array.from({ length: 100 }, (_, n) => ({ n, text: "ü".repeat(n) }));
    await Promise.all(many.map((input) => map.call("a.echo", input, { requestId: `many-${input.n}` })));
    const sizes = sizesAt(heard, "caller");
    expect(sizes).toHaveLength(2 * (texts.length + many.length));
    expect(sizesAt(heard, "handler")).toEqual(sizes);
    const isMeasured = bench().sizes !== undefined;
    for (const call of heard) {
      expect((call.sentBytes ?? call.receivedBytes) !== undefined).toBe(isMeasured);
      if (isMeasured && call.requestId === "one-3") {
        expect(call.sentBytes ?? call.receivedBytes).toBeGreaterThan(20_000);
        expect(call.sentBytes ?? call.receivedBytes).toBeLessThan(20_500);
      }
    }
  });
}
