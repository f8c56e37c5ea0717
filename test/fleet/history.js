// @ts-check
// What clients of a fleet write down, and what is looked for in it.

/** @typedef {"http" | "mcp-2025" | "mcp-2026"} Via */
/** @typedef {"read" | "order" | "keyed order"} Kind */
/** What came of a call: its answer, that nobody can know what it did, or why it failed. */
/** @typedef {{ ok: true, call: number, owner: string, replayed?: boolean } | { ok: false, unknown: boolean, why: string }} Outcome */
/** @typedef {{ event: "asked", call: number, owner: string, via: Via, kind: Kind, key?: string }} Asked */
/** @typedef {{ event: "settled", call: number, outcome: Outcome, attempts: number, ms: number }} Settled */
/** An acknowledged order that is asked for once more when all is over, with its key. */
/** @typedef {{ event: "asked again", call: number, outcome: Outcome }} AskedAgain */
/** @typedef {Asked | Settled | AskedAgain} FleetEvent */
/** @typedef {import("./fleet.js").Run} Run */

/** What a run of five minutes has to reach. */
const LEAST_SUCCEEDED = 0.95;
const MOST_UNKNOWN = 0.001;
/** Of those that are asked for again when all is over. */
const MOST_FORGOTTEN = 0.01;

/**
 * Holds what clients saw against what the upstream wrote down; one sentence for every broken promise.
 * @param {readonly FleetEvent[]} events @param {readonly Run[]} runs @returns {string[]}
 */
export function checkHistory(events, runs) {
  /** @type {string[]} */
  const problems = [];
  /** @type {Map<number, Asked>} */
  const asked = new Map();
  /** @type {Map<number, Outcome>} */
  const settled = new Map();
  const answers = (
    /** @type {Asked | undefined} */ one,
    /** @type {Outcome} */ outcome,
    /** @type {string} */ when,
  ) => {
    if (!outcome.ok || one === undefined) return;
    if (outcome.owner !== one.owner)
      problems.push(`Call ${one.call} of ${one.owner} ${when} what ${outcome.owner} asked for.`);
    else if (outcome.call !== one.call)
      problems.push(`Call ${one.call} ${when} what belongs to call ${outcome.call}.`);
  };
  for (const event of events) {
    const one = asked.get(event.call);
    if (event.event === "asked") {
      if (one !== undefined) problems.push(`Call ${event.call} was asked twice.`);
      asked.set(event.call, event);
    } else if (one === undefined) {
      problems.push(`Call ${event.call} settled and was never asked.`);
    } else if (event.event === "settled") {
      if (settled.has(event.call)) problems.push(`Call ${event.call} settled twice.`);
      settled.set(event.call, event.outcome);
      answers(one, event.outcome, "was answered with");
    } else {
      answers(one, event.outcome, "was answered again with");
      // One that is not known by then is named so: its replica could not store the answer before it died.
      if (!event.outcome.ok && !event.outcome.unknown)
        problems.push(`Call ${event.call} was acknowledged, and later it is: ${event.outcome.why}.`);
      else if (event.outcome.ok && event.outcome.replayed === false)
        problems.push(`Call ${event.call} was acknowledged, and asking again was no repetition.`);
    }
  }
  /** @type {Map<number, number>} */
  const ran = new Map();
  for (const { call, owner } of runs) {
    const one = asked.get(call);
    if (one === undefined || one.owner !== owner || one.kind === "read") {
      problems.push(`Call ${call} of ${owner} ran, and nobody had asked for it.`);
    }
    ran.set(call, (ran.get(call) ?? 0) + 1);
  }
  for (const { call, kind, via } of asked.values()) {
    const outcome = settled.get(call);
    const times = ran.get(call) ?? 0;
    if (outcome === undefined) problems.push(`Call ${call} over ${via} never settled.`);
    if (times > 1) problems.push(`Call ${call} over ${via}, ${articleOf(kind)}, ran ${times} times.`);
    if (outcome?.ok && kind !== "read" && times === 0)
      problems.push(`Call ${call} over ${via} was acknowledged and never ran.`);
  }
  return problems;
}

/** @param {Kind} kind */
function articleOf(kind) {
  return kind === "order" ? "an order" : `a ${kind}`;
}

/** @typedef {{ calls: number, succeeded: number, unknown: number, unknownOf: Record<string, [unknown: number, ran: number]>, gaveUp: number, again: number, forgotten: number, keyed: number, failed: Record<string, number>, runs: number, byVia: Record<string, [number, number]>, retried: number, medianMs: number, slowestMs: number }} FleetSummary */

/** Counts what came of everything. @param {readonly FleetEvent[]} events @param {readonly Run[]} runs @returns {FleetSummary} */
export function summarize(events, runs) {
  /** @type {Map<number, Asked>} */
  const asked = new Map();
  /** @type {Record<string, number>} */
  const failed = {};
  /** @type {Record<string, [number, number]>} */
  const byVia = {};
  /** @type {FleetSummary["unknownOf"]} */
  const unknownOf = {};
  const ran = new Set(runs.map(({ call }) => call));
  let [succeeded, unknown, keyed, retried] = [0, 0, 0, 0];
  let [gaveUp, again, forgotten] = [0, 0, 0];
  /** @type {number[]} */
  const times = [];
  for (const event of events) {
    if (event.event === "asked") {
      asked.set(event.call, event);
      if (event.kind === "keyed order") keyed += 1;
    }
    if (event.event === "asked again") {
      again += 1;
      if (!event.outcome.ok) forgotten += 1;
    }
    const one = asked.get(event.call);
    if (event.event !== "settled" || one === undefined) continue;
    // Nobody told its client what came of it, in all the time that a client has.
    if (!event.outcome.ok && !event.outcome.unknown && one.kind === "keyed order") gaveUp += 1;
    times.push(event.ms);
    if (event.attempts > 1) retried += 1;
    const name = `${one.via}, ${one.kind}`;
    const counted = byVia[name] ?? [0, 0];
    byVia[name] = counted;
    counted[1] += 1;
    if (event.outcome.ok) {
      succeeded += 1;
      counted[0] += 1;
    } else if (event.outcome.unknown) {
      unknown += 1;
      const [all, some] = unknownOf[one.via] ?? [0, 0];
      unknownOf[one.via] = [all + 1, some + (ran.has(event.call) ? 1 : 0)];
    } else failed[event.outcome.why] = (failed[event.outcome.why] ?? 0) + 1;
  }
  times.sort((a, b) => a - b);
  const at = (/** @type {number} */ share) => Math.round(times[Math.floor(times.length * share)] ?? 0);
  const calls = asked.size;
  return {
    calls,
    succeeded,
    unknown,
    unknownOf,
    gaveUp,
    again,
    forgotten,
    keyed,
    failed,
    runs: runs.length,
    byVia,
    retried,
    medianMs: at(0.5),
    slowestMs: at(0.9999),
  };
}

/**
 * Holds the counts against what a run of five minutes has to reach; one that is shorter may be told to be content with less.
 * @param {Pick<FleetSummary, "calls" | "succeeded" | "unknown" | "gaveUp" | "again" | "forgotten">} summary @param {number} [mostUnknown] @returns {string[]}
 */
export function checkSummary(summary, mostUnknown = MOST_UNKNOWN) {
  const { calls, succeeded, again, forgotten } = summary;
  const unknown = summary.unknown + summary.gaveUp;
  const problems = [];
  if (calls === 0) problems.push("No call was made.");
  if (succeeded < calls * LEAST_SUCCEEDED)
    problems.push(`Only ${percent(succeeded, calls)} of the calls succeeded.`);
  if (unknown > calls * mostUnknown)
    problems.push(`Of ${percent(unknown, calls)} of the calls nobody can know what they did.`);
  if (forgotten > Math.max(again * MOST_FORGOTTEN, 1))
    problems.push(`Of ${percent(forgotten, again)} of the acknowledged orders nobody knows any more.`);
  return problems;
}

/** @param {number} part @param {number} whole */
export function percent(part, whole) {
  return `${((100 * part) / whole).toFixed(3)} %`;
}
