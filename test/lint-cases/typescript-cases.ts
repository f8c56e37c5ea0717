import type { LintCase } from "./lint-case.ts";

const deprecated = ["deprecated"] as const;
const rawResult = ["rawResult"] as const;

const FROM = 'from "waybill/formats"';

const RAW = '{ content: [{ type: "text", text: "hi" }] }';

/** TypeScript's own ways. */
export const TYPESCRIPT: readonly LintCase[] = [
  {
    name: "import equals require",
    code: 'import f = require("waybill/formats"); f.buildToolResponse({});',
    language: "ts",
    finds: deprecated,
    biome: true,
  },
  {
    name: "an import alias",
    code: `import * as f ${FROM}; import build = f.buildToolResponse; build({});`,
    language: "ts",
    finds: deprecated,
    biome: false,
  },
  {
    name: "a cast namespace",
    code: `import * as f ${FROM}; (f as unknown as { buildToolResponse(): void }).buildToolResponse(); f!.buildToolResponse();`,
    language: "ts",
    finds: ["deprecated", "deprecated"],
    biome: false,
  },
  {
    name: "imports of types alone",
    code: `import type { buildToolResponse } ${FROM}; import { type buildToolResponse as B } ${FROM}; import type * as F ${FROM}; export type { buildToolResponse as C } ${FROM}; export type * ${FROM};`,
    language: "ts",
    biome: false,
  },
  {
    name: "the type of a member",
    code: `import * as f ${FROM}; type Build = typeof f.buildToolResponse; type Same = typeof import("waybill/formats").buildToolResponse;`,
    language: "ts",
    biome: false,
  },
  {
    name: "a raw result as const, with satisfies",
    code: `server.registerTool("a", {}, async () => ${RAW.replace('"text",', '"text" as const,').replace("{ c", "({ c")} satisfies Result));`,
    language: "ts",
    finds: rawResult,
    biome: true,
  },
  {
    name: "a raw result with a cast",
    code: `server.registerTool("a", {}, async (): Promise<Result> => { return ${RAW} as Result; });`,
    language: "ts",
    finds: rawResult,
    biome: true,
  },
];
