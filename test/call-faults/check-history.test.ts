import { describe, expect, it } from "vitest";
import { createCounters } from "../call-model/counters.ts";
import { checkHistory, type Histories } from "./check-history.ts";
import type { Asked, Fetched, History, HistoryEvent, Outcome, Run, Settled } from "./history.ts";
import { answerOf } from "./workload.ts";

const INPUT = { n: 7, size: 3 };
const LOST: Outcome = { ok: false, code: "UNAVAILABLE", retryable: false };
const closed: HistoryEvent = { event: "closed", pending: 0, counters: createCounters() };

function asked(id: string, operationId: string, extra: Partial<Asked> = {}): Asked {
  return { event: "asked", id, operationId, input: INPUT, timeoutMs: 100, attempts: 1, ...extra };
}

function ok(operationId: string): Outcome {
  return { ok: true, value: answerOf(operationId, INPUT) };
}

function failed(code: string, retryable = true): Outcome {
  return { ok: false, code, retryable };
}

function settled(id: string, outcome: Outcome, at = 1_050): Settled {
  return { event: "settled", id, outcome, calledAt: 1_000, at, wasOutrun: at > 1_150 };
}

function streamed(id: string, indexes: readonly number[], outcome: Outcome): Settled {
  const received = indexes.map((index) => answerOf("fault.stream", INPUT, index));
  return { ...settled(id, outcome), received };
}

function run(id: string, operationId: string): Run {
  return { event: "run", id, operationId, pid: 1 };
}

function fetched(id: string, outcome: Outcome): Fetched {
  return { event: "fetched", id, outcome };
}

function history(name: string, events: readonly HistoryEvent[], killed = false): History {
  return { name, killed, events };
}

/** A plain call, a stream, two stored calls and one that a killed client left open: all as it should be. */
const CLEAN: Histories = {
  clients: [
    history("a", [
      asked("plain", "fault.once"),
      settled("plain", ok("fault.once")),
      asked("stream", "fault.stream"),
      streamed("stream", [0, 1, 2], { ok: true, value: 3 }),
      asked("cut", "fault.stream"),
      streamed("cut", [0, 1], failed("UNAVAILABLE")),
      asked("stored", "fault.storedOnce"),
      { event: "accepted", id: "stored" },
      fetched("stored", ok("fault.storedOnce")),
      closed,
    ]),
    history(
      "b",
      [asked("lost", "fault.storedOnce"), { event: "accepted", id: "lost" }, asked("open", "fault.once")],
      true,
    ),
  ],
  workers: [
    history("c", [
      run("plain", "fault.once"),
      run("stream", "fault.stream"),
      run("cut", "fault.stream"),
      run("stored", "fault.storedOnce"),
      run("open", "fault.once"),
    ]),
    history("d", [run("lost", "fault.storedOnce")], true),
  ],
  collected: [fetched("stored", ok("fault.storedOnce")), fetched("lost", LOST)],
};

/** The problems of the clean run with these lines more, those of a client before its last word. */
function problemsWith({
  client = [],
  worker = [],
  collected = [],
}: {
  readonly client?: readonly HistoryEvent[];
  readonly worker?: readonly HistoryEvent[];
  readonly collected?: readonly Fetched[];
}): readonly string[] {
  return checkHistory({
    clients: [...CLEAN.clients, history("planted", [...client, closed])],
    workers: [...CLEAN.workers, history("planted worker", worker)],
    collected: [...CLEAN.collected, ...collected],
  }).problems;
}

describe("the checker of the fault run", () => {
  it("Call faults: the checker passes a clean history", () => {
    expect(checkHistory(CLEAN).problems).toEqual([]);
    expect(problemsWith({})).toEqual([]);
  });

  it("Call faults: the checker passes what a storm may do", () => {
    const client = [
      asked("1", "fault.again", { attempts: 4 }),
      settled("1", ok("fault.again")),
      asked("2", "fault.once", { attempts: 4 }),
      settled("2", failed("CONFLICT", false)),
      asked("3", "fault.once"),
      settled("3", failed("NO_RESPONDER")),
      asked("4", "fault.storedAgain"),
      { event: "refused", id: "4", code: "UNAVAILABLE" },
      { event: "accepted", id: "4" },
      fetched("4", failed("TIMEOUT")),
    ] as const;
    const worker = [run("1", "fault.again"), run("1", "fault.again"), run("2", "fault.once")];
    const twice = [run("4", "fault.storedAgain"), run("4", "fault.storedAgain")];
    const collected = [fetched("4", ok("fault.storedAgain"))];
    expect(problemsWith({ client, worker: [...worker, ...twice], collected })).toEqual([]);
  });

  it.each([
    ["that nobody knows any more", [fetched("x", failed("NOT_FOUND", false))]],
    ["that has not ended", [fetched("x", failed("TIMEOUT"))]],
    ["whose end cannot be reached", [fetched("x", failed("UNAVAILABLE"))]],
    ["that nobody asked for", []],
  ])("Call faults: the checker catches a planted loss: an accepted call %s", (_, collected) => {
    const client = [asked("x", "fault.storedAgain"), { event: "accepted", id: "x" } as const];
    expect(problemsWith({ client, collected })).toEqual([expect.stringContaining("has no end")]);
  });

  it("Call faults: the checker catches a planted loss of a client that was killed", () => {
    expect(checkHistory({ ...CLEAN, collected: CLEAN.collected.slice(0, 1) }).problems).toEqual([
      "The stored call lost was accepted and has no end: nobody asked for it.",
    ]);
  });

  it.each([
    ["plain", "plain", "fault.once", "c"],
    ["stored", "stored", "fault.storedOnce", "c"],
    ["lost", "lost", "fault.storedOnce", "d"],
    ["killed client's", "open", "fault.once", "c"],
    ["streamed", "stream", "fault.stream", "c"],
  ])("Call faults: the checker catches a planted duplicate of a %s call", (_, id, operationId, first) => {
    expect(problemsWith({ worker: [run(id, operationId)] })).toEqual([
      `${id} of ${operationId} ran twice, in ${first} and planted worker.`,
    ]);
  });

  it("Call faults: the checker catches a call that settles twice", () => {
    const client = [
      asked("x", "fault.once"),
      settled("x", ok("fault.once")),
      settled("x", failed("TIMEOUT")),
    ];
    const problems = problemsWith({ client, worker: [run("x", "fault.once")] });
    expect(problems).toEqual(["planted: x settled twice."]);
  });

  it("Call faults: the checker catches a call that never settles", () => {
    expect(problemsWith({ client: [asked("x", "fault.once")] })).toEqual([
      "planted: x of fault.once never settled.",
    ]);
  });

  it("Call faults: the checker catches a call that settles 51 ms late, and not one of 50", () => {
    const late = (ms: number) =>
      problemsWith({ client: [asked("x", "fault.once"), settled("x", failed("TIMEOUT"), 1_100 + ms)] });
    expect(late(50)).toEqual([]);
    expect(late(51)).toEqual(["planted: x settled 51 ms past its deadline."]);
  });

  it("Call faults: the checker passes a call that settles late and that no timer of its process has outrun", () => {
    const late = { ...settled("x", failed("TIMEOUT"), 5_000), wasOutrun: false };
    const clients = [history("busy", [asked("x", "fault.once"), late, closed])];
    const { problems, lateness } = checkHistory({ ...CLEAN, clients: [...CLEAN.clients, ...clients] });
    expect([problems, lateness.excused]).toEqual([[], 1]);
  });

  it("Call faults: the checker takes off only the part of a stall that lies past the deadline", () => {
    const late = (from: number, to: number) =>
      problemsWith({
        client: [
          asked("x", "fault.once"),
          settled("x", failed("TIMEOUT"), 1_200),
          { event: "stall", from, to },
        ],
      });
    expect(late(1_000, 1_150)).toEqual([]);
    expect(late(1_000, 1_149)).toEqual([
      "planted: x settled 51 ms past its deadline, without 49 ms of stalls.",
    ]);
    expect(late(1_190, 5_000)).toEqual([
      "planted: x settled 90 ms past its deadline, without 10 ms of stalls.",
    ]);
    expect(late(500, 1_100)).toEqual(["planted: x settled 100 ms past its deadline."]);
  });

  it("Call faults: the checker catches the answer of another call", () => {
    const other: Outcome = { ok: true, value: answerOf("fault.once", { ...INPUT, n: 8 }) };
    const worker = [run("x", "fault.once")];
    const plain = problemsWith({ client: [asked("x", "fault.once"), settled("x", other)], worker });
    expect(plain).toEqual([expect.stringContaining("planted: x got a wrong answer")]);
    const client = [asked("x", "fault.storedOnce"), { event: "accepted", id: "x" } as const];
    const stored = problemsWith({ client, collected: [fetched("x", other)] });
    expect(stored).toContainEqual(expect.stringContaining("The stored call x got a wrong answer"));
  });

  it("Call faults: the checker catches an answer that nobody gave, and a run that nobody asked for", () => {
    const client = [asked("x", "fault.once"), settled("x", ok("fault.once"))];
    expect(problemsWith({ client })).toEqual(["x was answered and never ran."]);
    expect(problemsWith({ worker: [run("y", "fault.once")] })).toEqual([
      "planted worker: y ran and was never asked.",
    ]);
    const stored = [asked("z", "fault.storedOnce"), { event: "accepted", id: "z" } as const];
    expect(problemsWith({ client: stored, collected: [fetched("z", ok("fault.storedOnce"))] })).toEqual([
      "z was answered and never ran.",
    ]);
  });

  it.each([
    ["a gap", [0, 2], failed("UNAVAILABLE"), "has a gap"],
    ["a repeat", [0, 0, 1], failed("UNAVAILABLE"), "has a gap, a repeat"],
    ["a wrong order", [1, 0, 2], { ok: true, value: 3 } as const, "has a gap"],
    [
      "an early end that looks like a good one",
      [0, 1],
      { ok: true, value: 2 } as const,
      "ended after 2 of 3",
    ],
    ["more than there is", [0, 1, 2, 3], failed("TIMEOUT"), "ended after 4 of 3"],
  ])("Call faults: the checker catches a stream with %s", (_, indexes, outcome, problem) => {
    const client = [asked("x", "fault.stream"), streamed("x", indexes, outcome)];
    const problems = problemsWith({ client, worker: [run("x", "fault.stream")] });
    expect(problems).toEqual([expect.stringContaining(problem)]);
  });

  it("Call faults: the checker catches a stored call with two ends", () => {
    const problems = checkHistory({
      ...CLEAN,
      collected: [fetched("stored", LOST), fetched("lost", LOST)],
    }).problems;
    expect(problems).toEqual(["The stored call stored has two ends."]);
  });

  it.each([
    ["an error of no storm", "fault.once", {}, "EXECUTION_ERROR"],
    ["a conflict without a retry", "fault.once", {}, "CONFLICT"],
    ["a conflict of what may run again", "fault.again", { attempts: 4 }, "CONFLICT"],
  ])("Call faults: the checker catches %s", (_, operationId, extra, code) => {
    const client = [asked("x", operationId, extra), settled("x", failed(code, false))];
    expect(problemsWith({ client })).toEqual([`planted: x failed with ${code}.`]);
  });

  it("Call faults: the checker catches a call that fails after the storm, if it had time and but one try", () => {
    const calm = { event: "calm" } as const;
    const late = asked("x", "fault.once", { timeoutMs: 3_000 });
    const failure = settled("x", failed("TIMEOUT"));
    expect(problemsWith({ client: [calm, late, failure] })).toEqual([
      "planted: x of fault.once (3) failed with TIMEOUT after the storm.",
    ]);
    expect(problemsWith({ client: [late, calm, failure] })).toEqual([]);
    expect(problemsWith({ client: [calm, { ...late, timeoutMs: 2_999 }, failure] })).toEqual([]);
    expect(problemsWith({ client: [calm, { ...late, attempts: 2 }, failure] })).toEqual([]);
  });

  it("Call faults: the checker catches a submit that is refused for anything but a broker that is away", () => {
    const client = [asked("x", "fault.storedOnce"), { event: "refused", id: "x", code: "CONFLICT" } as const];
    expect(problemsWith({ client })).toEqual(["planted: x failed with CONFLICT."]);
  });

  it("Call faults: the checker catches a client that ends early, or leaves calls in its map", () => {
    const left = { event: "closed", pending: 2, counters: createCounters() } as const;
    expect(checkHistory({ ...CLEAN, clients: [...CLEAN.clients, history("x", [])] }).problems).toEqual([
      "x: it ended without a word.",
    ]);
    expect(checkHistory({ ...CLEAN, clients: [...CLEAN.clients, history("x", [left])] }).problems).toEqual([
      "x: 2 calls were left in the map.",
    ]);
  });
});
