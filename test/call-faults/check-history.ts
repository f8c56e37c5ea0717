import { checkDeadlines, type Lateness } from "./check-deadlines.ts";
import type { Asked, Fetched, History, Outcome, Settled } from "./history.ts";
import { answerOf, WORK } from "./workload.ts";

/** Everything that was written down during one fault run. */
export interface Histories {
  readonly clients: readonly History[];
  readonly workers: readonly History[];
  /** By a fresh client, after the storm: one entry for every call that was ever accepted. */
  readonly collected: readonly Fetched[];
}

/** What the checker found. */
export interface Verdict {
  /** One sentence for every broken promise; none when all were kept. */
  readonly problems: readonly string[];
  readonly lateness: Lateness;
}

/** Holds what happened against what is promised; looks at nothing but the histories. */
export function checkHistory(histories: Histories): Verdict {
  const { clients } = histories;
  const lateness = checkDeadlines(clients);
  const problems = [
    ...lateness.problems,
    ...clients.flatMap(checkClient),
    ...clients.flatMap(checkCodes),
    ...clients.flatMap(checkCalm),
    ...checkRuns(histories),
    ...checkStored(histories),
  ];
  return { problems, lateness };
}

/** Tells whether a stored call has ended, as lost if need be; other errors say that nobody saw its end or knows the call. */
function isEnd(outcome: Outcome): boolean {
  return outcome.ok || (!outcome.retryable && outcome.code === "UNAVAILABLE");
}

/** Every call of a client that was not killed settles once, and with its own answer. */
function checkClient({ name, killed, events }: History): string[] {
  const problems: string[] = [];
  const asked = new Map<string, Asked>();
  const settled = new Set<string>();
  for (const event of events) {
    if (event.event === "asked") {
      if (asked.has(event.id)) problems.push(`${name}: ${event.id} was asked twice.`);
      asked.set(event.id, event);
    } else if (event.event === "settled") {
      if (settled.has(event.id)) problems.push(`${name}: ${event.id} settled twice.`);
      settled.add(event.id);
      const call = asked.get(event.id);
      if (call === undefined) problems.push(`${name}: ${event.id} settled and was never asked.`);
      else problems.push(...checkAnswer(name, call, event));
    } else if (event.event === "closed" && event.pending !== 0) {
      problems.push(`${name}: ${event.pending} calls were left in the map.`);
    }
  }
  if (killed) return problems;
  if (events.at(-1)?.event !== "closed") problems.push(`${name}: it ended without a word.`);
  for (const { id, operationId } of asked.values()) {
    if (WORK[operationId]?.kind !== "durable" && !settled.has(id))
      problems.push(`${name}: ${id} of ${operationId} never settled.`);
  }
  return problems;
}

function checkAnswer(name: string, call: Asked, { outcome, received }: Settled): string[] {
  const { id, operationId, input } = call;
  if (WORK[operationId]?.kind !== "stream") {
    if (!outcome.ok || outcome.value === answerOf(operationId, input)) return [];
    return [`${name}: ${id} got a wrong answer: ${JSON.stringify(outcome.value)}.`];
  }
  const values = received ?? [];
  const wrong = values.findIndex((value, index) => value !== answerOf(operationId, input, index));
  if (wrong >= 0) return [`${name}: the stream ${id} has a gap, a repeat or a foreign value at ${wrong}.`];
  const isComplete = outcome.ok ? values.length === input.size : values.length <= input.size;
  return isComplete ? [] : [`${name}: the stream ${id} ended after ${values.length} of ${input.size}.`];
}

/** What a storm may do to a call; any other code is a mistake of somebody's. */
const CODES: ReadonlySet<string> = new Set(["TIMEOUT", "UNAVAILABLE", "NO_RESPONDER"]);

/** Only a call that may be tried again, of what must not run again, can be told that it came twice. */
function checkCodes({ name, events }: History): string[] {
  const refusable = new Set<string>();
  const problems: string[] = [];
  const expect = (id: string, code: string): void => {
    if (!CODES.has(code) && !(code === "CONFLICT" && refusable.has(id)))
      problems.push(`${name}: ${id} failed with ${code}.`);
  };
  for (const event of events) {
    if (event.event === "asked" && event.attempts > 1 && WORK[event.operationId]?.idempotent !== true)
      refusable.add(event.id);
    if (event.event === "refused") expect(event.id, event.code);
    if ((event.event === "settled" || event.event === "fetched") && !event.outcome.ok)
      expect(event.id, event.outcome.code);
  }
  return problems;
}

/** Calls with less time than this may meet their deadline without anything being wrong. */
const AMPLE_MS = 3_000;

/** Once nothing is broken any more, every call that has the time and is made once is answered. */
function checkCalm({ name, events }: History): string[] {
  const since = events.findIndex(({ event }) => event === "calm");
  if (since < 0) return [];
  const calm = new Map<string, string>();
  const problems: string[] = [];
  for (const event of events.slice(since)) {
    if (event.event === "asked" && event.attempts === 1 && event.timeoutMs >= AMPLE_MS)
      calm.set(event.id, `${event.id} of ${event.operationId} (${event.input.size})`);
    const call = event.event === "settled" && !event.outcome.ok ? calm.get(event.id) : undefined;
    if (event.event === "settled" && !event.outcome.ok && call !== undefined)
      problems.push(`${name}: ${call} failed with ${event.outcome.code} after the storm.`);
  }
  return problems;
}

/** What is not idempotent runs at most once; nothing is answered that did not run. */
function checkRuns({ clients, workers, collected }: Histories): string[] {
  const problems: string[] = [];
  const events = clients.flatMap((client) => client.events);
  const asked = new Set(events.flatMap((event) => (event.event === "asked" ? [event.id] : [])));
  const runs = new Map<string, string[]>();
  for (const { name, events } of workers) {
    for (const event of events) {
      if (event.event !== "run") continue;
      const places = runs.get(event.id) ?? [];
      places.push(name);
      runs.set(event.id, places);
      if (!asked.has(event.id)) problems.push(`${name}: ${event.id} ran and was never asked.`);
      if (places.length === 2 && WORK[event.operationId]?.idempotent !== true)
        problems.push(`${event.id} of ${event.operationId} ran twice, in ${places.join(" and ")}.`);
    }
  }
  for (const event of [...events, ...collected]) {
    if ((event.event === "settled" || event.event === "fetched") && event.outcome.ok && !runs.has(event.id))
      problems.push(`${event.id} was answered and never ran.`);
  }
  return problems;
}

/** Every call that was accepted has one end, and the same for everybody who asks. */
function checkStored({ clients, collected }: Histories): string[] {
  const problems: string[] = [];
  const asked = new Map<string, Asked>();
  const ends = new Map<string, string>();
  const see = ({ id, outcome }: Fetched): void => {
    if (!isEnd(outcome)) return;
    const call = asked.get(id);
    const isRight = !outcome.ok || (call && outcome.value === answerOf(call.operationId, call.input));
    if (isRight !== true)
      problems.push(`The stored call ${id} got a wrong answer: ${JSON.stringify(outcome)}.`);
    const end = JSON.stringify(outcome);
    if ((ends.get(id) ?? end) !== end) problems.push(`The stored call ${id} has two ends.`);
    ends.set(id, end);
  };
  const events = clients.flatMap((client) => client.events);
  for (const event of events) if (event.event === "asked") asked.set(event.id, event);
  for (const event of events) if (event.event === "fetched") see(event);
  const last = new Map(collected.map((fetched) => [fetched.id, fetched]));
  for (const fetched of collected) see(fetched);
  for (const event of events) {
    if (event.event !== "accepted") continue;
    const fetched = last.get(event.id);
    if (fetched !== undefined && isEnd(fetched.outcome)) continue;
    const how = fetched === undefined ? "nobody asked for it" : JSON.stringify(fetched.outcome);
    problems.push(`The stored call ${event.id} was accepted and has no end: ${how}.`);
  }
  return problems;
}
