// @ts-check
// Kills gateways and brokers of a fleet under load, and checks what its clients saw. HELP says how.
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { checkSummary, percent } from "./history.js";
import { runStorm } from "./storm.js";

const HELP = `Usage: npm run fleet [-- options]   (or: node test/fleet/run-fleet.js [options])

Starts three gateways, three brokers and a balancer, makes calls over HTTP and both kinds of MCP, and meanwhile kills a gateway every 5 s and a broker
every 30 s. What the clients saw is held against what the upstream ran. The progress goes to stderr. A table and what is wrong, as lines that begin
with FAULT, go to stdout; the exit code is 1 if there is one.

  --minutes <number>     how long things are killed (default 5)
  --in-flight <number>   calls in flight (default 200)
  --cli <path>           the command to test (default dist/cli.js, which npm run fleet builds)
  --history <path>       write the history there, one event on a line
  --help                 this

At least 95 % of the calls must succeed; of 0.1 % at most nobody may know what they did. Every call settles once, with its own answer; an acknowledged
order ran once, and none ran twice.`;

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "5" },
    "in-flight": { type: "string", default: "200" },
    cli: { type: "string" },
    history: { type: "string" },
    help: { type: "boolean" },
  },
});
if (values.help === true) {
  process.stdout.write(`${HELP}\n`);
  process.exit(0);
}
const minutes = Number(values.minutes);
const inFlight = Number(values["in-flight"]);
if (!(minutes > 0)) throw new TypeError("--minutes must be a number above 0.");
if (!(inFlight >= 1)) throw new TypeError("--in-flight must be a number from 1 on.");
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));

const startedAt = performance.now();
const say = (/** @type {string} */ text) =>
  process.stderr.write(`fleet: ${((performance.now() - startedAt) / 60_000).toFixed(1)} min: ${text}\n`);
const { events, summary, problems, kills, counts, newSessions } = await runStorm({
  seconds: minutes * 60,
  inFlight,
  say,
  ...(values.cli !== undefined && { cli: resolve(values.cli) }),
});
if (values.history !== undefined) {
  writeFileSync(values.history, events.map((event) => `${JSON.stringify(event)}\n`).join(""));
}
const {
  calls,
  succeeded,
  unknown,
  unknownOf,
  gaveUp,
  again,
  forgotten,
  keyed,
  failed,
  byVia,
  retried,
  medianMs,
  slowestMs,
} = summary;
const lines = [
  `calls                        ${calls} (${Math.round(calls / (minutes * 60))} a second), ${keyed} with a key`,
  `succeeded                    ${succeeded} (${percent(succeeded, calls)}), ${retried} of all tried more than once`,
  `not known what they did      ${unknown} (${percent(unknown, calls)})${Object.entries(unknownOf)
    .map(([via, [all, ran]]) => `, ${all} over ${via} of which ${ran} ran`)
    .join("")}`,
  `nobody was told              ${gaveUp} orders with a key`,
  `asked again at the end       ${again} acknowledged orders, ${forgotten} of them not known any more`,
  `failed                       ${
    Object.entries(failed)
      .map(([why, times]) => `${times} ${why}`)
      .join(", ") || "none"
  }`,
  `took                         ${medianMs} ms at the median, ${slowestMs} ms at most but for one of 10,000`,
  `killed                       ${kills.replicas} gateways, ${kills.brokers} brokers`,
  `the balancer                 ${counts.answered.join(", ")} answers by gateway, ${counts.cut} cut off, ${counts.refused} refused`,
  `sessions begun anew          ${newSessions}`,
  ...Object.entries(byVia).map(([name, [good, all]]) => `${name.padEnd(28)} ${good} of ${all} succeeded`),
];
process.stdout.write(`${lines.join("\n")}\n`);
const faults = [...problems.slice(0, 50), ...checkSummary(summary)];
for (const fault of faults) process.stdout.write(`FAULT  ${fault}\n`);
process.exitCode = faults.length === 0 ? 0 : 1;
