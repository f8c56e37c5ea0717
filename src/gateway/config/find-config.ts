import { readdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { isOwn } from "./file-trust.ts";
import { ConfigError } from "./loaded-config.ts";

/** Names of config files, of any format. */
export const CONFIG_FILE = /^waybill\.config\.(?:ts|mts|js|mjs|json|yaml|yml)$/;

/**
 * Finds the `waybill.config.*` of a folder. Within a repository of this user (a folder above holds `.git`) the nearest one counts, as far
 * as the root of the repository; elsewhere only the folder itself is looked at. Two in one folder are a `ConfigError`.
 */
export async function findConfig(from: string): Promise<string | undefined> {
  const start = resolve(from);
  const root = (await repositoryOf(start)) ?? start;
  for (let folder = start; ; folder = dirname(folder)) {
    const found = (await namesIn(folder)).filter((name) => CONFIG_FILE.test(name)).sort();
    if (found.length > 1) {
      const all = found.join(" and ");
      throw new ConfigError([`There are ${all} in ${folder}; keep one of them, or name one with --config.`]);
    }
    if (found[0] !== undefined) return join(folder, found[0]);
    if (folder === root) return undefined;
  }
}

/** The root of the repository that a folder is in; one that somebody else made around it is none. */
async function repositoryOf(start: string): Promise<string | undefined> {
  for (let folder = start; ; folder = dirname(folder)) {
    if ((await namesIn(folder)).includes(".git"))
      return (await isOwn(folder)) && (await isOwn(join(folder, ".git"))) ? folder : undefined;
    if (dirname(folder) === folder) return undefined;
  }
}

function namesIn(folder: string): Promise<readonly string[]> {
  return readdir(folder).catch(() => []);
}
