import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { ROOT, runNode } from "./run-node.ts";

/** Builds `dist` before the tests that need it, unless it is newer than everything it is made from. */
export async function setup(): Promise<void> {
  if (lastChange("dist/index.d.ts") > Math.max(...inputs().map(lastChange))) return;
  const built = await runNode(["node_modules/tsdown/dist/run.mjs", "--logLevel", "error"]);
  if (built.code !== 0) throw new Error(`npm run build failed:\n${built.stdout}${built.stderr}`);
}

function inputs(): string[] {
  const sources = readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" });
  const shipped = sources.filter((file) => file.endsWith(".ts") && !/\.test(-d)?\.ts$/.test(file));
  return ["package.json", "tsconfig.json", "tsdown.config.ts", ...shipped.map((file) => join("src", file))];
}

function lastChange(path: string): number {
  const file = join(ROOT, path);
  return existsSync(file) ? statSync(file).mtimeMs : 0;
}
