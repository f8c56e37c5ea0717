import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Reporter, TestCase, TestModule } from "vitest/node";

/** How many skipped tests are listed by name. */
const LISTED = 40;

/** Says at the end what was skipped and why, and how to repeat what failed; writes the counts down for whoever started the run. */
export class WhatToDoReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const failed = tests.filter((test) => test.result().state === "failed");
    const skipped = tests.filter((test) => test.result().state === "skipped");
    const broken = modules.filter((module) => module.errors().length > 0);
    const more = skipped.length > LISTED ? [`  … and ${skipped.length - LISTED} more`] : [];
    if (skipped.length > 0)
      console.log(["Skipped:", ...skipped.slice(0, LISTED).map(skipLine), ...more].join("\n"));
    if (failed.length + broken.length > 0) console.log(advice(failed, broken));
    writeCounts({
      passed: tests.filter((test) => test.result().state === "passed").length,
      failed: failed.length + broken.length,
      skipped: skipped.length,
    });
  }
}

function skipLine(test: TestCase): string {
  const result = test.result();
  const note = result.state === "skipped" && result.note !== undefined ? `: ${result.note}` : "";
  return `  ${test.module.relativeModuleId} > ${test.fullName}${note}`;
}

/** Failed tests that get a command of their own: the first ones matter most, and the last lines are what one reads. */
const MOST_ADVISED = 10;

function advice(failed: readonly TestCase[], broken: readonly TestModule[]): string {
  const lines = ["What to do:"];
  for (const module of broken) {
    lines.push(`  ${module.relativeModuleId} failed outside of its tests; the reason is above. Alone:`);
    lines.push(`    npm test -- ${module.relativeModuleId}`);
  }
  for (const test of failed.slice(0, MOST_ADVISED)) {
    lines.push(`  Run "${test.fullName}" alone:`);
    lines.push(`    npm test -- ${test.module.relativeModuleId} -t ${shellQuoted(test.name)}`);
  }
  const rest = new Set(failed.slice(MOST_ADVISED).map(({ module }) => module.relativeModuleId));
  if (rest.size > 0) lines.push(`  ${failed.length - MOST_ADVISED} more failed, in ${[...rest].join(", ")}.`);
  lines.push(
    "  A property that failed prints its seed and path: repeat it with fc.assert(…, { seed, path }).",
  );
  lines.push("  Where a test belongs, and what it may rely on: CONTRIBUTING.md.");
  return lines.join("\n");
}

/** Vitest reads what follows `-t` as a pattern. */
function shellQuoted(title: string): string {
  return `'${title.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&").replaceAll("'", "'\\''")}'`;
}

function writeCounts(counts: Readonly<Record<"passed" | "failed" | "skipped", number>>): void {
  const file = process.env["WAYBILL_TEST_COUNTS"];
  if (file === undefined) return;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, JSON.stringify(counts));
}
