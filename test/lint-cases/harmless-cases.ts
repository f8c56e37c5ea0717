import type { LintCase } from "./lint-case.ts";

const FROM = 'from "waybill/formats"';

/** What only looks like the deprecated builder. */
export const HARMLESS: readonly LintCase[] = [
  { name: "the other names of the module", code: `import { composeToolPayload } ${FROM};`, biome: false },
  {
    name: "a namespace used for other names",
    code: `import * as f ${FROM}; f.composeToolPayload({}); use(f);`,
    biome: false,
  },
  {
    name: "the name from another module",
    code: 'import { buildToolResponse } from "./mine.js";',
    biome: false,
  },
  {
    name: "everything from another module",
    code: 'import * as f from "./mine.js"; f.buildToolResponse(); export * from "./mine.js";',
    biome: false,
  },
  {
    name: "the name loaded from another module",
    code: 'const { buildToolResponse } = await import("./mine.js"); const m = await import("other"); m.buildToolResponse();',
    biome: false,
  },
  {
    name: "a local function",
    code: "function buildToolResponse() {}\nbuildToolResponse();\nexport { buildToolResponse };",
    biome: false,
  },
  {
    name: "a shadowed namespace",
    code: `import * as f ${FROM}; export const g = (f) => f.buildToolResponse(); f.composeToolPayload({});`,
    // A false alarm: GritQL knows no scopes.
    biome: true,
  },
  {
    name: "a require that is a parameter",
    code: 'export const g = (require) => require("waybill/formats").buildToolResponse();',
    // The same false alarm.
    biome: true,
  },
  {
    name: "a member of another object",
    code: `import * as f ${FROM}; const mine = { buildToolResponse() {} }; mine.buildToolResponse(); f.other.buildToolResponse;`,
    biome: false,
  },
  {
    name: "strings and comments",
    code: '// import { buildToolResponse } from "waybill/formats"\nlog("buildToolResponse", "waybill/formats");',
    biome: false,
  },
];
