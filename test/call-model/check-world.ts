import { vi } from "vitest";
import type { CallCounters } from "../../src/call/index.ts";
import type { ModelAnswer, ModelService } from "./answering-model.ts";
import type { Datum } from "./controlled-runs.ts";
import type { ModelCall, Outcome } from "./model-call.ts";
import type { ModelStream } from "./model-stream.ts";
import type { RealCall, RealStream, World } from "./world.ts";

/** Milliseconds a call may outlive its deadline by. */
const GRACE_MS = 50;

/** Throws unless the system is exactly where the model says, and has kept every promise on the way. */
export function checkWorld(world: World): void {
  const problems = [...world.asking.problems, ...world.answering.problems];
  for (const [index, call] of world.asking.calls.entries()) {
    problems.push(...callProblems(call, world.calls[index] as RealCall, world));
  }
  for (const [index, stream] of world.asking.streams.entries()) {
    problems.push(...streamProblems(stream, world.streams[index] as RealStream));
  }
  for (const answer of world.answering.answers.values()) problems.push(...answerProblems(answer, world));
  problems.push(...sizeProblems(world), ...counterProblems(world), ...runProblems(world));
  problems.push(...listenerProblems(world));
  if (problems.length > 0) throw new Error(`The model and the system differ:\n- ${problems.join("\n- ")}`);
}

/** The same at the very end, when nothing may be left. */
export function checkEnd(world: World): void {
  checkWorld(world);
  const left = [
    [`${vi.getTimerCount()} timers`, vi.getTimerCount()],
    ["calls that never settled", world.calls.filter(({ settlements }) => settlements.length === 0).length],
    ["reads that never ended", world.streams.filter(({ reads }) => reads.includes(undefined)).length],
    ["listeners", world.controllers.filter((_, signal) => world.listeners(signal) > 0).length],
    ["running calls", world.services.filter(({ handler }) => handler.running > 0).length],
  ] as const;
  const problems: string[] = left.filter(([, count]) => count > 0).map(([what]) => what);
  problems.push(...observerProblems(world));
  if (problems.length > 0) throw new Error(`Left behind at the end: ${problems.join(", ")}`);
}

/** Of each end, every request was reported, and one ending for each. */
function observerProblems({ observed, asking }: World): string[] {
  const open = new Map<string, number>();
  for (const { end, requestId, type, outcome } of observed) {
    const key = `${end} ${requestId}`;
    const change = type === "requested" ? 1 : outcome === undefined ? 0 : -1;
    const count = (open.get(key) ?? 0) + change;
    open.set(key, count);
    if (count < 0 || (change === 0 && count === 0)) return [`${type} of the ${key}, which was over`];
  }
  const ids = new Set(observed.filter(({ end }) => end === "caller").map(({ requestId }) => requestId));
  const asked = [...asking.calls, ...asking.streams].filter(({ requestId }) => requestId !== undefined);
  return [
    ...[...open].filter(([, count]) => count > 0).map(([key]) => `no ending for the ${key}`),
    ...asked.filter(({ requestId }) => !ids.has(requestId as string)).map(() => "a call nobody reported"),
  ];
}

function callProblems(call: ModelCall, real: RealCall, { asking, runs }: World): string[] {
  const problems: string[] = [];
  const expected = call.outcome === undefined ? [] : [call.outcome];
  if (!isSame(real.settlements, expected))
    problems.push(`settled ${text(real.settlements)}, not ${text(expected)}`);
  if (real.progress !== call.progress) problems.push(`${real.progress} reports, not ${call.progress}`);
  if (call.phase !== "settled" && asking.now > call.deadline + GRACE_MS)
    problems.push("outlives its deadline");
  if (call.phase === "pausing" && asking.now >= call.pauseUntil) problems.push("was not tried again");
  const { requestId } = call;
  if (requestId === undefined) return problems;
  const ran = runs.filter((run) => run.requestId === requestId).length;
  const mayRepeat = call.isIdempotent && call.tried > 1;
  if (ran > 1 && !mayRepeat) problems.push(`ran ${ran} times`);
  if (real.settlements.some((outcome) => !isFrom(outcome, requestId)))
    problems.push("settled by another's answer");
  return problems;
}

function streamProblems(stream: ModelStream, real: RealStream): string[] {
  const problems: string[] = [];
  if (!isSame(real.reads, stream.reads)) problems.push(`read ${text(real.reads)}, not ${text(stream.reads)}`);
  if (real.progress !== stream.progress) problems.push(`${real.progress} reports, not ${stream.progress}`);
  const yields = real.reads.filter((read) => read !== undefined && read !== "done" && "data" in read);
  const places = yields.map((read) => ((read as { data: Datum }).data as Datum).n);
  if (places.some((n, at) => n !== at)) problems.push(`yields ${places.join()} are no gapless beginning`);
  const { requestId } = stream;
  if (requestId !== undefined && yields.some((read) => !isFrom(read as Outcome, requestId)))
    problems.push("read another's yield");
  if (stream.phase === "open" && stream.arrived.length === 0 && stream.granted === 0)
    problems.push("waits for what it never granted");
  return problems;
}

function answerProblems(answer: ModelAnswer, { answering }: World): string[] {
  const { run, request, state } = answer;
  const problems: string[] = [];
  if (run !== undefined && request.credit !== undefined && run.asked > answer.credit)
    problems.push(`read ${run.asked} ahead of ${answer.credit}`);
  if (state === "over") {
    if (run !== undefined && answer.isStopped && !run.signal.aborted)
      problems.push("a handler was not stopped");
    if (run?.isStream === true && answer.isStopped && !run.isClosed) problems.push("a stream was not closed");
    return problems;
  }
  const { drainAt, isDrained } = answering.services[answer.service] as ModelService;
  if (isDrained) problems.push("runs where everything should have ended");
  if (answer.due !== undefined) problems.push(`${text(answer.due)} was never sent`);
  if (answering.now >= Math.min(answer.deadline, drainAt)) problems.push("runs on, and its time is over");
  if (run === undefined) problems.push("was taken and never ran");
  else if (run.signal.aborted) problems.push("a handler was stopped for nothing");
  if (run?.isStream === true && run.asked !== Math.min(answer.credit, answer.sequence + 1))
    problems.push(`asked for ${run.asked} of ${answer.sequence} with ${answer.credit}`);
  return problems;
}

function sizeProblems({ asking, answering, map, services }: World): string[] {
  const problems: string[] = [];
  if (asking.owed.size > 0) problems.push(`${asking.owed.size} handlers were not told that nobody waits`);
  if (map.size !== asking.pending) problems.push(`${map.size} pending, not ${asking.pending}`);
  for (const { number, handler } of services) {
    const answers = [...answering.answers.values()];
    const running = answers.filter(({ service, state }) => service === number && state === "open").length;
    if (handler.running !== running) problems.push(`${handler.running} running, not ${running}`);
  }
  return problems;
}

function counterProblems({ asking, answering, maps, services }: World): string[] {
  const pairs: [CallCounters, CallCounters | undefined][] = [
    ...maps.map((map, index): [CallCounters, CallCounters | undefined] => [
      map.counters,
      asking.counters[index],
    ]),
    ...services.map(({ handler, number }): [CallCounters, CallCounters | undefined] => [
      handler.counters,
      answering.services[number]?.counters,
    ]),
  ];
  return pairs
    .filter(([counted, expected]) => !isSame(counted, expected))
    .map(([counted, expected]) => `counted ${text(counted)}, not ${text(expected)}`);
}

/** Whatever a run was asked for, its request has one subscription or call that it belongs to. */
function runProblems({ asking, runs }: World): string[] {
  const streams = asking.streams.map(({ requestId }) => requestId);
  const twice = streams.filter((id) => runs.filter(({ requestId }) => requestId === id).length > 1);
  return twice.map((id) => `the subscription ${id} ran twice`);
}

function listenerProblems(world: World): string[] {
  const { calls, streams } = world.asking;
  const waiting = new Set([
    ...calls.filter(({ phase }) => phase !== "settled").map(({ signal }) => signal),
    ...streams.filter(({ phase }) => phase === "open").map(({ signal }) => signal),
  ]);
  const leaking = world.controllers.filter(
    (_, signal) => !waiting.has(signal) && world.listeners(signal) > 0,
  );
  return leaking.map(() => "a listener was left on a signal");
}

function isFrom(outcome: Outcome, requestId: string): boolean {
  if (outcome === "done" || !("data" in outcome)) return true;
  return (outcome.data as Partial<Datum> | null)?.requestId === requestId;
}

function isSame(one: unknown, other: unknown): boolean {
  return text(one) === text(other);
}

function text(value: unknown): string {
  return JSON.stringify(value);
}
