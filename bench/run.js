// @ts-check
import { runProcess, toFlags } from "./bench.js";
import { printMachine, readOptions } from "./options.js";

const BENCHES = [
  "call",
  "deadline",
  "input-errors",
  "registry-size",
  "load",
  "schema",
  "formats",
  "bus",
  "mcp",
  "openapi",
  "gateway",
  "state",
  "connections",
  "inspector",
];

const options = readOptions();
const wanted = BENCHES.filter(
  (bench) => options.only.length === 0 || options.only.some((name) => name.split("/")[0] === bench),
);
if (wanted.length === 0) {
  console.error(`No bench is called ${options.only.join(" or ")}. There are: ${BENCHES.join(", ")}.`);
  process.exit(2);
}

printMachine();
const verdicts = [];
for (const bench of wanted) {
  verdicts.push(...(await runProcess(new URL(`./${bench}.js`, import.meta.url), bench, toFlags(options))));
}

const lost = verdicts.filter(({ passed }) => !passed);
console.log(`\nSummary: ${verdicts.length - lost.length} of ${verdicts.length} targets met`);
for (const { bench, target, measured, passed } of verdicts) {
  console.log(`  ${passed ? "PASS     " : "LOST ****"}  ${bench}: ${target}: ${measured}`);
}
if (options.strict && lost.length > 0) process.exitCode = 1;
