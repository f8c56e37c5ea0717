// @ts-check
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * Writes THIRD-PARTY-NOTICES, the licences of all code of others that the build copies into `dist`.
 * Usage: node scripts/third-party-notices.js
 */
const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** The packages that tsdown copies into `dist`; the build fails on any other. docs/dependencies.md says why. */
export const BUNDLED = [
  "@clack/core",
  "@clack/prompts",
  "@scalar/helpers",
  "@scalar/openapi-upgrader",
  "commander",
  "fast-string-truncated-width",
  "fast-string-width",
  "fast-wrap-ansi",
  "minisearch",
  "picocolors",
  "re2js",
  "sisteransi",
  "smol-toml",
  "stemmer",
  "tokenx",
  "typebox",
];

/** The packages that vite copies into the page of the inspector. */
const IN_THE_PAGE = ["preact"];

const INTRODUCTION = `Waybill's package contains code of the following packages, under their licences.
`;

/** The text of THIRD-PARTY-NOTICES for the packages as they are installed. */
export function thirdPartyNotices() {
  const notices = [...BUNDLED, ...IN_THE_PAGE].sort().map((name) => {
    const folder = join(ROOT, "node_modules", name);
    const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    return `${"=".repeat(80)}\n${name} ${version} (${license})\n\n${licenceText(folder)}\n`;
  });
  return [INTRODUCTION, ...notices].join("\n");
}

/** @param {string} folder */
function licenceText(folder) {
  for (const name of ["LICENSE", "LICENSE.txt", "license"]) {
    try {
      return readFileSync(join(folder, name), "utf8").replaceAll("\r\n", "\n").trim();
    } catch {}
  }
  throw new Error(`${folder} has no file LICENSE: find out under which licence its code may be copied.`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(join(ROOT, "THIRD-PARTY-NOTICES"), thirdPartyNotices());
}
