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
    .execute(greet, { name: "browser" }, { timeoutMs: 1000 })
    .then((envelope) => JSON.stringify({ data: unwrap(envelope), source: envelope.meta.source }));`;

describe("the root in a browser", () => {
  let bundle = "";

  beforeAll(async () => {
    const warnings: string[] = [];
    const build = await rolldown({
      input: "waybill",
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
    bundle = output[0].code;
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
