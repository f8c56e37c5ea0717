import type { LintCase } from "./lint-case.ts";

/** Bounds on how far a module object is followed, as docs/security.md has them. */
const FOLLOW_LIMITS = { steps: 5_000, depth: 8 } as const;

const deprecated = ["deprecated"] as const;
const reExport = ["reExport"] as const;

const FROM = 'from "waybill/formats"';

const times = (count: number, text: string): string => text.repeat(count);

const nested = (depth: number): string =>
  `import * as f ${FROM}; const a = ${times(depth, "[")}f${times(depth, "]")}; a${times(depth, "[0]")}.buildToolResponse();`;

const aliases = (count: number): string => {
  const lines = Array.from({ length: count }, (_, i) => `const f${i + 1} = f${i};`);
  return `import * as f0 ${FROM};\n${lines.join("\n")}\nf${count}.buildToolResponse();`;
};

/** The deprecated builder, imported in every way. */
export const IMPORTS: readonly LintCase[] = [
  { name: "a named import", code: `import { buildToolResponse } ${FROM};`, finds: deprecated, biome: true },
  {
    name: "a renamed import among others",
    code: `import {\n  composeToolPayload,\n  buildToolResponse as build,\n} ${FROM};`,
    finds: deprecated,
    biome: true,
  },
  {
    name: "an import by a string",
    code: `import { "buildToolResponse" as build } ${FROM};`,
    finds: deprecated,
    biome: true,
  },
  {
    name: "a member of a namespace",
    code: `import * as f ${FROM}; f.buildToolResponse({});`,
    finds: deprecated,
    biome: true,
  },
  {
    name: "a computed member of a namespace",
    code: `import * as f ${FROM}; f["buildToolResponse"]({});`,
    finds: deprecated,
    biome: true,
  },
  {
    name: "a template as the name of a member",
    code: `import * as f ${FROM}; f[\`buildToolResponse\`]({});`,
    finds: deprecated,
    biome: true,
  },
  {
    name: "a constant as the name of a member",
    code: `import * as f ${FROM}; const key = "buildToolResponse"; f[key]({});`,
    finds: deprecated,
    biome: false,
  },
  {
    name: "an optional chain on a namespace",
    code: `import * as f ${FROM}; f?.buildToolResponse?.({});`,
    finds: deprecated,
    biome: true,
  },
  {
    name: "a namespace taken apart",
    code: `import * as f ${FROM}; const { buildToolResponse: build } = f;`,
    finds: deprecated,
    biome: true,
  },
  {
    name: "a namespace taken apart with the rest",
    code: `import * as f ${FROM}; const { composeToolPayload, ...rest } = f; rest.buildToolResponse({});`,
    finds: deprecated,
    biome: false,
  },
  {
    name: "an alias of a namespace",
    code: `import * as f ${FROM}; const g = f; g.buildToolResponse({});`,
    finds: deprecated,
    biome: false,
  },
  {
    name: "a namespace assigned later",
    code: `import * as f ${FROM}; let g; g = f; ({ buildToolResponse: g.build } = f); g.buildToolResponse({});`,
    finds: ["deprecated", "deprecated"],
    biome: false,
  },
  {
    name: "a namespace inside an object and an array",
    code: `import * as f ${FROM}; const box = { list: [1, f] }; box.list[1].buildToolResponse({});`,
    finds: deprecated,
    biome: false,
  },
  {
    name: "a copy of a namespace",
    code: `import * as f ${FROM}; const all = { ...f }; all.buildToolResponse({});`,
    finds: deprecated,
    biome: false,
  },
  {
    name: "a namespace as deep as it is followed",
    code: nested(FOLLOW_LIMITS.depth),
    finds: deprecated,
    biome: false,
  },
  { name: "a namespace one level deeper", code: nested(FOLLOW_LIMITS.depth + 1), biome: false },
  {
    name: "as many uses as are followed",
    code: aliases(FOLLOW_LIMITS.steps - 1),
    finds: deprecated,
    biome: false,
  },
  { name: "one use more", code: aliases(FOLLOW_LIMITS.steps), biome: false },
];

/** The deprecated builder, exported again. */
export const EXPORTS: readonly LintCase[] = [
  { name: "a re-export", code: `export { buildToolResponse } ${FROM};`, finds: deprecated, biome: true },
  {
    name: "a renamed re-export",
    code: `export { buildToolResponse as build } ${FROM};`,
    finds: deprecated,
    biome: true,
  },
  { name: "a re-export of everything", code: `export * ${FROM};`, finds: reExport, biome: true },
  { name: "a re-export of a namespace", code: `export * as f ${FROM};`, finds: reExport, biome: true },
  {
    name: "a namespace exported later",
    code: `import * as f ${FROM}; export { f };`,
    finds: reExport,
    biome: false,
  },
  {
    name: "a namespace exported as the default",
    code: `import * as f ${FROM}; export default f;`,
    finds: reExport,
    biome: false,
  },
  {
    name: "a namespace exported as a constant",
    code: `import * as f ${FROM}; export const g = f;`,
    finds: reExport,
    biome: false,
  },
  {
    name: "a CommonJS re-export of everything",
    code: 'module.exports = require("waybill/formats");',
    language: "cjs",
    finds: reExport,
    biome: false,
  },
];
