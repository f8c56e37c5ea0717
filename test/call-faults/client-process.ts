import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { connect } from "@nats-io/transport-node";
import { PendingRequestMap } from "../../src/call/index.ts";
import { createNatsBus, type DurableCalls, openDurableCalls } from "../../src/call/nats/index.ts";
import { toCallError } from "../../src/index.ts";
import { GRACE_MS, setAlarm } from "../lateness.ts";
import { createRandom } from "../random.ts";
import { createHistoryWriter, type Settled } from "./history.ts";
import { fetchEnd, outcomeOf } from "./outcome.ts";
import { watchStalls } from "./watch-stalls.ts";
import { BEAT_MS, type PlannedCall, PREFIX, planCall } from "./workload.ts";

/** A client of the fault run: `node client.mjs <url> <history> <seed> <calls in flight>`; told to finish, it makes no new calls. */
const [url = "", path = "", seed = "", inFlight = ""] = process.argv.slice(2);
const write = createHistoryWriter(path);
const random = createRandom(Number(seed));
const stopWatching = watchStalls(write);
let isFinishing = false;
let underWay = 0;
let made = 0;
process.once("disconnect", () => process.exit());
process.on("message", (word) => {
  if (word === "calm") write({ event: "calm" });
  else isFinishing = true;
});

const connection = await connect({
  servers: url,
  waitOnFirstConnect: true,
  maxReconnectAttempts: -1,
  reconnectTimeWait: 50,
});
const bus = createNatsBus(connection, { prefix: PREFIX, beatMs: BEAT_MS });
const map = new PendingRequestMap(bus, { limits: { streamBuffer: 8 } });
const durable = await openStored();

async function openStored(): Promise<DurableCalls> {
  for (;;) {
    try {
      return await openDurableCalls(connection, { prefix: PREFIX });
    } catch {
      // The broker is away at this very moment.
      await pause(100);
    }
  }
}

/** Watches a call whose deadline has just been set. */
function startTiming(timeoutMs: number): { end(): Pick<Settled, "at" | "calledAt" | "wasOutrun"> } {
  const calledAt = performance.now();
  const alarm = setAlarm(timeoutMs + GRACE_MS);
  return {
    end() {
      alarm.stop();
      return { calledAt, at: performance.now(), wasOutrun: alarm.hasRung };
    },
  };
}

async function callPlain(
  { operationId, input, timeoutMs, attempts }: PlannedCall,
  id: string,
): Promise<boolean> {
  const retry = attempts > 1 ? { attempts, attemptTimeoutMs: 1_700 } : undefined;
  const answer = map.call(operationId, input, { requestId: id, timeoutMs, retry });
  const timing = startTiming(timeoutMs);
  const outcome = await outcomeOf(answer);
  write({ event: "settled", id, outcome, ...timing.end() });
  return outcome.ok;
}

async function readStream({ operationId, input, timeoutMs }: PlannedCall, id: string): Promise<boolean> {
  const received: unknown[] = [];
  const values = map.subscribe(operationId, input, { requestId: id, timeoutMs });
  const read = async () => {
    for await (const { data } of values) received.push(data);
    return { data: received.length };
  };
  const reading = outcomeOf(read());
  const timing = startTiming(timeoutMs);
  const outcome = await reading;
  write({ event: "settled", id, outcome, received, ...timing.end() });
  return outcome.ok;
}

/** Stays with a stored call until its end is seen, but not for ever: the end is asked for again after the storm. */
async function submitStored(call: PlannedCall, id: string): Promise<boolean> {
  const { operationId, input, timeoutMs, keyed } = call;
  const options = { requestId: id, timeoutMs, ...(keyed && { idempotencyKey: id }) };
  for (let tries = keyed ? 5 : 1; ; tries--) {
    try {
      await durable.submit(operationId, input, options);
      break;
    } catch (thrown) {
      const { code } = toCallError(thrown);
      write({ event: "refused", id, code });
      if (tries <= 1 || code !== "UNAVAILABLE") return false;
      await pause(100);
    }
  }
  write({ event: "accepted", id });
  const outcome = await fetchEnd(durable, id, 5_000);
  write({ event: "fetched", id, outcome });
  return outcome.ok;
}

async function makeCall(): Promise<boolean> {
  const call = planCall(random, made++);
  const id = randomUUID();
  const { operationId, input, timeoutMs, attempts, kind } = call;
  write({ event: "asked", id, operationId, input, timeoutMs, attempts });
  switch (kind) {
    case "plain":
      return callPlain(call, id);
    case "stream":
      return readStream(call, id);
    case "durable":
      return submitStored(call, id);
  }
}

/** One call after the other; after a failure it takes a breath, or a broker that is away would be asked without end. */
async function keepCalling(): Promise<void> {
  while (!isFinishing) {
    underWay += 1;
    const isGood = await makeCall();
    underWay -= 1;
    if (!isGood) await pause(50 + random.below(100));
  }
}

const telling = setInterval(() => process.send?.({ underWay }), 50);
process.send?.({ ready: true });
await Promise.all(Array.from({ length: Number(inFlight) }, keepCalling));
clearInterval(telling);
stopWatching();
const counters = { ...map.counters };
for (const reason of Object.keys(counters) as (keyof typeof counters)[]) {
  Object.assign(counters, { [reason]: counters[reason] + bus.counters[reason] + durable.counters[reason] });
}
write({ event: "closed", pending: map.size, counters });
process.exit();
