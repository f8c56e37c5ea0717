import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { runCommand } from "../run-node.ts";
import { setup as build } from "./build-once.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** An empty folder into which nothing but the packed package was installed. */
    installed: string;
    /** What npm printed while it installed the package. */
    installLog: string;
  }
}

/** Packs the package and installs the tarball into an empty folder, once for all tests; returns how to clean up. */
export async function setup(project: TestProject): Promise<() => void> {
  await build();
  const folder = mkdtempSync(join(tmpdir(), "waybill-installed-"));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    await run(["pack", "--ignore-scripts", "--pack-destination", folder]);
    const tarball = readdirSync(folder).find((name) => name.endsWith(".tgz"));
    writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
    const flags = ["--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts"];
    project.provide("installLog", await run(["install", ...flags, `./${tarball}`], folder));
  } catch (thrown) {
    remove();
    throw thrown;
  }
  project.provide("installed", folder);
  return remove;
}

async function run(args: readonly string[], cwd?: string): Promise<string> {
  const ran = await runCommand("npm", args, cwd === undefined ? {} : { cwd });
  if (ran.code !== 0) throw new Error(`npm ${args[0]} failed:\n${ran.stdout}${ran.stderr}`);
  return `${ran.stdout}${ran.stderr}`;
}
