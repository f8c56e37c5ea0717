import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

// What is built is what is shipped, whoever builds it: a test runner says otherwise.
process.env["NODE_ENV"] = "production";

/** Builds the page into `dist/inspector`: one script, one style sheet, nothing inline, addresses relative to the page. */
export default defineConfig({
  root: here("."),
  base: "./",
  logLevel: "warn",
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
  },
});
