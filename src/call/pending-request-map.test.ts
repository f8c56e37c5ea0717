import { describe, expect, it, vi } from "vitest";
import { query, rejection } from "../../test/make-operation.ts";
import { openEnd } from "../../test/open-end.ts";
import { localEnvelope, toolError } from "../core/envelope/envelope.ts";
import type { ResponseEnvelope } from "../core/envelope/response-meta.ts";
import { OperationRegistry } from "../core/registry/registry.ts";
import { serveCalls } from "./call-handler.ts";
import { createMemoryBus } from "./memory-bus.ts";
import { PendingRequestMap } from "./pending-request-map.ts";

const ENVELOPE = localEnvelope("answer", "a.b");
const WRONG = [
  undefined,
  null,
  1,
  "text",
  [],
  {},
  { data: 1 },
  { data: 1, meta: {} },
  { data: 1, meta: { source: "x" } },
];

describe("PendingRequestMap.respond", () => {
  it.each(WRONG)("RE-19 throws on %j, which is no envelope, and the call goes on waiting", async (output) => {
    const { map, last } = openEnd();
    const answer = map.call("a.b");
    const { asker } = last();
    expect(() => map.respond(asker, output)).toThrow(TypeError);
    expect(map.size).toBe(1);
    map.respond(asker, ENVELOPE);
    expect(await answer).toBe(ENVELOPE);
  });

  it("RE-19 call() resolves with the very envelope, a plain or frozen one too", async () => {
    const { map, last } = openEnd();
    const plain: ResponseEnvelope = Object.freeze({ data: 1, meta: { ...ENVELOPE.meta } });
    for (const envelope of [ENVELOPE, plain, toolError("no")]) {
      const answer = map.call("a.b");
      map.respond(last().asker, envelope);
      expect(await answer).toBe(envelope);
    }
    expect([map.size, map.counters.forged, map.counters.late]).toEqual([0, 0, 0]);
  });

  it("RE-29 a request id, a copy of the path or anything else of the caller's making changes nothing and is counted", async () => {
    const { map, last } = openEnd();
    const answer = map.call("a.b");
    const { asker, request } = last();
    const copies = [{ ...asker }, Object.create(asker), structuredClone({ requestId: request.requestId })];
    const paths = [request.requestId, request, undefined, null, "a.b", map, ...copies];
    for (const path of paths) map.respond(path, localEnvelope("forged", "a.b"));
    expect([map.size, map.counters.forged]).toEqual([1, paths.length]);
    map.respond(asker, ENVELOPE);
    expect((await answer).data).toBe("answer");
  });

  it("RE-29 the path of a call of another map changes nothing and is counted", async () => {
    const [one, other] = [openEnd(), openEnd()];
    const answer = one.map.call("a.b", 1, { requestId: "same" });
    const others = other.map.call("a.b", 1, { requestId: "same" });
    other.map.respond(one.last().asker, localEnvelope("forged", "a.b"));
    expect([one.map.size, other.map.size, other.map.counters.forged]).toEqual([1, 1, 1]);
    one.map.respond(one.last().asker, ENVELOPE);
    other.map.respond(other.last().asker, ENVELOPE);
    await Promise.all([answer, others]);
  });

  it("RE-29 the path of a call that has settled changes nothing and is counted as late", async () => {
    const { map, last } = openEnd();
    const answer = map.call("a.b");
    map.respond(last().asker, ENVELOPE);
    map.respond(last().asker, localEnvelope("again", "a.b"));
    last().asker.receive({ type: "call.responded", requestId: last().request.requestId, output: ENVELOPE });
    expect([(await answer).data, map.counters.late]).toEqual(["answer", 2]);
  });

  it("RE-29 an event of another request on the right path changes nothing and is counted", async () => {
    const { map, last } = openEnd();
    const answer = map.call("a.b");
    const { asker, request } = last();
    const error = { code: "X", message: "", retryable: false, correctable: false };
    asker.receive({ type: "call.responded", requestId: "other", output: localEnvelope("forged", "a.b") });
    asker.receive({ type: "call.error", requestId: "other", error });
    asker.receive({ type: "call.completed", requestId: request.requestId, count: 0 });
    expect([map.size, map.counters.forged, map.counters.unexpected]).toEqual([1, 2, 1]);
    asker.receive({ type: "call.responded", requestId: request.requestId, output: ENVELOPE });
    expect((await answer).data).toBe("answer");
  });

  it("RE-29 the path of a stream cannot be answered from outside", async () => {
    const { map, last } = openEnd();
    const values = map.subscribe("a.b");
    const first = values.next();
    map.respond(last().asker, ENVELOPE);
    expect(map.counters.forged).toBe(1);
    last().asker.receive({
      type: "call.responded",
      requestId: last().request.requestId,
      output: ENVELOPE,
      sequence: 0,
    });
    expect((await first).value).toBe(ENVELOPE);
    await values.return?.();
  });
});

describe("PendingRequestMap", () => {
  it("Call: request ids that nobody chose are not to be guessed, and never the same", async () => {
    const { map, last } = openEnd();
    const ids = new Set<string>();
    for (let n = 0; n < 1_000; n++) {
      map.call("a.b").catch(() => {});
      ids.add(last().request.requestId);
    }
    expect(ids.size).toBe(1_000);
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{32}$/);
    await map.close();
    expect(map.size).toBe(0);
  });

  it("Call: a request id that is under way is refused, and the first call goes on", async () => {
    const { map, last } = openEnd();
    const first = map.call("a.b", 1, { requestId: "r" });
    const { asker } = last();
    expect(await rejection(map.call("a.b", 1, { requestId: "r" }))).toMatchObject({ code: "CONFLICT" });
    expect(map.size).toBe(1);
    map.respond(asker, ENVELOPE);
    await first;
  });

  it.each(["call", "retried call", "subscription"])(
    "Call: options are read once, so that the request id of a %s is the same all the way",
    async (kind) => {
      const { map, last } = openEnd();
      let reads = 0;
      const options = {
        retry: kind === "retried call" ? { attempts: 2 } : undefined,
        get requestId() {
          return `id-${reads++}`;
        },
      };
      const answer =
        kind === "subscription" ? map.subscribe("a.b", 1, options).next() : map.call("a.b", 1, options);
      const { asker, request } = last();
      expect([request.requestId, reads, asker.hasFreshId]).toEqual(["id-0", 1, false]);
      const sequence = kind === "subscription" ? 0 : undefined;
      asker.receive({ type: "call.responded", requestId: "id-0", output: ENVELOPE, sequence });
      await answer;
      await map.close();
      expect([map.size, reads]).toEqual([0, 1]);
    },
  );

  it("Call: settled calls leave no listener on a signal that lives on", async () => {
    const { map, last, sent } = openEnd();
    const controller = new AbortController();
    const add = vi.spyOn(controller.signal, "addEventListener");
    const remove = vi.spyOn(controller.signal, "removeEventListener");
    for (let n = 0; n < 50; n++) {
      const answer = map.call("a.b", n, { signal: controller.signal });
      map.respond(last().asker, ENVELOPE);
      await answer;
    }
    expect(add.mock.calls.length - remove.mock.calls.length).toBeLessThanOrEqual(1);
    controller.abort();
    expect(sent).toEqual([]);
  });

  it.each([-1, Number.NaN, "5"])("Call: a timeout of %s is the caller's mistake", async (timeoutMs) => {
    const { map } = openEnd();
    expect(await rejection(map.call("a.b", 1, { timeoutMs: timeoutMs as number }))).toBeInstanceOf(TypeError);
    expect(map.size).toBe(0);
  });

  it("Call: a signal that is none is the caller's mistake", async () => {
    const { map } = openEnd();
    expect(await rejection(map.call("a.b", 1, { signal: {} as AbortSignal }))).toBeInstanceOf(TypeError);
    expect(() => map.subscribe("a.b", 1, { signal: {} as AbortSignal })).toThrow(TypeError);
    expect(map.size).toBe(0);
  });

  it("Call: an option that there is not is the caller's mistake, and nothing is sent", async () => {
    const { map } = openEnd();
    const message = 'There is no option "timeout"; did you mean "timeoutMs"?';
    expect(await rejection(map.call("a.b", 1, { timeout: 5 } as never))).toEqual(new TypeError(message));
    expect(() => map.subscribe("a.b", 1, { timeout: 5 } as never)).toThrow(new TypeError(message));
    expect(() => map.subscribe("a.b", 1, { retry: { attempts: 2 } } as never)).toThrow('no option "retry"');
    expect(await rejection(map.call("a.b", 1, 5 as never))).toBeInstanceOf(TypeError);
    expect(map.size).toBe(0);
  });

  it("Call: an abort and a deadline are told to whoever runs the call, with the reason", async () => {
    const { map, sent } = openEnd();
    await rejection(map.call("a.b", 1, { timeoutMs: 5, requestId: "late" }));
    const controller = new AbortController();
    const aborted = rejection(map.call("a.b", 1, { signal: controller.signal, requestId: "gone" }));
    controller.abort();
    await aborted;
    expect(sent).toEqual([
      { type: "call.aborted", requestId: "late", reason: "deadline" },
      { type: "call.aborted", requestId: "gone", reason: "aborted" },
    ]);
  });

  it("Call: the memory of a map stays that of the calls under way", async () => {
    const bus = createMemoryBus();
    await serveCalls(new OperationRegistry([query("a.x", (n) => n)]), bus);
    const map = new PendingRequestMap(bus);
    for (let n = 0; n < 2_000; n++) await map.call("a.x", n);
    expect(map.size).toBe(0);
    await map.close();
  });
});
