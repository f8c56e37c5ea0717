// @ts-check
// Runs the official MCP conformance suites against the example server and against `fromMcp`: one line for each scenario.
// `node run.js [part of a line …]` runs only the scenarios whose "suite revision leg scenario" contains one of the parts. With `--fleet` the server is three
// of them behind a balancer, and clients are left out.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startExampleFleet } from "./example-fleet.js";
import { startExampleServer } from "./example-server.js";
import { EXPECTED } from "./expected.js";
import { listScenarios, runClientScenario, runServerScenarios, whyNot } from "./suites.js";

/** @import { Leg, Scenario, ScenarioRun } from "./suites.js" */
/** @typedef {{ leg: Leg, scenario: Scenario, key: string }} Job */

const IS_FLEET = process.argv.includes("--fleet");
const ALL_LEGS = /** @type {Leg[]} */ ([
  { suite: "0.1", revision: "2025-11-25", leg: "server" },
  { suite: "0.2", revision: "2025-11-25", leg: "server" },
  { suite: "0.2", revision: "2026-07-28", leg: "server" },
  { suite: "0.1", revision: "2025-11-25", leg: "client" },
  { suite: "0.2", revision: "2025-11-25", leg: "client" },
  { suite: "0.2", revision: "2026-07-28", leg: "client" },
]);
const LEGS = ALL_LEGS.filter(({ leg }) => !IS_FLEET || leg === "server");
const CLIENTS_AT_ONCE = 3;
/** Lines of output shown of a run that came to nothing. */
const OUTPUT_LINES = 30;

const reason = whyNot();
if (reason !== undefined) {
  console.log(`The MCP conformance suites did not run: ${reason.text}.`);
  process.exit(reason.isMistake ? 1 : 0);
}

const started = performance.now();
/** @type {string[]} */
const wrong = [];
const jobs = await listJobs(process.argv.slice(2).filter((part) => part !== "--fleet"));
const folder = mkdtempSync(join(tmpdir(), "waybill-conformance-"));
const fleet = IS_FLEET ? await startExampleFleet() : undefined;
const server = fleet ?? (await startExampleServer());
try {
  for (const [index, leg] of LEGS.entries()) {
    const wanted = jobs.filter((job) => job.leg === leg);
    const run = leg.leg === "server" ? runServers : runClients;
    if (wanted.length > 0) await run(leg, wanted, join(folder, String(index)));
  }
  if (fleet !== undefined) reportSpread(await fleet.counts());
} finally {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}

const seconds = Math.round((performance.now() - started) / 1_000);
const scored = jobs.filter(({ scenario }) => scenario.scored).length;
console.log(`\n${scored} scored and ${jobs.length - scored} unscored scenarios in ${seconds} s.`);
if (jobs.length === 0) wrong.push("nothing ran");
for (const line of wrong) console.log(`WRONG  ${line}`);
process.exitCode = wrong.length === 0 ? 0 : 1;

/** @param {string[]} parts @returns {Promise<Job[]>} */
async function listJobs(parts) {
  /** @type {Job[]} */
  const all = [];
  for (const leg of LEGS) {
    for (const scenario of await listScenarios(leg)) {
      all.push({ leg, scenario, key: `${leg.suite} ${leg.revision} ${leg.leg} ${scenario.name}` });
    }
  }
  for (const key of Object.keys(EXPECTED)) {
    if (!IS_FLEET && !all.some((job) => job.key === key))
      wrong.push(`${key}: expected to fail, but there is no such scenario`);
  }
  return all.filter(({ key }) => parts.length === 0 || parts.some((part) => key.includes(part)));
}

/** @param {Leg} leg @param {Job[]} wanted @param {string} output */
async function runServers(leg, wanted, output) {
  const findRun = await runServerScenarios(leg, server.url, output);
  for (const job of wanted) report(job, findRun(job.scenario.name));
}

/** @param {Leg} leg @param {Job[]} wanted @param {string} output */
async function runClients(leg, wanted, output) {
  const queue = wanted.entries();
  const work = async () => {
    for (const [index, job] of queue) {
      const folder = join(output, String(index));
      report(job, await runClientScenario(leg, job.scenario.name, "node client.js", folder));
    }
  };
  await Promise.all(Array.from({ length: CLIENTS_AT_ONCE }, work));
}

/** Whether a scenario has to pass: one that is scored, and those of tasks, which servers behind a balancer have to share. @param {Scenario} scenario */
function mustPass({ name, scored }) {
  return scored || (name.startsWith("tasks-") && fleet?.sharesTasks !== false);
}

/** @param {Job} job @param {ScenarioRun} run */
function report({ scenario, key }, run) {
  const count = (/** @type {string} */ status) =>
    run.checks.filter((check) => check.status === status).length;
  const failed = run.isBroken || count("FAILURE") > 0;
  const verdict = failed ? (mustPass(scenario) ? "FAIL" : "fail") : "pass";
  const counts = `${count("SUCCESS")} passed, ${count("FAILURE")} failed, ${count("WARNING")} warnings`;
  console.log(`${verdict}  ${key}: ${counts}${scenario.scored ? "" : " (not scored)"}`);
  for (const { status, name, errorMessage, description } of run.checks) {
    if (status !== "FAILURE" && status !== "WARNING") continue;
    console.log(`        ${status} ${name}: ${errorMessage ?? description}`);
  }
  if (run.isBroken) console.log(indent(run.output.trimEnd().split("\n").slice(-OUTPUT_LINES).join("\n")));
  if (failed && mustPass(scenario) && !Object.hasOwn(EXPECTED, key)) wrong.push(`${key} fails`);
  if (!failed && Object.hasOwn(EXPECTED, key)) wrong.push(`${key} passes; take it out of expected.js`);
}

/** Every server had something to do. @param {{ answered: readonly number[], retried: number }} counts */
function reportSpread({ answered, retried }) {
  console.log(`\nRequests by server: ${answered.join(", ")}; ${retried} went on to another one after a 503.`);
  if (Math.min(...answered) === 0) wrong.push("a server of the fleet was asked nothing");
}

/** @param {string} text */
function indent(text) {
  return text.replaceAll(/^/gm, "        ");
}
