import { isObject } from "../../../core/schema/json-schema.ts";
import type { CallFailure, ResultView, RunEvent, RunQuestion } from "../../protocol.ts";

import { lineJson } from "../parts/show-json.ts";

/** What became of a call that the page made; it is filled as events come. */
export interface RunRecord {
  /** Nothing for a call without one. */
  readonly input: { readonly value: unknown } | undefined;
  /** Unix epoch milliseconds. */
  readonly startedAt: number;
  status: "running" | "done" | "failed" | "cancelled";
  requestId?: string;
  seq?: number;
  durationMs?: number;
  progress?: RunProgress;
  failure?: CallFailure;
  /** Oldest first. */
  readonly logs: RunLogLine[];
  /** Lines that were let go. */
  earlierLogs: number;
  questions: readonly AskedQuestion[];
  /** Oldest first. */
  readonly values: RunValue[];
  /** Values that came, in all. */
  received: number;
  /** Characters that the values take, about. */
  held: number;
}

/** How far a call is. */
export interface RunProgress {
  readonly done?: number;
  readonly total?: number;
  readonly message?: string;
}

/** What a handler said while it ran. */
export interface RunLogLine {
  readonly key: number;
  readonly level: string;
  readonly message: string;
  readonly data?: unknown;
}

/** A question that waits for an answer. */
export interface AskedQuestion {
  readonly key: string;
  readonly question: RunQuestion;
}

/** One value of a call: a result, how long the one was that the server did not send, or neither for what is no JSON. */
export interface RunValue {
  /** Counts from 1. */
  readonly position: number;
  readonly at: number;
  readonly size: number;
  readonly result?: ResultView;
  readonly tooLong?: number;
}

const MOST_LOGS = 200;
const MOST_QUESTIONS = 50;
const MOST_VALUES = 500;
const MOST_HELD = 30_000_000;

/** A call that begins now. */
export function beginRun(value: unknown, now = Date.now()): RunRecord {
  return {
    input: value === undefined ? undefined : { value },
    startedAt: now,
    status: "running",
    logs: [],
    earlierLogs: 0,
    questions: [],
    values: [],
    received: 0,
    held: 0,
  };
}

/** Takes in what happened; a call that has ended takes in nothing more. */
export function takeEvent(run: RunRecord, event: RunEvent, at = Date.now()): void {
  if (run.status !== "running") return;
  switch (event.type) {
    case "started":
      run.requestId = event.requestId;
      run.seq = event.seq;
      return;
    case "progress":
      run.progress = readProgress(event.value);
      return;
    case "log":
      run.logs.push({ ...event, key: run.earlierLogs + run.logs.length });
      if (run.logs.length <= MOST_LOGS) return;
      run.logs.shift();
      run.earlierLogs += 1;
      return;
    case "ask":
      run.questions = [...run.questions, event].slice(0, MOST_QUESTIONS);
      return;
    case "result":
      addValue(run, { at, size: lineJson(event.result).length, result: event.result });
      return;
    case "result-omitted":
      addValue(run, { at, size: 0, ...(event.reason === "too-long" && { tooLong: event.characters ?? 0 }) });
      return;
    case "error":
      run.failure = event.error;
      endRun(run, "failed", event.durationMs);
      return;
    case "end":
      endRun(run, "done", event.durationMs);
  }
}

/** Ends a call; questions that were open are no longer. */
export function endRun(
  run: RunRecord,
  status: "done" | "failed" | "cancelled",
  durationMs = Date.now() - run.startedAt,
): void {
  if (run.status === "running") Object.assign(run, { status, durationMs, questions: [] });
}

function addValue(run: RunRecord, value: Omit<RunValue, "position">): void {
  run.received += 1;
  run.held += value.size;
  run.values.push({ ...value, position: run.received });
  while (run.values.length > MOST_VALUES || (run.held > MOST_HELD && run.values.length > 1)) {
    run.held -= run.values.shift()?.size ?? 0;
  }
}

/** Progress in the words of MCP; other words are shown as they are. */
function readProgress(value: unknown): RunProgress {
  if (!isObject(value)) return typeof value === "string" ? { message: value } : {};
  const { progress, total, message } = value;
  return {
    ...(typeof progress === "number" && { done: progress }),
    ...(typeof total === "number" && { total }),
    ...(typeof message === "string" && { message }),
  };
}
