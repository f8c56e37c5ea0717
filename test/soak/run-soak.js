// @ts-check
// Keeps a gateway busy for a while, hurts what stands behind it, and looks for what should not be there afterwards. HELP says how.
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { findFaults, WARM_MINUTES, writeSummary } from "./soak-report.js";
import { Workload } from "./soak-workload.js";
import { openWorld } from "./soak-world.js";

const HELP = `Usage: npm run soak [-- options]   (or: node test/soak/run-soak.js [options])

Keeps a gateway busy with calls of every kind, some of them aborted or late, while its sources are killed one after the other. About every two minutes
it lets the gateway rest and writes down what it holds. The progress goes to stderr. A table and what is wrong, as lines that
begin with FAULT, go to stdout; the exit code is 1 if there is one.

  --minutes <number>     how long, rests included (default 60)
  --cli <path>           the command to test (default dist/cli.js, which npm run soak builds)
  --snapshots <folder>   write the heap there after ${WARM_MINUTES} minutes, or at the first rest of a shorter run, and at the last one:
                         node test/soak/compare-heaps.js <first> <last> shows what grew
  --help                 this

What is judged is the memory of objects that the program made: the heap without compiled code and what the engine notes about it. From half an hour
on, a line is fitted to it by least squares, over the samples after the first ${WARM_MINUTES} minutes. It is flat if the slope is under 1 MB an hour and
twice its standard error is too. A larger slope that is more than twice its standard error is growth; anything between is noise, and the run says
that it cannot tell. Both are faults.`;

/** Longest time between two rests. */
const PHASE_MS = 100_000;

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "60" },
    cli: { type: "string" },
    snapshots: { type: "string" },
    help: { type: "boolean" },
  },
});
if (values.help === true) {
  process.stdout.write(`${HELP}\n`);
  process.exit(0);
}
const minutes = Number(values.minutes);
if (!(minutes > 0)) throw new TypeError("--minutes must be a number above 0.");
const folder = values.snapshots && resolve(values.snapshots);
if (folder !== undefined) mkdirSync(folder, { recursive: true });

const startedAt = performance.now();
const elapsed = () => (performance.now() - startedAt) / 60_000;
const say = (/** @type {string} */ text) =>
  process.stderr.write(`soak: ${elapsed().toFixed(1)} min: ${text}\n`);
const world = await openWorld(values.cli && resolve(values.cli));
const workload = new Workload(world.url);
/** @type {import("./soak-world.js").Sample[]} */
const samples = [];
// The first phase warms everything up; what is looked at afterwards is what the others start from.
const phaseMs = Math.min(PHASE_MS, (minutes * 60_000) / 3);
let hasFirst = false;
try {
  for (let isLast = false; !isLast; ) {
    const until = performance.now() + phaseMs;
    const stop = workload.start();
    const hurting = world.hurt(until);
    while (performance.now() < until) {
      await sleep(Math.min(15_000, Math.max(1, until - performance.now())));
      say(`${workload.total} calls, ${workload.running} under way, ${world.kills} kills`);
    }
    await hurting;
    await stop();
    await world.mend();
    isLast = samples.length >= 2 && elapsed() >= minutes;
    /** @type {boolean} */
    const isFirst = !hasFirst && elapsed() >= Math.min(WARM_MINUTES, minutes / 3);
    hasFirst ||= isFirst;
    const name = isLast ? "last" : isFirst ? "first" : undefined;
    const snapshot = folder && name && join(folder, `${name}.heapsnapshot`);
    const sample = await world.look(samples[0], workload.total, snapshot);
    samples.push(sample);
    const { fds, objects, children } = sample;
    say(`at rest: ${fds} descriptors, ${children} processes, ${(objects / 1e6).toFixed(2)} MB of objects`);
  }
} finally {
  await workload.close();
}
const end = await world.close();
process.stdout.write(writeSummary({ workload, samples, end, kills: world.kills }));
const faults = findFaults({ workload, samples, end, kills: world.kills });
for (const fault of faults) process.stdout.write(`FAULT  ${fault}\n`);
process.exitCode = faults.length === 0 ? 0 : 1;
