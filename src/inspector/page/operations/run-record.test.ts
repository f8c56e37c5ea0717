import { expect, test } from "vitest";
import type { ResultView, RunEvent } from "../../protocol.ts";
import { beginRun, endRun, type RunRecord, takeEvent } from "./run-record.ts";

const result = (data: unknown): ResultView => ({ envelope: { data, meta: { source: "local" } } });

const after = (...events: readonly RunEvent[]): RunRecord => {
  const run = beginRun({ a: 1 }, 1_000);
  for (const event of events) takeEvent(run, event, 2_000);
  return run;
};

test("a call that returns is done, with its one value", () => {
  const run = after(
    { type: "started", requestId: "r1", seq: 7 },
    { type: "result", result: result(1) },
    { type: "end", durationMs: 12, values: 1 },
  );
  expect(run).toMatchObject({ status: "done", requestId: "r1", seq: 7, durationMs: 12, received: 1 });
  expect(run.values[0]).toMatchObject({ position: 1, at: 2_000, result: result(1) });
});

test("a call that breaks keeps what came before it did", () => {
  const error = { code: "UNAVAILABLE", message: "Down." };
  const run = after({ type: "result", result: result(1) }, { type: "error", error, durationMs: 3 });
  expect(run).toMatchObject({ status: "failed", failure: error, durationMs: 3, received: 1 });
});

test("progress is read in the words of MCP, and nothing is made up", () => {
  const progress = (value: unknown): unknown => after({ type: "progress", value }).progress;
  expect(progress({ progress: 1, total: 3, message: "packing" })).toEqual({
    done: 1,
    total: 3,
    message: "packing",
  });
  expect(progress({ progress: "1", total: null, message: 5 })).toEqual({});
  expect(progress("half")).toEqual({ message: "half" });
  expect(progress(null)).toEqual({});
});

test("of log lines the last 200 stay, and the rest are counted", () => {
  const run = after(
    ...Array.from({ length: 250 }, (_, at): RunEvent => ({ type: "log", level: "info", message: `${at}` })),
  );
  expect(run.logs).toHaveLength(200);
  expect(run.logs[0]).toMatchObject({ key: 50, message: "50" });
  expect(run.earlierLogs).toBe(50);
});

test("of values the last 500 stay, fewer of long ones", () => {
  const many = after(
    ...Array.from({ length: 700 }, (_, at): RunEvent => ({ type: "result", result: result(at) })),
  );
  expect(many.values).toHaveLength(500);
  expect(many.values[0]?.position).toBe(201);
  expect(many.received).toBe(700);
  const long = "x".repeat(4_000_000);
  const few = after(
    ...Array.from({ length: 20 }, (): RunEvent => ({ type: "result", result: result(long) })),
  );
  expect(few.values.length).toBeLessThan(10);
  expect(few.values.at(-1)?.position).toBe(20);
});

test("questions wait until the call has ended, and what comes later is passed over", () => {
  const question = { mode: "url", message: "Sign in.", url: "https://example.com" } as const;
  const run = after({ type: "ask", key: "q", question });
  expect(run.questions).toMatchObject([{ key: "q", question }]);
  endRun(run, "cancelled", 5);
  takeEvent(run, { type: "result", result: result(1) });
  takeEvent(run, { type: "end", durationMs: 9, values: 1 });
  expect(run).toMatchObject({ status: "cancelled", durationMs: 5, questions: [], received: 0 });
});

test("a value that was not sent is counted as one", () => {
  const long = after({ type: "result-omitted", reason: "too-long", characters: 9e6 });
  expect(long.values).toMatchObject([{ position: 1, tooLong: 9e6 }]);
  const strange = after({ type: "result-omitted", reason: "not-json" });
  expect(strange.values).toMatchObject([{ position: 1 }]);
  expect(strange.values[0]).not.toHaveProperty("tooLong");
});
