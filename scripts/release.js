// @ts-check
// Releases a version: `npm run release -- [version] [--dry-run]`. CONTRIBUTING.md says how versions are chosen.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";

const HELP = `Releases a version from the folder it runs in: changelog, version, package checks, tag and tarball.

  npm run release -- [version] [--dry-run]

  version    for example 0.2.0 or 1.0.0-rc.1; the one in package.json when it is not given
  --dry-run  checks everything, shows every step, and changes nothing
  --help     this text

It publishes nothing: it ends with the two commands that do.
`;

/** https://semver.org, without build metadata, which npm leaves out of what it compares. */
const VERSION = /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?$/;
const UNRELEASED = "## [Unreleased]";

/** What keeps a release from being made, for people. */
class Refusal extends Error {}

/** @param {string} command @param {readonly string[]} args @returns {string} */
function output(command, args) {
  return execFileSync(command, args, { encoding: "utf8" }).trim();
}

/** @param {string} path @returns {{ version?: string, packages?: Record<string, { version?: string }> }} */
function readJson(path) {
  return JSON.parse(readFileSync(path, "utf8"));
}

/** The text below `## [Unreleased]`, up to the next version. @param {string} changelog @returns {string | undefined} */
function unreleasedOf(changelog) {
  const start = changelog.indexOf(`${UNRELEASED}\n`);
  if (start === -1) return undefined;
  const rest = changelog.slice(start + UNRELEASED.length);
  const next = rest.search(/^## /m);
  return next === -1 ? rest : rest.slice(0, next);
}

/** Compares two versions as semver does. @param {string} a @param {string} b @returns {number} below 0 when `a` comes before `b` */
function compareVersions(a, b) {
  const [left, right] = [VERSION.exec(a) ?? [], VERSION.exec(b) ?? []];
  for (const at of [1, 2, 3]) {
    const difference = Number(left[at]) - Number(right[at]);
    if (difference !== 0) return difference;
  }
  const [before, after] = [left[4], right[4]];
  if (before === undefined || after === undefined)
    return Number(after !== undefined) - Number(before !== undefined);
  return comparePreReleases(before.split("."), after.split("."));
}

/** @param {readonly string[]} a @param {readonly string[]} b @returns {number} */
function comparePreReleases(a, b) {
  for (const [at, part] of a.entries()) {
    const other = b[at];
    if (other === undefined) return 1;
    if (part === other) continue;
    const [isNumber, isOtherNumber] = [/^\d+$/.test(part), /^\d+$/.test(other)];
    if (isNumber && isOtherNumber) return Number(part) - Number(other);
    if (isNumber !== isOtherNumber) return isNumber ? -1 : 1;
    return part < other ? -1 : 1;
  }
  return a.length - b.length;
}

/** What is wrong with releasing this version from here, each as a sentence that says what to do. @param {string} version @returns {readonly string[]} */
function faultsOf(version) {
  const faults = [];
  const branch = output("git", ["rev-parse", "--abbrev-ref", "HEAD"]);
  if (branch !== "main") faults.push(`The branch is ${branch}: releases are made on main.`);
  const changed = output("git", ["status", "--porcelain"]).split("\n").filter(Boolean);
  if (changed.length === 1) faults.push("1 file is not committed: commit or stash it.");
  if (changed.length > 1) faults.push(`${changed.length} files are not committed: commit or stash them.`);
  const entries = unreleasedOf(readFileSync("CHANGELOG.md", "utf8"));
  if (entries === undefined) faults.push(`CHANGELOG.md has no line "${UNRELEASED}".`);
  else if (!/^- /m.test(entries))
    faults.push(`CHANGELOG.md has no entries under "${UNRELEASED}": write what users will notice.`);
  return [...faults, ...versionFaults(version)];
}

/** @param {string} version @returns {readonly string[]} */
function versionFaults(version) {
  if (!VERSION.test(version)) return [`"${version}" is not a version: give one such as 0.2.0 or 1.0.0-rc.1.`];
  const tags = output("git", ["tag", "--list", "v*"]).split("\n");
  const released = tags
    .map((tag) => tag.slice(1))
    .filter((tag) => VERSION.test(tag))
    .sort(compareVersions);
  const latest = released.at(-1);
  if (released.includes(version))
    return [`${version} is released already, as the tag v${version} says: give a newer version.`];
  if (latest !== undefined && compareVersions(version, latest) < 0) {
    return [`${version} comes before ${latest}, which is released: give a newer version.`];
  }
  return readFileSync("CHANGELOG.md", "utf8").includes(`## [${version}]`)
    ? [`CHANGELOG.md has a section for ${version} already: give a newer version.`]
    : [];
}

/**
 * One step of a release.
 * @typedef {object} Step
 * @property {string} what
 * @property {() => void} run
 */

/** @param {string} command @param {readonly string[]} args @returns {Step} */
function command(command, ...args) {
  const what = [command, ...args.map((arg) => (/[^\w@./:=-]/.test(arg) ? JSON.stringify(arg) : arg))].join(
    " ",
  );
  return { what, run: () => void execFileSync(command, args, { stdio: "inherit" }) };
}

/** @param {string} path @param {string} what @param {(text: string) => string} change @returns {Step} */
function edit(path, what, change) {
  return { what: `${path}: ${what}`, run: () => writeFileSync(path, change(readFileSync(path, "utf8"))) };
}

/** Files that say which version this is, and nothing about other versions. */
const VERSIONED = ["src/core/package-version.ts", "README.md", "docs/getting-started.md"];
/** Files that a release changes, and puts back when a check fails. */
const CHANGED = ["CHANGELOG.md", "package.json", "package-lock.json", ...VERSIONED];

/** @param {string} version @param {string} date @returns {{ edits: readonly Step[], checks: readonly Step[], ends: readonly Step[] }} */
function stepsOf(version, date) {
  const setVersion = (/** @type {string} */ text) => {
    const json = JSON.parse(text);
    json.version = version;
    if (json.packages?.[""] !== undefined) json.packages[""].version = version;
    return `${JSON.stringify(json, null, 2)}\n`;
  };
  const before = readJson("package.json").version ?? version;
  const manifests = CHANGED.filter((path) => path.endsWith(".json") && existsSync(path));
  return {
    edits: [
      edit("CHANGELOG.md", `what is unreleased becomes ${version}, ${date}`, (text) =>
        text.replace(UNRELEASED, () => `${UNRELEASED}\n\n## [${version}] - ${date}`),
      ),
      ...manifests
        .filter((path) => readJson(path).version !== version)
        .map((path) => edit(path, `version ${version}`, setVersion)),
      ...VERSIONED.filter((path) => existsSync(path) && before !== version).map((path) =>
        edit(path, `version ${version}`, (text) => text.replaceAll(before, () => version)),
      ),
    ],
    checks: [command("npm", "run", "--silent", "check:package"), command("npm", "pack", "--ignore-scripts")],
    ends: [
      command("git", "commit", "--all", "--message", `chore(release): ${version}`),
      command("git", "tag", "--annotate", `v${version}`, "--message", `Version ${version}`),
    ],
  };
}

/** Runs the steps, and leaves the files as they were when a check fails. @param {ReturnType<typeof stepsOf>} steps */
function release({ edits, checks, ends }) {
  const before = CHANGED.filter((path) => existsSync(path)).map((path) => [path, readFileSync(path, "utf8")]);
  for (const step of edits) show(step).run();
  try {
    for (const step of checks) show(step).run();
  } catch {
    for (const [path = "", text = ""] of before) writeFileSync(path, text);
    throw new Refusal("A check failed, so nothing was released. The files are as they were.");
  }
  for (const step of ends) show(step).run();
}

/** @param {Step} step */
function show(step) {
  console.log(`- ${step.what}`);
  return step;
}

/** @param {readonly string[]} args */
function main(args) {
  const flags = args.filter((arg) => arg.startsWith("-"));
  const versions = args.filter((arg) => !arg.startsWith("-"));
  if (flags.includes("--help")) return void process.stdout.write(HELP);
  const unknown = flags.find((flag) => flag !== "--dry-run") ?? versions[1];
  if (unknown !== undefined)
    throw new Refusal(`There is no argument ${unknown}: npm run release -- --help lists them.`);
  if (!existsSync(".git") || !existsSync("CHANGELOG.md"))
    throw new Refusal("Run this in the root of the repository.");
  const version = versions[0] ?? readJson("package.json").version ?? "";
  const isDry = flags.includes("--dry-run");
  const faults = faultsOf(version);
  const steps = stepsOf(version, new Date().toISOString().slice(0, 10));
  if (isDry) {
    console.log(`A release of ${version} would do this:`);
    for (const step of Object.values(steps).flat()) show(step);
  }
  if (faults.length > 0)
    throw new Refusal(`${version} cannot be released.\n${faults.map((fault) => `- ${fault}`).join("\n")}`);
  if (isDry) return void console.log("All checks of the repository passed. Nothing was changed.");
  release(steps);
  console.log(
    `Released ${version} here. To publish it: git push --follow-tags && npm publish waybill-${version}.tgz`,
  );
}

try {
  main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof Refusal)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
