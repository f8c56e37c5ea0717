// @ts-check
import { setTimeout as sleep } from "node:timers/promises";
import {
  CallError,
  connectNatsBus,
  defineOperation,
  OperationRegistry,
  PendingRequestMap,
  serveCalls,
  Type,
} from "../waybill.js";
import { startNats } from "./nats-server.js";

const MEMBERS = 3;
const SICK = 1;
const CALLS = 10_000;
/** Calls that are made at a time, and how often: 10,000 in 20 s. */
const TOGETHER = 10;
const EVERY_MS = 20;
const RETRY = { attempts: 3, attemptTimeoutMs: 1_000 };

/** The ways in which a member is sick. @type {Readonly<Record<string, () => Promise<unknown>>>} */
const SICKNESSES = {
  "answers UNAVAILABLE": async () => {
    throw new CallError("UNAVAILABLE", "Sick.");
  },
  "does not answer": () => new Promise(() => {}),
};

/** @typedef {{ sickness: string, failed: number, early: number, late: number }} SickRun how many calls failed, and the share of the sick member in the first and the last 10 s */

/** Calls an operation that one of three members cannot run, for each kind of sickness; buses have their defaults. @returns {Promise<SickRun[]>} */
export async function callSickMembers() {
  const { port, stop } = await startNats();
  const runs = [];
  for (const [at, [sickness, fail]] of Object.entries(SICKNESSES).entries()) {
    runs.push(await callSickMember(port, { name: `sick${at}`, sickness, fail }));
  }
  stop();
  return runs;
}

/** @param {number} port @param {{ name: string, sickness: string, fail: () => Promise<unknown> }} operation @returns {Promise<SickRun>} */
async function callSickMember(port, { name, sickness, fail }) {
  const buses = [];
  let reached = 0;
  for (let member = 0; member < MEMBERS; member++) {
    const handler = async () => {
      if (member === SICK) {
        reached++;
        await fail();
      }
      return member;
    };
    const bus = await connectNatsBus({ port });
    buses.push(bus);
    await serveCalls(new OperationRegistry([createOperation(name, handler)]), bus);
  }
  const bus = await connectNatsBus({ port });
  buses.push(bus);
  const map = new PendingRequestMap(bus);
  let failed = 0;
  const calls = [];
  let reachedEarly = 0;
  for (let sent = 0; sent < CALLS; sent += TOGETHER) {
    if (sent === CALLS / 2) reachedEarly = reached;
    for (let one = 0; one < TOGETHER; one++) {
      calls.push(map.call(`bench.${name}`, {}, { retry: RETRY }).catch(() => failed++));
    }
    await sleep(EVERY_MS);
  }
  await Promise.all(calls);
  const [early, late] = [reachedEarly, reached - reachedEarly].map((count) => count / (CALLS / 2));
  await map.close();
  await Promise.all(buses.map((one) => one.close()));
  return { sickness, failed, early: early ?? 0, late: late ?? 0 };
}

/** @param {string} name @param {() => Promise<number>} handler */
function createOperation(name, handler) {
  return defineOperation({
    namespace: "bench",
    name,
    version: "1.0.0",
    type: "query",
    description: "Says which member ran it.",
    inputSchema: Type.Object({}),
    outputSchema: Type.Number(),
    annotations: { idempotent: true },
    handler,
  });
}
