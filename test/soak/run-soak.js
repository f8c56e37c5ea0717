// @ts-check
// Keeps a gateway busy for a while, hurts what stands behind it, and looks for what should not be there afterwards:
// `node test/soak/run-soak.js --minutes 10 [--cli dist/cli.js]`. Tells how it goes on stderr; a table and what is wrong on stdout.
import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { findFaults, writeSummary } from "./soak-report.js";
import { Workload } from "./soak-workload.js";
import { openWorld } from "./soak-world.js";

const { values } = parseArgs({ options: { minutes: { type: "string" }, cli: { type: "string" } } });
const minutes = Number(values.minutes ?? 10);
if (!(minutes > 0)) throw new TypeError("--minutes must be a number above 0.");

const say = (/** @type {string} */ text) => process.stderr.write(`soak: ${text}\n`);
const world = await openWorld(values.cli && resolve(values.cli));
const workload = new Workload(world.url);
/** @type {import("./soak-world.js").Sample[]} */
const samples = [];
try {
  // The first phase warms everything up; what is looked at afterwards is what the others start from.
  const phases = Math.max(3, Math.ceil(minutes) + 1);
  const phaseMs = (minutes * 60_000) / phases;
  for (let phase = 0; phase < phases; phase++) {
    const until = performance.now() + phaseMs;
    const stop = workload.start();
    const hurting = world.hurt(until);
    while (performance.now() < until) {
      await sleep(Math.min(5_000, Math.max(1, until - performance.now())));
      say(`phase ${phase + 1} of ${phases}: ${workload.total} calls, ${workload.running} under way`);
    }
    await hurting;
    await stop();
    await world.mend();
    samples.push(await world.look(samples[0], workload.total));
    const { fds, heapUsed, children } = /** @type {import("./soak-world.js").Sample} */ (samples.at(-1));
    say(`quiet: ${fds} descriptors, ${children} processes, ${(heapUsed / 1e6).toFixed(1)} MB`);
  }
} finally {
  await workload.close();
}
const end = await world.close();
process.stdout.write(writeSummary({ workload, samples, end, kills: world.kills }));
const faults = findFaults({ workload, samples, end, kills: world.kills });
for (const fault of faults) process.stdout.write(`FAULT  ${fault}\n`);
process.exitCode = faults.length === 0 ? 0 : 1;
