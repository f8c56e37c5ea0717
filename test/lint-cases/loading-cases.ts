import type { LintCase } from "./lint-case.ts";

const deprecated = ["deprecated"] as const;

/** The deprecated builder, loaded at run time. */
export const LOADED: readonly LintCase[] = [
  {
    name: "require, taken apart",
    code: 'const { buildToolResponse } = require("waybill/formats");',
    language: "cjs",
    finds: deprecated,
    biome: true,
  },
  {
    name: "a member of require",
    code: 'require("waybill/formats").buildToolResponse({});',
    language: "cjs",
    finds: deprecated,
    biome: true,
  },
  {
    name: "require, used later",
    code: 'const f = require("waybill/formats"); f.buildToolResponse({});',
    language: "cjs",
    finds: deprecated,
    biome: true,
  },
  {
    name: "a require of its own making",
    code: 'import { createRequire } from "node:module"; const load = createRequire(import.meta.url); load("waybill/formats").buildToolResponse({});',
    finds: deprecated,
    biome: false,
  },
  {
    name: "a dynamic import, taken apart",
    code: 'const { buildToolResponse } = await import("waybill/formats");',
    finds: deprecated,
    biome: true,
  },
  {
    name: "a member of a dynamic import",
    code: '(await import("waybill/formats")).buildToolResponse({});',
    finds: deprecated,
    biome: true,
  },
  {
    name: "a dynamic import, used later",
    code: 'const f = await import("waybill/formats"); f.buildToolResponse({});',
    finds: deprecated,
    biome: true,
  },
  {
    name: "a template as the module",
    code: "(await import(`waybill/formats`)).buildToolResponse({});",
    finds: deprecated,
    biome: true,
  },
  {
    name: "a constant as the module",
    code: 'const path = "waybill/formats"; (await import(path)).buildToolResponse({});',
    finds: deprecated,
    biome: false,
  },
  {
    name: "then, taken apart",
    code: 'import("waybill/formats").then(({ buildToolResponse }) => buildToolResponse({}));',
    finds: deprecated,
    biome: true,
  },
  {
    name: "then, with the module",
    code: 'import("waybill/formats").then((m) => m.buildToolResponse({}));',
    finds: deprecated,
    biome: true,
  },
  {
    name: "then, passed on",
    code: 'const build = import("waybill/formats").catch(fail).then((m) => m); (await build).buildToolResponse({});',
    finds: deprecated,
    biome: false,
  },
  {
    name: "a promise awaited later",
    code: 'const p = import("waybill/formats"); const { buildToolResponse } = await p;',
    finds: deprecated,
    // The promise's name counts as the module's, awaited or not; only `await p` is no name.
    biome: false,
  },
  {
    name: "one of several promises",
    code: 'const [a, { buildToolResponse }] = await Promise.all([import("a"), import("waybill/formats")]);',
    finds: deprecated,
    biome: false,
  },
  {
    name: "a function that loads",
    code: 'const load = async () => import("waybill/formats"); (await load()).buildToolResponse({});',
    finds: deprecated,
    biome: false,
  },
  {
    name: "a declared function that loads",
    code: 'function load() { return import("waybill/formats"); } load().then((m) => m.buildToolResponse({}));',
    finds: deprecated,
    biome: false,
  },
];
