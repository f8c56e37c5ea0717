import type { LintCase } from "./lint-case.ts";

const deprecated = ["deprecated"] as const;
const rawResult = ["rawResult"] as const;

const NAMESPACE = 'import * as f from "waybill/formats";';
const LOAD = 'import("waybill/formats")';
const RAW = '{ content: [{ type: "text", text: "hi" }] }';

/** Rare ways that are caught, for each a near miss that is not. */
export const EDGES: readonly LintCase[] = [
  {
    name: "a name that may change",
    code: `${NAMESPACE} let key = "buildToolResponse"; f[key]();`,
    biome: false,
  },
  {
    name: "a name with an expression in it",
    code: `${NAMESPACE} f[\`buildToolResponse\${x}\`]();`,
    biome: false,
  },
  {
    name: "a namespace that is only tested or dropped",
    code: `${NAMESPACE} const a = f ? x : y; const b = f && x; const c = (f, x); [a, b, c].map(run); a.buildToolResponse(b.buildToolResponse, c.buildToolResponse);`,
    biome: false,
  },
  {
    name: "a namespace that is chosen",
    code: `${NAMESPACE} const a = x ? f : y; const b = x && f; const c = (x, f); a.buildToolResponse(b.buildToolResponse, c.buildToolResponse);`,
    finds: ["deprecated", "deprecated", "deprecated"],
    biome: false,
  },
  {
    name: "a settled promise of a namespace",
    code: `${NAMESPACE} (await Promise.resolve(f)).buildToolResponse();`,
    finds: deprecated,
    biome: false,
  },
  {
    name: "what a generator returns",
    code: `${NAMESPACE} function* load() { return f; } load().buildToolResponse();`,
    biome: false,
  },
  {
    name: "a promise or a loader exported",
    code: `const p = ${LOAD}; export { p }; export const q = ${LOAD}; export const load = () => ${LOAD};`,
    biome: false,
  },
  {
    name: "a loader exported from CommonJS",
    code: `exports.load = () => ${LOAD}; module.exports.p = ${LOAD}; mine.f = require("waybill/formats");`,
    language: "cjs",
    biome: false,
  },
  {
    name: "a module exported under a name from CommonJS",
    code: 'exports.f = require("waybill/formats");',
    language: "cjs",
    finds: ["reExport"],
    biome: false,
  },
  {
    name: "a member of an object around a namespace",
    code: `${NAMESPACE} const box = { f }; box.buildToolResponse();`,
    biome: false,
  },
  {
    name: "module.require",
    code: 'module.require("waybill/formats").buildToolResponse();',
    language: "cjs",
    finds: deprecated,
    biome: false,
  },
  {
    name: "require of another module object",
    code: 'export const g = (module) => module.require("waybill/formats").buildToolResponse();',
    biome: false,
  },
  {
    name: "createRequire called on the spot and through its module",
    code: 'import * as m from "node:module"; m.createRequire(import.meta.url)("waybill/formats").buildToolResponse();',
    finds: deprecated,
    biome: false,
  },
  {
    name: "the default import by its name",
    code: 'import { default as responses } from "./responses.js"; responses.oldResponse();',
    withOptions: true,
    finds: deprecated,
    biome: false,
  },
  {
    name: "types by other ways",
    code: 'import type f = require("waybill/formats"); export const g: typeof f = f; f.buildToolResponse; export { type buildToolResponse } from "waybill/formats";',
    language: "ts",
    // A false alarm in code that does not compile: a type is used as a value.
    biome: true,
  },
  {
    name: "the last of a sequence, and what is awaited",
    code: `tool(() => (log(), ${RAW})); tool(async () => { return await ${RAW}; });`,
    finds: ["rawResult", "rawResult"],
    biome: false,
  },
  {
    name: "content from outside the handler",
    code: 'const content = [{ type: "text", text: "x" }]; tool(() => ({ content }));',
    biome: false,
  },
  {
    name: "a parameter passed as a handler",
    code: `export function wire(answer) { tool(answer); return ${RAW}; }`,
    biome: false,
  },
  {
    name: "constants that refer to each other",
    code: `tool(() => { const a = x ? b : ${RAW}; const b = a; return b; });`,
    finds: rawResult,
    biome: false,
  },
  {
    name: "what another resolve is given",
    code: `tool(() => other.resolve(${RAW}));`,
    biome: false,
  },
];
