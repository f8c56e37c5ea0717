// @ts-check
import { readFileSync } from "node:fs";
import ts from "typescript";

/**
 * Run after a mutation run: says, for every requirement that is not pending, how many mutants its citing
 * tests killed. A requirement whose tests kill nothing is not proven by them, and fails the run.
 */
const source = readFileSync(new URL("requirements.ts", import.meta.url), "utf8");
const script = ts.transpileModule(source, { compilerOptions: { module: ts.ModuleKind.ESNext } }).outputText;
const { REQUIREMENTS, PENDING } = await import(`data:text/javascript,${encodeURIComponent(script)}`);

const report = JSON.parse(
  readFileSync(new URL("../reports/mutation/mutation.json", import.meta.url), "utf8"),
);
/** @type {Map<string, string>} */
const titles = new Map();
for (const { tests } of Object.values(report.testFiles)) {
  for (const { id, name } of tests) titles.set(id, name);
}

/** @type {Map<string, number>} */
const kills = new Map();
for (const { mutants } of Object.values(report.files)) {
  for (const { killedBy = [] } of mutants) {
    const cited = killedBy.flatMap(
      (/** @type {string} */ id) => titles.get(id)?.match(/\b[A-Z]+-\d+\b/g) ?? [],
    );
    for (const id of new Set(cited)) kills.set(id, (kills.get(id) ?? 0) + 1);
  }
}

const due = Object.keys(REQUIREMENTS).filter((id) => !PENDING.includes(id));
for (const id of due)
  console.log(`${id.padEnd(6)}${String(kills.get(id) ?? 0).padStart(6)}  ${REQUIREMENTS[id]}`);
const unproven = due.filter((id) => !kills.has(id));
if (unproven.length > 0) {
  console.error(`No mutant turned a test red that cites: ${unproven.join(", ")}.`);
  process.exitCode = 1;
}
