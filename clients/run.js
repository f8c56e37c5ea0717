// @ts-check
// Generates typed clients from a served document, compiles programs that use them, and runs those against the server.
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { createClient } from "@hey-api/openapi-ts";
import openapiTS, { astToString } from "openapi-typescript";
import { generate } from "orval";
import { createResultFormat } from "../dist/formats.js";
import { serveHttp } from "../dist/openapi.js";
import { registry } from "./operations.js";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const GENERATED = `${HERE}generated`;
const DOCUMENT = `${GENERATED}/document.json`;

const formats = [createResultFormat("tool-envelope"), createResultFormat("status-envelope")];
const server = await serveHttp(registry, { formats });
try {
  rmSync(GENERATED, { recursive: true, force: true });
  mkdirSync(GENERATED);
  const document = await (await fetch(`${server.url}/openapi.json`)).json();
  writeFileSync(DOCUMENT, JSON.stringify(document));
  writeFileSync(`${GENERATED}/openapi-typescript.ts`, astToString(await openapiTS(document)));
  const baseUrl = { getBaseUrlFromSpecification: /** @type {const} */ (true) };
  const output = { target: `${GENERATED}/orval.ts`, client: /** @type {const} */ ("fetch"), baseUrl };
  await generate({ input: { target: DOCUMENT }, output });
  await createClient({ input: DOCUMENT, output: `${GENERATED}/hey-api`, logs: { level: "warn" } });
  run("typescript/bin/tsc", [
    ...["--strict", "--target", "es2022", "--module", "nodenext", "--skipLibCheck", "--types", "node"],
    ...["--typeRoots", `${HERE}../node_modules/@types`, "--rewriteRelativeImportExtensions"],
    ...["--rootDir", HERE, "--outDir", `${GENERATED}/js`],
    ...readdirSync(`${HERE}programs`).map((name) => `${HERE}programs/${name}`),
  ]);
  for (const name of readdirSync(`${HERE}programs`)) {
    await runProgram(`${GENERATED}/js/programs/${name.replace(/\.ts$/, ".js")}`, document.servers[0].url);
    console.log(`${name}: right calls compile and run, wrong ones do not compile`);
  }
} finally {
  await server.close({ timeoutMs: 0 });
}

/** @param {string} tool @param {readonly string[]} args */
function run(tool, args) {
  const { status } = spawnSync(process.execPath, [`${HERE}node_modules/${tool}`, ...args], {
    stdio: "inherit",
  });
  if (status !== 0) throw new Error(`${tool} failed.`);
}

/** @param {string} file @param {string} url */
async function runProgram(file, url) {
  process.argv[2] = url;
  await import(file);
}
