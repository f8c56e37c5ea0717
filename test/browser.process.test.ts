import { createContext, runInContext } from "node:vm";
import { rolldown } from "rolldown";
import { beforeAll, describe, expect, it } from "vitest";
import { ROOT } from "./run-node.ts";

const WEB_GLOBALS = [
  "AbortController",
  "AbortSignal",
  "DOMException",
  "Event",
  "EventTarget",
  "TextDecoder",
  "TextEncoder",
  "URL",
  "atob",
  "btoa",
  "clearTimeout",
  "crypto",
  "performance",
  "queueMicrotask",
  "setTimeout",
  "structuredClone",
] as const;

const PAGE = `
  const { defineOperation, OperationRegistry, Type, unwrap } = waybill;
  const greet = defineOperation({
    namespace: "page", name: "greet", version: "1.0.0", type: "query", description: "Greets.",
    inputSchema: Type.Object({ name: Type.String() }),
    outputSchema: Type.Object({ text: Type.String() }),
    handler: ({ name }) => ({ text: "Hello " + name, excess: true }),
  });
  new OperationRegistry([greet])
    .execute(greet, { name: "browser" }, { timeoutMs: 60_000 })
    .then((envelope) => JSON.stringify({ data: unwrap(envelope), source: envelope.meta.source }));`;

/** Bundles an entry of the package for a page, which must need nothing else. */
async function bundleForPage(input: string): Promise<string> {
  const warnings: string[] = [];
  const build = await rolldown({
    input,
    cwd: ROOT,
    platform: "browser",
    onLog: (_level, log) => void warnings.push(log.message),
  });
  const { output } = await build.generate({ format: "iife", name: "waybill" });
  await build.close();
  expect(warnings).toEqual([]);
  expect(output).toHaveLength(1);
  expect(output[0].imports).toEqual([]);
  expect(output[0].dynamicImports).toEqual([]);
  return output[0].code;
}

describe("the root in a browser", () => {
  let bundle = "";

  beforeAll(async () => {
    bundle = await bundleForPage("waybill");
  });

  it.each([
    ["an ordinary page", true],
    ["a page that forbids code generation", false],
  ])("runs an operation in %s, with web globals alone", async (_page, strings) => {
    const globals = Object.fromEntries(WEB_GLOBALS.map((name) => [name, globalThis[name]]));
    const context = createContext(globals, { codeGeneration: { strings, wasm: false } });
    runInContext(`${bundle}; globalThis.waybill = waybill;`, context);
    expect(runInContext("typeof process + typeof Buffer + typeof require", context)).toBe(
      "undefined".repeat(3),
    );
    const result = await runInContext(PAGE, context);
    expect(JSON.parse(result)).toEqual({ data: { text: "Hello browser" }, source: "local" });
  });
});

const FORMATS_PAGE = `
  const payload = { text: "é漢😀".repeat(20000), rows: Array.from({ length: 100 }, (_, i) => i) };
  const result = waybill.toToolResult({ summaryMarkdown: "x", payload, meta: { tool: "t", ts: "" } });
  const decoded = waybill.decodeToolResult(result);
  const codes = ["__ENVELOPE_V1__:e3-_", "__ENVELOPE_V1__:/w==", "__ENVELOPE_V1__:e30="].map((text) => {
    try {
      waybill.parseEnvelopeBlock(text);
    } catch (error) {
      return error.code;
    }
  });
  const same = JSON.stringify(decoded.data) === JSON.stringify(payload);
  JSON.stringify({ format: decoded.format, same, codes, cut: waybill.cutText("a".repeat(3000)).truncated });`;

describe("the formats in a browser", () => {
  it("TE-3 write and read, with web globals alone", async () => {
    const bundle = await bundleForPage("waybill/formats");
    const globals = Object.fromEntries(WEB_GLOBALS.map((name) => [name, globalThis[name]]));
    const context = createContext({ ...globals, console });
    runInContext(`${bundle}; globalThis.waybill = waybill;`, context);
    expect(JSON.parse(runInContext(FORMATS_PAGE, context))).toEqual({
      format: "tool-envelope",
      same: true,
      codes: ["bad_base64", "bad_utf8", "bad_shape"],
      cut: true,
    });
  });
});
