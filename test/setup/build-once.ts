import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { ROOT, runNode } from "../run-node.ts";

/** What `npm run build` runs, one after the other: the first empties `dist`. */
const STEPS = [
  ["node_modules/tsdown/dist/run.mjs", "--logLevel", "error"],
  [
    "node_modules/vite/bin/vite.js",
    "build",
    "--config",
    "src/inspector/page/vite.config.ts",
    "--logLevel",
    "warn",
  ],
];
const OUTPUTS = ["dist/index.d.ts", "dist/inspector/index.html"];

/** Builds `dist` before the tests that need it, unless it is newer than everything it is made from. */
export async function setup(): Promise<void> {
  if (Math.min(...OUTPUTS.map(lastChange)) > Math.max(...inputs().map(lastChange))) return;
  for (const step of STEPS) {
    const built = await runNode(step);
    if (built.code !== 0) throw new Error(`npm run build failed:\n${built.stdout}${built.stderr}`);
  }
}

function inputs(): string[] {
  const sources = readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" });
  const shipped = sources.filter(
    (file) => /\.(?:tsx?|css|html|svg)$/.test(file) && !/\.test(-d)?\.tsx?$/.test(file),
  );
  return ["package.json", "tsconfig.json", "tsdown.config.ts", ...shipped.map((file) => join("src", file))];
}

function lastChange(path: string): number {
  const file = join(ROOT, path);
  return existsSync(file) ? statSync(file).mtimeMs : 0;
}
