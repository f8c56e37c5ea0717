import { connect } from "node:net";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { as, type InspectedGateway, inspectGateway, TOKENS } from "../../../../test/inspected-gateway.ts";
import { query, sleep, stream, until } from "../../../../test/make-operation.ts";
import { toolError } from "../../../core/envelope/envelope.ts";
import { CallError } from "../../../core/errors/errors.ts";
import type { CallView, RunEvent } from "../../protocol.ts";

/** What happened to the handlers of a test. */
const seen = { aborted: 0, finished: 0, given: 0, answers: [] as unknown[] };

const FORM = {
  type: "object",
  properties: { name: { type: "string" } },
  required: ["name"],
} as const;

function operations() {
  return [
    query("desk.echo", (input) => ({ input: input ?? null })),
    query("desk.no", () => toolError({ why: "gone" }, { code: "NOT_FOUND", message: "It is gone." })),
    query("desk.broken", () => {
      throw new CallError("CONFLICT", "Read it again.", { details: { at: 3 } });
    }),
    query("desk.wordy", (input) => {
      const message = "x".repeat((input as { length: number }).length);
      throw new CallError("CONFLICT", message, { details: Array(100).fill("y".repeat(8_000)) });
    }),
    query("desk.trim", () => ({ a: 1, extra: 2 }), {
      outputSchema: { type: "object", properties: { a: { type: "number" } }, additionalProperties: false },
    }),
    query("desk.bytes", () => ({ raw: new Uint8Array([1, 2, 3]), big: 10n })),
    query("desk.strange", () => {
      const circle: { self?: unknown } = {};
      circle.self = circle;
      return circle;
    }),
    query("desk.talk", (_, context) => {
      context.progress({ progress: 1, total: 2 });
      context.log("warn", "half way", { at: 1 });
      return "done";
    }),
    query("desk.wait", (_, { signal }) => {
      seen.given += 1;
      return new Promise((_, reject) => {
        signal.addEventListener("abort", () => {
          seen.aborted += 1;
          reject(signal.reason);
        });
      });
    }),
    query("desk.ask", async (_, context) => {
      const answer = await context.elicit({ message: "Who?", requestedSchema: FORM });
      seen.answers.push(answer);
      return answer;
    }),
    stream("desk.count", async function* (input) {
      for (let at = 0; at < (input as { to: number }).to; at++) yield at;
    }),
    stream("desk.pour", async function* () {
      try {
        for (;;) {
          seen.given += 1;
          yield "x".repeat(100_000);
        }
      } finally {
        seen.finished += 1;
      }
    }),
  ];
}

let open: InspectedGateway;
beforeEach(async () => {
  Object.assign(seen, { aborted: 0, finished: 0, given: 0, answers: [] });
  open = await inspectGateway(operations());
});
afterEach(() => open.close());

const typesOf = (events: readonly RunEvent[]) => events.map(({ type }) => type);

describe("running an operation", () => {
  it("tells that it started, its result and its end, and is among the calls", async () => {
    const events = await open.run({ operation: "desk.echo", input: { ["__proto__"]: 1 } });
    expect(typesOf(events)).toEqual(["started", "result", "end"]);
    expect(events[0]).toMatchObject({ seq: 1, requestId: expect.stringMatching(/^[0-9a-f]{32}$/) });
    expect(events[2]).toMatchObject({ values: 1 });
    const { row, input } = await open.get<CallView>("call?seq=1");
    expect(row).toMatchObject({ entry: "inspect", outcome: "ok", operation: "desk.echo" });
    expect(JSON.stringify(input)).toBe('{"value":{"__proto__":1}}');
  });

  it("tells a tool that said no from a call that broke", async () => {
    const [, no] = await open.run({ operation: "desk.no" });
    expect(no).toMatchObject({ type: "result", result: { envelope: { meta: { isError: true } } } });
    const broken = await open.run({ operation: "desk.broken" });
    expect(broken.at(-1)).toMatchObject({
      type: "error",
      error: { code: "CONFLICT", message: "Read it again.", details: { at: 3 } },
    });
    const missing = await open.run({ operation: "desk.nothing" });
    expect(missing.at(-1)).toMatchObject({ type: "error", error: { code: "OPERATION_NOT_FOUND" } });
    const { error } = await open.get<CallView>("call?seq=2");
    expect(error).toMatchObject({ code: "CONFLICT", details: { at: 3 } });
  });

  it("shows the raw data where it was something else before", async () => {
    const [, trimmed] = await open.run({ operation: "desk.trim" });
    expect(trimmed).toMatchObject({ result: { envelope: { data: { a: 1 } }, rawData: { a: 1, extra: 2 } } });
    const [, plain] = await open.run({ operation: "desk.echo" });
    expect(plain).not.toHaveProperty("result.rawData");
  });

  it("writes what JSON cannot hold in its wire form, and says so where there is none", async () => {
    const [, bytes] = await open.run({ operation: "desk.bytes" });
    expect(JSON.stringify(bytes)).toContain("AQID");
    const strange = await open.run({ operation: "desk.strange" });
    expect(typesOf(strange)).toEqual(["started", "result-omitted", "end"]);
    expect(strange[1]).toEqual({ type: "result-omitted", reason: "not-json" });
    const { results } = await open.get<CallView>("call?seq=2");
    expect(results).toEqual([{ omitted: "not-json" }]);
  });

  it("tells ten thousand characters of what went wrong, and not one more", async () => {
    for (const [length, told] of [
      [10_000, 10_000],
      [10_001, 10_000],
    ]) {
      const events = await open.run({ operation: "desk.wordy", input: { length } });
      const last = events.at(-1);
      expect(last?.type === "error" && last.error.message.length).toBe(told);
      expect(last?.type === "error" && JSON.stringify(last.error.details).length).toBeLessThan(100_000);
    }
  });

  it("passes on progress and log lines", async () => {
    const events = await open.run({ operation: "desk.talk" });
    expect(events.slice(1, 3)).toEqual([
      { type: "progress", value: { progress: 1, total: 2 } },
      { type: "log", level: "warn", message: "half way", data: { at: 1 } },
    ]);
  });

  it("ends a call when its time is up", async () => {
    const events = await open.run({ operation: "desk.wait", timeoutMs: 30 });
    expect(events.at(-1)).toMatchObject({ type: "error", error: { code: "TIMEOUT" } });
    for (const timeoutMs of [0, -1, "5", null, 1e300]) {
      expect((await open.ask("run", { body: { operation: "desk.echo", timeoutMs } })).status).toBe(400);
    }
  });

  it("streams a subscription value by value", async () => {
    const events = await open.run({ operation: "desk.count", input: { to: 25 } });
    expect(events.filter(({ type }) => type === "result")).toHaveLength(25);
    expect(events.at(-1)).toMatchObject({ type: "end", values: 25 });
    const { results, earlier, row } = await open.get<CallView>("call?seq=1");
    expect([results.length, earlier, row.values]).toEqual([20, 5, 25]);
    expect(results[19]).toMatchObject({ envelope: { data: 24 } });
  });

  it("stops the handler when the page leaves", async () => {
    const leaving = new AbortController();
    const asked = open.ask("run", { body: { operation: "desk.wait" }, signal: leaving.signal });
    await until(() => seen.given === 1);
    await asked;
    leaving.abort();
    await until(() => seen.aborted === 1);
    await vi.waitFor(async () => {
      const { row } = await open.get<CallView>("call?seq=1");
      expect(row).toMatchObject({ outcome: "call_error", code: "ABORTED" });
    }, 20_000);
  });

  it("goes no faster than the page reads, and stops when it leaves", async () => {
    const body = JSON.stringify({ operation: "desk.pour" });
    const socket = connect(open.port, "127.0.0.1");
    socket.pause();
    socket.write(
      `POST /inspect/api/run HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    await until(() => seen.given > 1);
    // What it does as fast as it can never rests.
    for (let given = 0; given < seen.given; await sleep(300)) given = seen.given;
    expect(seen.given).toBeLessThan(200);
    socket.destroy();
    await until(() => seen.finished === 1);
  });
});

describe("questions of a handler", () => {
  async function asking(headers: Record<string, string> = {}) {
    const leaving = new AbortController();
    const response = await open.ask("run", {
      body: { operation: "desk.ask" },
      headers,
      signal: leaving.signal,
    });
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    let text = "";
    const events = () =>
      text
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line) as RunEvent);
    const more = async () => {
      const { value, done } = await reader.read();
      text += new TextDecoder().decode(value);
      return !done;
    };
    while (!events().some(({ type }) => type === "ask")) await more();
    const [started, ask] = events();
    if (started?.type !== "started" || ask?.type !== "ask") throw new Error("It never asked.");
    const key = { requestId: started.requestId, key: ask.key };
    return { key, ask, events, more, leave: () => leaving.abort() };
  }

  it("are put to the page, and answered once with what fits the form", async () => {
    const { key, ask, events, more } = await asking();
    expect(ask.question).toMatchObject({ mode: "form", message: "Who?", schema: FORM });
    const answer = (body: object) => open.ask("answer", { body });
    for (const wrong of [
      { ...key, action: "maybe" },
      { ...key, action: "accept", content: [] },
      { ...key, action: "accept", content: { name: 1 } },
      { ...key, action: "accept" },
    ]) {
      expect((await answer(wrong)).status).toBe(400);
    }
    const right = { ...key, action: "accept", content: { name: "Ann" } };
    expect((await answer({ ...right, key: "other" })).status).toBe(404);
    expect((await answer({ ...right, requestId: "other" })).status).toBe(404);
    expect(await (await answer(right)).json()).toEqual({});
    expect((await answer(right)).status).toBe(404);
    while (await more());
    expect(events().at(-2)).toMatchObject({
      type: "result",
      result: { envelope: { data: { action: "accept", content: { name: "Ann" } } } },
    });
  });

  it("are declined when the page leaves", async () => {
    const { leave } = await asking();
    leave();
    await until(() => seen.answers.length === 1);
    expect(seen.answers).toEqual([{ action: "decline" }]);
  });

  it("are nobody else's to answer", async () => {
    await open.close();
    open = await inspectGateway(operations(), { serve: { auth: { tokens: TOKENS } } });
    const { key, more } = await asking(as("ann"));
    const body = { ...key, action: "accept", content: { name: "x" } };
    expect((await open.ask("answer", { body, headers: as("olga") })).status).toBe(404);
    expect((await open.ask("answer", { body, headers: as("ann") })).status).toBe(200);
    while (await more());
  });
});
