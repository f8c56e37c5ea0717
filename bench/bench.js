// @ts-check
import { fork } from "node:child_process";
import { once } from "node:events";
import { isWanted, printMachine, readOptions } from "./options.js";

/** @typedef {import("./options.js").BenchOptions} BenchOptions */
/** @typedef {import("./report.js").Verdict} Verdict */
/** @typedef {(name: string, options: BenchOptions) => Promise<readonly Verdict[]>} Case */

/**
 * Runs a bench in a process of its own, so that what one leaves behind does not slow the next; a bench that
 * breaks off counts as lost and fails the whole run.
 * @param {string | URL} file
 * @param {string} name
 * @param {readonly string[]} flags
 * @returns {Promise<readonly Verdict[]>}
 */
export async function runProcess(file, name, flags) {
  const child = fork(file, flags);
  /** @type {readonly Verdict[] | undefined} */
  let verdicts;
  child.on("message", (message) => {
    verdicts = /** @type {readonly Verdict[]} */ (message);
  });
  const [code] = await once(child, "exit");
  if (code !== 0) process.exitCode = 1;
  return verdicts ?? [{ bench: name, target: "runs to the end", measured: "it broke off", passed: false }];
}

/**
 * Turns options back into flags, for another process.
 * @param {BenchOptions} options
 */
export function toFlags({ quick, strict, only }) {
  return [
    ...(quick ? ["--quick"] : []),
    ...(strict ? ["--strict"] : []),
    ...only.flatMap((name) => ["--only", name]),
  ];
}

/**
 * Runs the wanted cases of one bench, hands the verdicts to the process that started it, if any, and sets
 * the exit code. Cases that share code whose speed depends on what it saw before ask to be kept apart.
 * @param {string} bench
 * @param {Readonly<Record<string, Case>>} cases
 * @param {{ apart?: boolean }} [settings]
 */
export async function runBench(bench, cases, { apart = false } = {}) {
  const options = readOptions();
  if (process.send === undefined) printMachine();
  const wanted = Object.entries(cases)
    .map(([key, runCase]) => ({ name: `${bench}/${key}`, runCase }))
    .filter(({ name }) => isWanted(name, options));
  const verdicts = [];
  for (const { name, runCase } of wanted) {
    const elsewhere = apart && wanted.length > 1;
    const flags = toFlags({ ...options, only: [name] });
    verdicts.push(
      ...(await (elsewhere ? runProcess(process.argv[1] ?? "", name, flags) : runCase(name, options))),
    );
  }
  process.send?.(verdicts);
  if (options.strict && verdicts.some(({ passed }) => !passed)) process.exitCode = 1;
  process.disconnect?.();
}
