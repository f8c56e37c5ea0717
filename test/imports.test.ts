import { describe, expect, it } from "vitest";
import { importViolations } from "./import-table.ts";
import { isTestFile, readSourceFiles } from "./source-files.ts";

describe("the import table", () => {
  it("holds for every source file", () => {
    const sources = [...readSourceFiles("src"), ...readSourceFiles("examples")];
    const files = sources.filter((file) => !isTestFile(file.path));
    expect(files.map((file) => file.path)).toContain("src/index.ts");
    expect(files.flatMap(importViolations)).toEqual([]);
  });

  it.each([
    ["src/core/a.ts", 'import { b } from "../mcp/b.ts";'],
    ["src/core/a.ts", 'import type { b } from "../mcp/b.ts";'],
    ["src/core/a.ts", 'import "../index.ts";'],
    ["src/core/a.ts", 'export { b } from "../cli.ts";'],
    ["src/core/a.ts", 'export type { b } from "../tour/b.ts";'],
    ["src/core/a.ts", 'import { readFile } from "node:fs";'],
    ["src/core/a.ts", 'import { readFile } from "fs";'],
    ["src/core/a.ts", 'import { z } from "zod";'],
    ["src/core/a.ts", 'type B = import("../call/b.ts").B;'],
    ["src/core/a.ts", 'const b = await import("./b.ts");'],
    ["src/core/a.ts", 'import b = require("../mcp/b.ts");'],
    ["src/core/a.ts", "const home = process.env.HOME;"],
    ["src/core/a.ts", "const home = globalThis.process;"],
    ["src/core/a.ts", "const all = { Buffer };"],
    ["src/core/a.ts", "let timer: NodeJS.Timeout;"],
    ["src/index.ts", 'export { b } from "./mcp/b.ts";'],
    ["src/mcp/a.ts", 'const b = await import("../openapi/b.ts");'],
    ["src/mcp/a.ts", 'const b = require("../openapi/b.ts");'],
    ["src/mcp/a.ts", "const b = await import(`../${name}.ts`);"],
    ["src/mcp/a.ts", 'import { b } from "../cli.ts";'],
    ["src/mcp/a.ts", 'import { b } from "../index.ts";'],
    ["src/core/a.ts", 'import { b } from "../http/b.ts";'],
    ["src/http/a.ts", 'import { b } from "../mcp/b.ts";'],
    ["src/http/a.ts", 'import type { b } from "../openapi/b.ts";'],
    ["src/call/a.ts", 'import { b } from "../http/b.ts";'],
    ["src/gateway/a.ts", 'import { b } from "../inspector/server/b.ts";'],
    ["src/inspector/server/a.ts", 'import { b } from "../page/b.ts";'],
    ["src/inspector/server/a.ts", 'import { b } from "../../cli/b.ts";'],
    ["src/inspector/page/a.tsx", 'import { b } from "../server/b.ts";'],
    ["src/inspector/page/a.tsx", 'import type { b } from "../../formats/b.ts";'],
    ["src/inspector/page/a.tsx", 'import { readFile } from "node:fs";'],
    ["src/inspector/page/a.tsx", 'import { z } from "zod";'],
    ["src/inspector/page/a.ts", "const home = process.env.HOME;"],
    ["src/inspector/server/a.ts", 'import "../page/styles/base.css";'],
    ["src/inspector/protocol.ts", 'import { b } from "../core/b.ts";'],
    ["src/inspector/protocol.ts", 'import type { b } from "./server/b.ts";'],
    ["src/cli/a.ts", 'import { b } from "../inspector/page/b.ts";'],
    ["src/inspector/stray.ts", "export const a = 1;"],
    ["src/helpers/a.ts", "export const a = 1;"],
    ["src/mcp/a.ts", 'import { b } from "../../examples/parcel-office/b.ts";'],
    ["examples/parcel-office/a.ts", 'import { b } from "../../src/index.ts";'],
    ["src/constructor/a.ts", "export const a = 1;"],
    ["src/stray.ts", "export const a = 1;"],
  ])("refuses in %s: %s", (path, text) => {
    expect(importViolations({ path, text })).not.toEqual([]);
  });

  it.each([
    ["src/core/a.ts", 'import { b } from "./schema/b.ts"; import type { TSchema } from "typebox";'],
    ["src/core/schema/a.ts", 'import { Compile } from "typebox/schema"; export { b } from "../b.ts";'],
    ["src/core/a.ts", "const process = 1; const a = { process: facts.process };"],
    ["src/mcp/a.ts", 'import { b } from "../core/b.ts"; import { c } from "./c.ts"; import "node:http";'],
    ["src/openapi/a.ts", 'import { b } from "../http/b.ts";'],
    [
      "src/http/a.ts",
      'import { b } from "../core/b.ts"; import { jwtVerify } from "jose"; import "node:http";',
    ],
    ["src/cli/a.ts", 'const b = await import("../inspector/server/b.ts");'],
    ["src/gateway/a.ts", 'import { b } from "../../examples/parcel-office/b.ts";'],
    ["examples/parcel-office/a.ts", 'import { b } from "./b.ts"; import { c } from "waybill/mcp";'],
    ["src/inspector/server/a.ts", 'import { b } from "../../gateway/b.ts"; import "node:fs";'],
    ["src/inspector/server/a.ts", 'import type { b } from "../protocol.ts";'],
    ["src/inspector/protocol.ts", 'import type { b } from "../core/b.ts"; export type { b };'],
    [
      "src/inspector/page/a.tsx",
      'import { h } from "preact/hooks"; import type { B } from "../protocol.ts"; import "./styles/a.css";',
    ],
    ["src/inspector/page/vite.config.ts", 'import { defineConfig } from "vite"; import "node:path";'],
    ["src/cli.ts", 'import { b } from "./cli/b.ts"; import { c } from "./index.ts"; process.exit();'],
  ])("allows in %s: %s", (path, text) => {
    expect(importViolations({ path, text })).toEqual([]);
  });
});
