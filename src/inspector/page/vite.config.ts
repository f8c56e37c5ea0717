import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig, type Plugin } from "vite";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

// What is built is what is shipped, even where a test runner builds it and says otherwise.
process.env["NODE_ENV"] = "production";

/** Numbers and texts that a module names for itself are put where they are used: the bundler does so with exported ones alone. */
const inlinedConstants: Plugin = {
  name: "inlined-constants",
  enforce: "pre",
  transform: {
    filter: { id: /inspector\/page\/[^?]+\.tsx?$/ },
    handler: (code) => ({
      code: code.replace(/^const (?=[A-Z_]+ = (?:[\d_.]+|"[^"\\]*");$)/gm, "export const "),
      map: null,
    }),
  },
};

/** From what all views use to what few do; views that are loaded later have files of their own. */
const FOLDERS = [".", "parts", "connection", "form", "operations", "result"];

/** Modules that compute stand together, before those that draw: like beside like, the page is shorter once it is compressed. */
const sortedModules: Plugin = {
  name: "sorted-modules",
  enforce: "pre",
  transform: {
    filter: { id: /inspector\/page\/main\.tsx$/ },
    handler: (code) => ({ code: `${FOLDERS.flatMap(importsOf).join("")}${code}`, map: null }),
  },
};

function importsOf(folder: string): readonly string[] {
  const names = readdirSync(here(folder)).filter((name) => /^[\w-]+\.ts$/.test(name));
  return names.sort().map((name) => `import "./${folder}/${name}";`);
}

/** Builds the page into `dist/inspector`: one script, one style sheet, nothing inline, addresses relative to the page. */
export default defineConfig({
  root: here("."),
  base: "./",
  logLevel: "warn",
  plugins: [inlinedConstants, sortedModules],
  // Smaller than the automatic runtime, which names `children` in every element.
  oxc: {
    jsx: { runtime: "classic", pragma: "jsxElement", pragmaFrag: "JsxFragment" },
    jsxInject: 'import { h as jsxElement, Fragment as JsxFragment } from "preact"',
  },
  build: {
    outDir: here("../../../dist/inspector"),
    emptyOutDir: true,
    target: "es2022",
    // Those that know `light-dark()`.
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    modulePreload: false,
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    reportCompressedSize: false,
    rolldownOptions: { optimization: { inlineConst: { mode: "all", pass: 2 } } },
  },
});
