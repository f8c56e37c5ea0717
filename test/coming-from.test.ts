import assert from "node:assert/strict";
import crypto from "node:crypto";
import { readFileSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import { join } from "node:path";
import * as client2 from "@modelcontextprotocol/client";
import * as client1 from "@modelcontextprotocol/sdk/client/index.js";
import * as inMemory1 from "@modelcontextprotocol/sdk/inMemory.js";
import * as server1 from "@modelcontextprotocol/sdk/server/mcp.js";
import * as server2 from "@modelcontextprotocol/server";
import * as typeboxValue from "typebox/value";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import * as zod from "zod";
import * as call from "../src/call/index.ts";
import * as formats from "../src/formats/index.ts";
import * as waybill from "../src/index.ts";
import * as mcp from "../src/mcp/index.ts";
import * as openapi from "../src/openapi/index.ts";
import { type BlockPair, pairsOf, STAND_INS } from "./document-blocks.ts";
import { ROOT } from "./run-node.ts";

/** What the programs of the page may import. */
const MODULES: Readonly<Record<string, unknown>> = {
  "node:assert/strict": assert,
  "node:crypto": crypto,
  "node:http": http,
  "node:net": net,
  zod,
  waybill,
  "waybill/call": call,
  "waybill/formats": formats,
  "waybill/mcp": mcp,
  "waybill/openapi": openapi,
  "@modelcontextprotocol/sdk/client/index.js": client1,
  "@modelcontextprotocol/sdk/inMemory.js": inMemory1,
  "@modelcontextprotocol/sdk/server/mcp.js": server1,
  "@modelcontextprotocol/client": client2,
  "@modelcontextprotocol/server": server2,
  "typebox/value": typeboxValue,
};

/** Packages that are not installed: the page says that their side is checked for syntax alone. */
const NOT_INSTALLED = ["fastmcp", "@orpc/server"];

const PAGE = readFileSync(join(ROOT, "docs/coming-from.md"), "utf8");
const PAIRS = pairsOf(PAGE);

/** Everything a program imports, types left out. */
function importsOf(program: string): string[] {
  const { importedFiles } = ts.preProcessFile(toCommonJs(program).outputText, true, true);
  return importedFiles.map(({ fileName }) => fileName);
}

function toCommonJs(program: string): ts.TranspileOutput {
  return ts.transpileModule(program, {
    reportDiagnostics: true,
    compilerOptions: {
      module: ts.ModuleKind.CommonJS,
      target: ts.ScriptTarget.ES2022,
      esModuleInterop: true,
    },
  });
}

/** Runs a program in this process; a module of its own, because a function from a text is forbidden in the hardened run. */
async function run(program: string): Promise<void> {
  const code = toCommonJs(program).outputText;
  const text = `export default async (require, exports) => {${code}\n};\n//# sourceURL=docs/coming-from.md`;
  const url = `data:text/javascript;base64,${Buffer.from(text).toString("base64")}`;
  const { default: main } = (await import(/* @vite-ignore */ url)) as {
    default: (require: (name: string) => unknown, exports: object) => Promise<void>;
  };
  const load = (asked: string): unknown => {
    const name = Object.hasOwn(STAND_INS, asked) ? STAND_INS[asked as keyof typeof STAND_INS] : asked;
    if (Object.hasOwn(MODULES, name)) return MODULES[name];
    throw new Error(`The page imports ${name}, which this test does not know.`);
  };
  await main(load, {});
}

const isRunnable = (program: string): boolean =>
  !importsOf(program).some((name) => NOT_INSTALLED.includes(name));

describe("docs/coming-from.md", () => {
  it("X-8 has a pair for every document and for the libraries people come from", () => {
    expect(PAIRS.map(({ title }) => title)).toEqual([
      "ToolEnvelope V1",
      "Tiered envelope V1.0",
      "Structured tool responses",
      "@alkdev/operations",
      "MCP SDK 1.x",
      "MCP SDK 2.x",
      "FastMCP",
      "oRPC",
    ]);
    expect(PAIRS.filter(({ before, after }) => before.length === 0 || after.length === 0)).toEqual([]);
    expect(PAGE.match(/^```ts$/gm)).toHaveLength(PAIRS.flatMap(blocksIn).length);
  });

  it.each(PAIRS)("X-8 runs what there was before: $title", async ({ before }) => {
    for (const program of before) {
      if (isRunnable(program)) await run(program);
      else expect(toCommonJs(program).diagnostics).toEqual([]);
    }
  });

  it.each(PAIRS)("X-8 runs the same with Waybill: $title", async ({ after }) => {
    for (const program of after) await run(program);
  });

  it("X-8 checks for syntax alone only what cannot be installed, and the page says so", () => {
    const unrun = PAIRS.filter(({ before }) => !before.every(isRunnable));
    expect(unrun.map(({ title }) => title)).toEqual(["FastMCP", "oRPC"]);
    const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    const installed = { ...manifest.dependencies, ...manifest.devDependencies };
    expect(NOT_INSTALLED.filter((name) => name in installed)).toEqual([]);
    for (const { title } of unrun)
      expect(PAGE).toMatch(new RegExp(`only checked for syntax: .*\\[${title}\\]`));
  });
});

function blocksIn({ before, after }: BlockPair): readonly string[] {
  return [...before, ...after];
}
