// @ts-check
import { readFileSync, writeFileSync } from "node:fs";

/**
 * Adds to a lock file the builds for other platforms that a registry mirror does not offer.
 *
 * npm leaves an optional package out of the lock file when it cannot be fetched, and `npm ci` then refuses the whole
 * file, also where that package would not be installed. And takes the versions of Node out that packages ask for which are built
 * into ours, for Node 20 and tested there: `npm ci` would warn of each. Usage: node scripts/complete-lock-file.js [package-lock.json]
 */
const file = process.argv[2] ?? "package-lock.json";
const lock = JSON.parse(readFileSync(file, "utf8"));

const PLATFORM =
  /(?:^|[-/])(android|darwin|freebsd|linux|openharmony|win32)-(arm64|arm|ia32|ppc64|riscv64|s390x|x64)(?:-(\w+))?$/;

/** @param {string} name */
function platformOf(name) {
  if (/wasm32/.test(name)) return { cpu: ["wasm32"] };
  const [, os, cpu, abi = ""] = PLATFORM.exec(name) ?? [];
  if (os === undefined)
    throw new Error(`Cannot tell which platform ${name} is for; add it to the lock file by hand.`);
  const libc = os !== "linux" ? {} : { libc: [abi.startsWith("musl") ? "musl" : "glibc"] };
  return { cpu: [cpu], os: [os], ...libc };
}

/**
 * Where Node would find a package from another one, if the lock file has it.
 * @param {string} from
 * @param {string} name
 */
function find(from, name) {
  for (
    let folder = from;
    ;
    folder = folder.slice(0, folder.lastIndexOf("node_modules/")).replace(/\/$/, "")
  ) {
    const path = `${folder}${folder === "" ? "" : "/"}node_modules/${name}`;
    if (Object.hasOwn(lock.packages, path)) return path;
    if (folder === "") return undefined;
  }
}

const added = [];
for (const [from, { optionalDependencies = {}, dev }] of Object.entries(lock.packages)) {
  for (const [name, version] of Object.entries(optionalDependencies)) {
    const found = find(from, name);
    const exact = /^\d/.test(version);
    if (found !== undefined && (!exact || lock.packages[found].version === version)) continue;
    const path = found === undefined ? `node_modules/${name}` : `${from}/node_modules/${name}`;
    lock.packages[path] = { version, ...platformOf(name), ...(dev && { dev }), optional: true };
    added.push(`${path} ${version}`);
  }
}

/** Packages whose code is copied into `dist`. */
const BUILT_IN = /^node_modules\/@scalar\/[^/]+$/;
for (const [path, entry] of Object.entries(lock.packages)) if (BUILT_IN.test(path)) delete entry.engines;

const byPath = Object.entries(lock.packages).sort(([a], [b]) => a.localeCompare(b, "en"));
lock.packages = Object.fromEntries(byPath);
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
console.log(added.length === 0 ? "The lock file is complete." : `Added:\n${added.join("\n")}`);
