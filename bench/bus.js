// @ts-check
import { fork } from "node:child_process";
import { once } from "node:events";
import { runBench } from "./bench.js";
import { createBareMap, createWaybillCall, createYogaCall } from "./bus/in-process.js";
import { createNatsCalls } from "./bus/over-nats.js";
import { callSickMembers } from "./bus/sick-member.js";
import { interleave } from "./interleave.js";
import { timing } from "./options.js";
import { judgeFaster, judgeGrowth, judgeWithin, printTable, verdict } from "./report.js";

/** @typedef {import("./bus/in-process.js").Call} Call */

const IN_FLIGHT = 256;
const BATCH = 4 * IN_FLIGHT;
const INPUT = { a: 1, b: 2 };

/**
 * Makes one step of a bench out of many calls, so many of them under way at a time.
 * @param {Call} call
 * @param {number} inFlight
 * @param {number} calls
 */
function inBatches(call, inFlight, calls) {
  return async () => {
    let left = calls;
    const caller = async () => {
      while (left-- > 0) await call(INPUT);
    };
    await Promise.all(Array.from({ length: inFlight }, caller));
  };
}

/** @param {Readonly<Record<string, Call>>} calls @param {(call: Call) => () => unknown} step */
const sidesOf = (calls, step) =>
  Object.fromEntries(Object.entries(calls).map(([name, call]) => [name, step(call)]));

/** @param {Readonly<Record<string, Call>>} calls */
async function assertAllAnswer(calls) {
  for (const [name, call] of Object.entries(calls)) {
    const answer = /** @type {{ sum?: number, data?: { sum: number } }} */ (await call(INPUT));
    if ((answer.data ?? answer).sum !== 3) throw new Error(`${name} answers ${JSON.stringify(answer)}.`);
  }
}

/** @type {import("./bench.js").Case} */
async function inProcess(name, options) {
  const calls = {
    waybill: await createWaybillCall(),
    "bare pending map": createBareMap(),
    "graphql-yoga pub/sub": createYogaCall(),
  };
  await assertAllAnswer(calls);
  const verdicts = [];
  for (const [title, step] of /** @type {const} */ ([
    [`${name}, one at a time`, (/** @type {Call} */ call) => () => call(INPUT)],
    [`${name}, ${IN_FLIGHT} in flight`, (/** @type {Call} */ call) => inBatches(call, IN_FLIGHT, BATCH)],
  ])) {
    const comparison = await interleave(sidesOf(calls, step), timing(options));
    printTable(title, comparison, "waybill");
    verdicts.push(
      judgeWithin(title, comparison, { side: "waybill", base: "bare pending map", times: 1.5 }),
      judgeFaster(title, comparison, { slow: "graphql-yoga pub/sub", fast: "waybill", times: 6 }),
    );
  }
  return verdicts;
}

/** @type {import("./bench.js").Case} */
async function overNats(name, options) {
  const { calls, close } = await createNatsCalls();
  await assertAllAnswer(calls);
  const { rounds, warmUpMs } = timing(options);
  const slow = { rounds, warmUpMs, sliceMs: 100 };
  const crowd = await interleave(
    sidesOf(calls, (call) => inBatches(call, IN_FLIGHT, BATCH)),
    slow,
  );
  printTable(`${name}, ${BATCH} calls, ${IN_FLIGHT} in flight`, crowd, "waybill");
  const single = await interleave(
    sidesOf(calls, (call) => () => call(INPUT)),
    slow,
  );
  printTable(`${name}, one at a time`, single, "waybill");
  await close();
  return [
    judgeFaster(`${name}, ${IN_FLIGHT} in flight`, crowd, { slow: "request()", fast: "waybill", times: 3 }),
    judgeFaster(`${name}, ${IN_FLIGHT} in flight`, crowd, { slow: "Moleculer", fast: "waybill", times: 1.1 }),
    judgeFaster(`${name}, one at a time`, single, { slow: "request()", fast: "waybill", times: 1 }),
    judgeFaster(`${name}, one at a time`, single, { slow: "Moleculer", fast: "waybill", times: 1 }),
  ];
}

/** @type {import("./bench.js").Case} */
async function memory(name, { quick }) {
  const verdicts = [];
  for (const [where, calls] of /** @type {const} */ ([
    ["in-process", quick ? 200_000 : 1_000_000],
    ["over-nats", quick ? 50_000 : 1_000_000],
  ])) {
    const child = fork(new URL("./memory/bus-calls.js", import.meta.url), [where, String(calls)], {
      execArgv: ["--expose-gc"],
    });
    const [{ early, late }] = /** @type {[{ early: number, late: number }]} */ (await once(child, "message"));
    verdicts.push(judgeGrowth(`${name}, ${calls} calls ${where}`, { early, late, limit: 1024 * 1024 }));
  }
  return verdicts;
}

/** @type {import("./bench.js").Case} */
async function sickMember(name) {
  const percent = (/** @type {number} */ share) => `${(100 * share).toFixed(2)} %`;
  const runs = await callSickMembers();
  return runs.flatMap(({ sickness, failed, early, late }) => {
    const title = `${name}, one of three ${sickness}`;
    console.log(`\n${title}: 10,000 calls in 20 s, three attempts`);
    const shares = `${percent(late)}, of the first 10 s ${percent(early)}`;
    return [
      verdict(title, "no call fails", `${failed} failed`, failed === 0),
      verdict(title, "after 10 s it gets less than 2 % of the calls", shares, late < 0.02),
    ];
  });
}

await runBench(
  "bus",
  { "in-process": inProcess, "over-nats": overNats, memory, "sick-member": sickMember },
  { apart: true },
);
