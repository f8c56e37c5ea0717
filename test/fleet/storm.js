// @ts-check
// Runs of a fleet under load, from the start of its processes to the verdict: while it is hurt, and while its gateways are restarted in order.
import { setTimeout as pause } from "node:timers/promises";
import { openFleet, until } from "./fleet.js";
import { checkHistory, summarize } from "./history.js";
import { Load, OWNERS } from "./load.js";
import { rage } from "./nemesis.js";

/** @import { Fleet } from "./fleet.js" */
/** @import { Asked, FleetEvent } from "./history.js" */
/**
 * @typedef {object} StormOptions
 * @property {number} seconds How long gateways and brokers are killed.
 * @property {number} [inFlight] Calls in flight (default 200).
 * @property {number} [replicaEveryMs] Between two gateways that are killed (default 5,000).
 * @property {number} [brokerEveryMs] Between two brokers that are killed (default 30,000).
 * @property {string} [cli] The command to run.
 * @property {(text: string) => void} [say] Hears how it goes.
 */

/** Acknowledged orders that are asked for once more when all is over. */
const ASKED_AGAIN = 300;

/** @param {StormOptions} options */
export async function runStorm({
  seconds,
  inFlight = 200,
  replicaEveryMs = 5_000,
  brokerEveryMs = 30_000,
  cli,
  say = () => {},
}) {
  const fleet = await openFleet({ callers: OWNERS, ...(cli !== undefined && { cli }) });
  try {
    /** @type {FleetEvent[]} */
    const events = [];
    const load = new Load({ url: fleet.url, inFlight, record: (event) => void events.push(event) });
    const storm = new AbortController();
    load.start();
    const raging = rage(fleet, storm.signal, {
      replicaEveryMs,
      brokerEveryMs,
      onKill: (what) => say(`kills ${what}`),
    });
    const end = performance.now() + seconds * 1_000;
    while (performance.now() < end) {
      await pause(Math.min(10_000, Math.max(1, end - performance.now())));
      say(`${events.length} events, ${load.underWay} calls in flight`);
    }
    storm.abort();
    const kills = await raging;
    say("the storm is over; waits for what is under way");
    await load.finish();
    await Promise.all(fleet.replicas.map((_, at) => fleet.untilReady(at)));
    say("asks again for what was acknowledged");
    await askAgain(events, load);
    await load.close();
    const runs = fleet.runs();
    const counts = await fleet.counts();
    const problems = [...checkHistory(events, runs), ...tellDeaths(fleet)];
    return {
      events,
      summary: summarize(events, runs),
      problems,
      kills,
      counts,
      newSessions: load.newSessions,
    };
  } finally {
    await fleet.close();
  }
}

/** @typedef {{ replica: number, direct: number[], states: number[], isLate: boolean }} Restart */

/**
 * Restarts every gateway in order under load, as a deployment does: SIGTERM, then the next once it is ready again. Tells what `/ready` said of each on
 * the way, and what came of calls that went past the balancer to a gateway that was leaving.
 * @param {{ rounds?: number, inFlight?: number, cli?: string, nginx?: boolean, say?: (text: string) => void }} [options]
 */
export async function runRollingRestart({
  rounds = 1,
  inFlight = 100,
  cli,
  nginx = false,
  say = () => {},
} = {}) {
  const fleet = await openFleet({ callers: OWNERS, nginx, ...(cli !== undefined && { cli }) });
  try {
    /** @type {FleetEvent[]} */
    const events = [];
    const load = new Load({ url: fleet.url, inFlight, record: (event) => void events.push(event) });
    load.start();
    await until("every call kind is under way", () => events.length > 4 * inFlight);
    /** @type {Restart[]} */
    const restarts = [];
    for (let turn = 0; turn < rounds * fleet.replicas.length; turn++) {
      const at = turn % fleet.replicas.length;
      say(`restarts gateway ${at}`);
      restarts.push(await restart(fleet, at));
    }
    const settled = events.filter(({ event }) => event === "settled").length;
    await load.finish();
    await load.close();
    const problems = [...checkHistory(events, fleet.runs()), ...tellDeaths(fleet)];
    const counts = await fleet.counts();
    return {
      summary: summarize(events, fleet.runs()),
      problems,
      restarts,
      counts,
      settled,
      newSessions: load.newSessions,
    };
  } finally {
    await fleet.close();
  }
}

/** @param {Fleet} fleet @param {number} at @returns {Promise<Restart>} */
async function restart(fleet, at) {
  /** @type {Restart} */
  const seen = { replica: at, direct: [], states: [], isLate: false };
  const note = (/** @type {number} */ status) => {
    if (seen.states.at(-1) !== status) seen.states.push(status);
  };
  note((await fleet.ready(at)).status);
  const ending = fleet.replicas[at]?.end("SIGTERM");
  let hasEnded = false;
  void ending?.then(() => {
    hasEnded = true;
  });
  while (!hasEnded) {
    const { status } = await fleet.ready(at);
    note(status);
    // One that has said that it leaves still serves whoever has not heard.
    if (status === 503 && seen.direct.length < 3) seen.direct.push(await fleet.lookDirectly(at));
    await pause(20);
  }
  fleet.replicas[at]?.start();
  await until(`gateway ${at} is ready again`, async () => {
    const { status, body } = await fleet.ready(at);
    note(status);
    // Ready is who reaches what is shared.
    if (status === 200 && body.state?.status !== "up") seen.isLate = true;
    return status === 200;
  });
  await until("the balancer has it in", async () => (await fleet.counts()).in.includes(at));
  return seen;
}

/** @param {Fleet} fleet */
function tellDeaths(fleet) {
  return fleet.deaths().map((said) => `A process ended by itself: ${said}`);
}

/** Asks once more, with the same key, for orders all over the run. @param {FleetEvent[]} events @param {Load} load */
async function askAgain(events, load) {
  /** @type {Map<number, Asked>} */
  const keyed = new Map();
  for (const event of events)
    if (event.event === "asked" && event.key !== undefined) keyed.set(event.call, event);
  const acknowledged = events.flatMap((event) => {
    const asked = event.event === "settled" && event.outcome.ok ? keyed.get(event.call) : undefined;
    return asked === undefined ? [] : [asked];
  });
  const step = Math.max(1, Math.floor(acknowledged.length / ASKED_AGAIN));
  for (let at = 0; at < acknowledged.length; at += step) {
    const asked = acknowledged[at];
    if (asked === undefined) continue;
    events.push({ event: "asked again", call: asked.call, outcome: await load.again(asked) });
  }
}
