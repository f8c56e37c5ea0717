// @ts-check
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { runBench } from "./bench.js";
import { createComparison } from "./interleave.js";
import { judgeExtra, printTable } from "./report.js";
import { createRandom, shuffled } from "./statistics.js";
import "./waybill.js";

const run = promisify(execFile);
const programs = {
  "bare node": "empty",
  waybill: "waybill",
  "oRPC + zod": "orpc-zod",
  "tRPC + zod": "trpc-zod",
};

/** @param {string} program @returns {Promise<number>} nanoseconds from start to exit */
async function timeStart(program) {
  const file = fileURLToPath(new URL(`./load/${program}.js`, import.meta.url));
  const started = process.hrtime.bigint();
  await run(process.execPath, [file]);
  return Number(process.hrtime.bigint() - started);
}

await runBench("load", {
  import: async (name, { quick }) => {
    const random = createRandom(20);
    const entries = Object.entries(programs);
    const samples = new Map(entries.map(([side]) => [side, /** @type {number[]} */ ([])]));
    for (const [, program] of entries) await timeStart(program);
    for (let round = 0; round < (quick ? 8 : 40); round++) {
      for (const [side, program] of shuffled(entries, random))
        samples.get(side)?.push(await timeStart(program));
    }
    const comparison = createComparison(samples);
    printTable(`${name} (a whole process, start to exit)`, comparison, "bare node");
    return [judgeExtra(name, comparison, { side: "waybill", base: "bare node", limit: 60e6 })];
  },
});
