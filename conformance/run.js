// @ts-check
// Runs the official MCP conformance suites against the example server and against `fromMcp`: one line for each scenario.
// `node run.js [part of a line …]` runs only the scenarios whose "suite revision leg scenario" contains one of the parts.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startExampleServer } from "./example-server.js";
import { EXPECTED } from "./expected.js";
import { listScenarios, runClientScenario, runServerScenarios, whyNot } from "./suites.js";

/** @import { Leg, Scenario, ScenarioRun } from "./suites.js" */
/** @typedef {{ leg: Leg, scenario: Scenario, key: string }} Job */

const LEGS = /** @type {Leg[]} */ ([
  { suite: "0.1", revision: "2025-11-25", leg: "server" },
  { suite: "0.2", revision: "2025-11-25", leg: "server" },
  { suite: "0.2", revision: "2026-07-28", leg: "server" },
  { suite: "0.1", revision: "2025-11-25", leg: "client" },
  { suite: "0.2", revision: "2025-11-25", leg: "client" },
  { suite: "0.2", revision: "2026-07-28", leg: "client" },
]);
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
const jobs = await listJobs(process.argv.slice(2));
const folder = mkdtempSync(join(tmpdir(), "waybill-conformance-"));
const server = await startExampleServer();
try {
  for (const [index, leg] of LEGS.entries()) {
    const wanted = jobs.filter((job) => job.leg === leg);
    const run = leg.leg === "server" ? runServers : runClients;
    if (wanted.length > 0) await run(leg, wanted, join(folder, String(index)));
  }
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
    if (!all.some((job) => job.key === key))
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

/** @param {Job} job @param {ScenarioRun} run */
function report({ scenario, key }, run) {
  const count = (/** @type {string} */ status) =>
    run.checks.filter((check) => check.status === status).length;
  const failed = run.isBroken || count("FAILURE") > 0;
  const verdict = failed ? (scenario.scored ? "FAIL" : "fail") : "pass";
  const counts = `${count("SUCCESS")} passed, ${count("FAILURE")} failed, ${count("WARNING")} warnings`;
  console.log(`${verdict}  ${key}: ${counts}${scenario.scored ? "" : " (not scored)"}`);
  for (const { status, name, errorMessage, description } of run.checks) {
    if (status !== "FAILURE" && status !== "WARNING") continue;
    console.log(`        ${status} ${name}: ${errorMessage ?? description}`);
  }
  if (run.isBroken) console.log(indent(run.output.trimEnd().split("\n").slice(-OUTPUT_LINES).join("\n")));
  if (failed && scenario.scored && !Object.hasOwn(EXPECTED, key)) wrong.push(`${key} fails`);
  if (!failed && Object.hasOwn(EXPECTED, key)) wrong.push(`${key} passes; take it out of expected.js`);
}

/** @param {string} text */
function indent(text) {
  return text.replaceAll(/^/gm, "        ");
}
