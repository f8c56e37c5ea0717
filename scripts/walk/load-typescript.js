// @ts-check
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import ts from "typescript";

/**
 * A loader hook of Node: takes the types out of our sources, each in a module of its own, so that what runs has the names of `src`.
 * @type {import("node:module").LoadHook}
 */
export async function load(url, context, next) {
  if (!url.startsWith("file:") || !/\.tsx?$/.test(url)) return await next(url, context);
  const { outputText } = ts.transpileModule(await readFile(fileURLToPath(url), "utf8"), {
    fileName: url,
    compilerOptions: {
      module: ts.ModuleKind.ESNext,
      target: ts.ScriptTarget.ES2022,
      jsx: ts.JsxEmit.ReactJSX,
    },
  });
  return { format: "module", source: outputText, shortCircuit: true };
}
