// @ts-check
// Runs the tests: `npm test` before a commit, `npm test -- <pattern>` for some, `npm run test:all` for everything.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * One part of a run.
 * @typedef {object} Part
 * @property {string} name
 * @property {readonly (readonly string[])[]} steps Commands, one after the other; the first that fails ends the part.
 * @property {Readonly<Record<string, string>>} [env] Added to the environment.
 * @property {string} [missing] Why the part cannot run here. With `CI=true` that is a failure.
 */
/** @typedef {{ name: string, seconds: number, code: number, missing?: string, passed?: number, failed?: number, skipped?: number }} Outcome */

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const REPORTS = join(ROOT, "reports/test");
const OUTCOMES = join(REPORTS, "outcomes.json");

const HELP = `Usage: npm test [-- <pattern…> [vitest options]]   npm run test:all   npm run test:rest

  npm test                what to run before a commit: format, lint, unused code, types, and every test that runs in this process
  npm test -- <pattern>   the tests whose file contains the pattern, wherever they run; -t '<title>' for some of those
  npm run test:all        everything: also brokers, browsers, processes, the installed package, faults, hardened flags, other Nodes,
                          conformance, public documents, generated clients, package checks
  npm run test:rest       test:all without what npm test has run

  WAYBILL_RUNS=50         tries random cases 50 times as often as test:all does; npm test does a tenth
  CI=true                 a missing broker, browser or Python is a failure`;

/** @param {string[]} args @returns {string[]} */
const node = (...args) => [process.execPath, ...args];
/** @param {string} name @param {string[]} args */
const bin = (name, ...args) => node(join("node_modules", name), ...args);
/** @param {string[]} args */
const vitest = (...args) => bin("vitest/vitest.mjs", "run", ...args);
/** @param {string[]} args */
const npm = (...args) => ["npm", ...args];
/** @param {string} folder */
const install = (folder) => npm("--prefix", folder, "ci", "--ignore-scripts");

const SMALL = { WAYBILL_RUNS: process.env["WAYBILL_RUNS"] ?? "0.1" };
const LARGE = { WAYBILL_RUNS: process.env["WAYBILL_RUNS"] ?? "1" };

/** Those of `unit`, and those that need a process of their own. */
const UNIT = ["--project", "unit*"];

/** Stages run one after the other. The lanes of a stage run side by side, the parts of a lane one after the other. */
const TEST = /** @type {Part[][][]} */ ([
  [
    [{ name: "unit tests", steps: [vitest(...UNIT)], env: SMALL }],
    [
      {
        name: "format, lint, unused code, types",
        steps: [
          bin("@biomejs/biome/bin/biome", "ci", "--error-on-warnings"),
          bin("knip/bin/knip.js"),
          bin("typescript/bin/tsc", "--noEmit"),
        ],
      },
    ],
  ],
]);

const EDGES = ["processes", "brokers", "installed"].flatMap((name) => ["--project", name]);
/** They wait for processes most of the time. */
const WAITING = { ...LARGE, WAYBILL_TEST_WORKERS: "3" };

/** What waits for processes, brokers and pages leaves the processors to the lane beside it. */
const REST = /** @type {Part[][][]} */ ([
  [[{ name: "package checks", steps: [npm("run", "--silent", "check:package")] }]],
  [
    [
      {
        name: "processes, brokers, browsers, installed package",
        steps: [vitest(...EDGES, "--project", "browsers")],
        env: WAITING,
      },
      {
        name: "processes, brokers, installed package, hardened",
        steps: [vitest("--mode", "hardened", ...EDGES)],
        env: WAITING,
      },
    ],
    [
      {
        name: "unit tests, hardened, many runs",
        steps: [vitest("--mode", "hardened", ...UNIT)],
        env: LARGE,
      },
      otherNode(22),
      otherNode(24),
    ],
  ],
  [[{ name: "faults", steps: [vitest("--project", "faults")], env: LARGE }]],
  [
    [
      {
        name: "faults, hardened",
        steps: [vitest("--mode", "hardened", "--project", "faults")],
        env: SMALL,
      },
    ],
  ],
  [
    [
      {
        name: "MCP conformance",
        steps: [
          install("conformance"),
          node("conformance/run.js"),
          node("conformance/run.js", "--fleet"),
          node("conformance/inspector.js"),
          node("conformance/gateway-inspector.js"),
        ],
      },
    ],
    [
      { name: "public documents", steps: [install("documents"), node("documents/run.js")] },
      { name: "generated clients", steps: [install("clients"), node("clients/run.js")] },
    ],
  ],
]);

/** @param {22 | 24} version @returns {Part} */
function otherNode(version) {
  const name = `unit tests on Node ${version}`;
  const folder = "test/other-nodes";
  const binary = `${folder}/node_modules/node-${version}/bin/node`;
  if (process.platform !== "linux" || process.arch !== "x64") {
    return { name, steps: [], missing: `test/other-nodes has Node ${version} for Linux on x64 only` };
  }
  const run = [join(ROOT, binary), "node_modules/vitest/vitest.mjs", "run", ...UNIT];
  return { name, steps: [install(folder), run], env: SMALL };
}

/** @param {Part} part @param {boolean} live Whether its output is shown as it comes. @returns {Promise<Outcome>} */
async function runPart(part, live) {
  const { name, steps, env, missing } = part;
  const started = performance.now();
  const counts = join(REPORTS, `${name.replaceAll(/[^a-z0-9]+/gi, "-")}.json`);
  rmSync(counts, { force: true });
  console.log(`\n=== ${name}${live ? "" : " (shown when it is done)"}`);
  let [code, output] = [0, ""];
  if (missing !== undefined) {
    console.log(`Not run: ${missing}.`);
    code = process.env["CI"] === "true" ? 1 : 0;
  }
  for (const step of steps) {
    const ran = await runStep(step, { ...env, WAYBILL_TEST_COUNTS: counts }, live);
    code = ran.code;
    output += ran.output;
    if (code !== 0) break;
  }
  const seconds = (performance.now() - started) / 1_000;
  if (!live) console.log(`\n=== ${name}: ${code === 0 ? "passed" : "FAILED"}\n${output.trimEnd()}`);
  const counted = existsSync(counts) ? JSON.parse(readFileSync(counts, "utf8")) : {};
  return { name, seconds, code, ...(missing === undefined ? {} : { missing }), ...counted };
}

/**
 * @param {readonly string[]} command @param {Readonly<Record<string, string>>} env @param {boolean} live
 * @returns {Promise<{ code: number, output: string }>}
 */
function runStep([command = "", ...args], env, live) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: ROOT,
      env: { ...process.env, ...env },
      stdio: ["ignore", live ? "inherit" : "pipe", live ? "inherit" : "pipe"],
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text) => {
        output += text;
      });
    }
    child.on("error", reject);
    child.on("close", (code) => resolve({ code: code ?? 1, output }));
  });
}

/** @param {readonly Part[][][]} stages @param {readonly Outcome[]} before @returns {Promise<number>} */
async function runStages(stages, before) {
  const outcomes = [...before];
  for (const lanes of stages) {
    const ended = lanes.map(async (parts, lane) => {
      for (const part of parts) outcomes.push(await runPart(part, lane === 0));
    });
    await Promise.all(ended);
  }
  mkdirSync(REPORTS, { recursive: true });
  writeFileSync(OUTCOMES, JSON.stringify(outcomes));
  printTable(outcomes);
  return outcomes.slice(before.length).some(({ code }) => code !== 0) ? 1 : 0;
}

/** @param {readonly Outcome[]} outcomes */
function printTable(outcomes) {
  const width = Math.max(...outcomes.map(({ name }) => name.length));
  console.log(`\n${"part".padEnd(width)}   time    passed  failed  skipped`);
  for (const { name, seconds, code, missing, passed, failed, skipped } of outcomes) {
    const time = `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`.padStart(
      6,
    );
    const counts = [passed, failed, skipped].map((count) => String(count ?? "").padStart(7)).join(" ");
    const end = missing !== undefined ? `not run: ${missing}` : code === 0 ? "" : "FAILED";
    console.log(`${name.padEnd(width)} ${time} ${counts}  ${end}`.trimEnd());
  }
  /** @param {"passed" | "failed" | "skipped"} key */
  const sum = (key) => outcomes.reduce((total, outcome) => total + (outcome[key] ?? 0), 0);
  console.log(`\n${sum("passed")} passed, ${sum("failed")} failed, ${sum("skipped")} skipped`);
}

/** @returns {readonly Outcome[]} What `npm test` did just before, for the table at the end. */
function readOutcomes() {
  const names = new Set(TEST.flat(2).map(({ name }) => name));
  /** @type {Outcome[]} */
  const outcomes = existsSync(OUTCOMES) ? JSON.parse(readFileSync(OUTCOMES, "utf8")) : [];
  return outcomes.filter(({ name }) => names.has(name));
}

/** @param {readonly string[]} args @returns {Promise<number>} */
async function main([first, ...others]) {
  if (first === "--help" || first === "-h") {
    console.log(HELP);
    return 0;
  }
  if (process.platform !== "linux") {
    console.log(
      `Tested on Linux; what is known of ${process.platform} is in CONTRIBUTING.md, under "Platforms".`,
    );
  }
  if (first === "--all") return runStages([...TEST, ...REST], []);
  if (first === "--rest") return runStages(REST, readOutcomes());
  if (first === undefined) return runStages(TEST, []);
  return (await runStep(vitest(first, ...others), SMALL, true)).code;
}

process.exitCode = await main(process.argv.slice(2));
