import { readdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { ConfigError } from "./loaded-config.ts";

/** Names of config files, of any format. */
export const CONFIG_FILE = /^waybill\.config\.(?:ts|mts|js|mjs|json|yaml|yml)$/;

/**
 * Finds the nearest `waybill.config.*` from a folder upwards, as far as the folder that holds `.git` or the root of the file
 * system; two in one folder are a `ConfigError`.
 */
export async function findConfig(from: string): Promise<string | undefined> {
  let folder = resolve(from);
  for (;;) {
    const names = await readdir(folder).catch((): string[] => []);
    const found = names.filter((name) => CONFIG_FILE.test(name)).sort();
    if (found.length > 1) {
      const all = found.join(" and ");
      throw new ConfigError([`There are ${all} in ${folder}; keep one of them, or name one with --config.`]);
    }
    if (found[0] !== undefined) return join(folder, found[0]);
    const above = dirname(folder);
    if (names.includes(".git") || above === folder) return undefined;
    folder = above;
  }
}
