import { EDGES } from "./edge-cases.ts";
import { HARMLESS } from "./harmless-cases.ts";
import { EXPORTS, IMPORTS } from "./import-cases.ts";
import type { LintCase } from "./lint-case.ts";
import { LOADED } from "./loading-cases.ts";
import { OTHER_RESULTS, RAW_RESULTS } from "./result-cases.ts";
import { TYPESCRIPT } from "./typescript-cases.ts";

/** The options some cases run with. */
export const CASE_OPTIONS = {
  modules: ["waybill/formats", "./responses.js"],
  names: ["buildToolResponse", "oldResponse"],
} as const;

const deprecated = ["deprecated"] as const;

const FROM = 'from "waybill/formats"';

/** The rule with options. */
const OPTIONS: readonly LintCase[] = [
  {
    name: "a module and a name of one's own",
    code: `import { oldResponse, buildToolResponse } from "./responses.js"; import { oldResponse as o } ${FROM};`,
    withOptions: true,
    finds: ["deprecated", "deprecated", "deprecated"],
    biome: false,
  },
  {
    name: "the default import of a CommonJS module of one's own",
    code: 'import responses from "./responses.js"; responses.oldResponse();',
    withOptions: true,
    finds: deprecated,
    biome: false,
  },
  {
    name: "the same names without options",
    code: 'import { oldResponse } from "./responses.js";',
    biome: false,
  },
];

/** Every case; each linter judges all of them that it can read. */
export const CASES: readonly LintCase[] = [
  ...IMPORTS,
  ...EXPORTS,
  ...LOADED,
  ...TYPESCRIPT,
  ...HARMLESS,
  ...RAW_RESULTS,
  ...OTHER_RESULTS,
  ...OPTIONS,
  ...EDGES,
];
