import { readFile, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { isPlainObject } from "../../core/json/json-value.ts";
import { type FileStamps, stampOf } from "../file-stamps.ts";
import type { ConfigIssue } from "./check-shape.ts";
import { quote } from "./config-path.ts";
import { MOST_ENV_FILE_BYTES, parseEnvFile } from "./env-file.ts";
import { findDistrust } from "./file-trust.ts";

/** What the env files of a config hold. */
export interface EnvFiles {
  /** Later files win. */
  readonly values: ReadonlyMap<string, string>;
  /** The files, as they were before they were read. */
  readonly files: FileStamps;
  readonly issues: readonly ConfigIssue[];
  readonly warnings: readonly ConfigIssue[];
}

/**
 * Reads the files that `envFile` of a config names. One that does not exist is only odd: all it would hold may stand in the
 * environment, and what is missing is reported where it is needed.
 */
export async function readEnvFiles(
  config: unknown,
  baseDir: string,
  env: NodeJS.ProcessEnv,
): Promise<EnvFiles> {
  const given = isPlainObject(config) ? config["envFile"] : undefined;
  const values = new Map<string, string>();
  const files = new Map<string, string>();
  const found = { values, files, issues: [] as ConfigIssue[], warnings: [] as ConfigIssue[] };
  for (const [index, name] of (Array.isArray(given) ? given : [given]).entries()) {
    if (typeof name !== "string" || name === "") continue;
    const path = resolve(baseDir, withVariables(name, env));
    files.set(path, stampOf(path));
    const place = Array.isArray(given) ? (["envFile", index] as const) : (["envFile"] as const);
    const facts = await stat(path).catch(() => undefined);
    const distrust = await findDistrust(path);
    const report = (list: ConfigIssue[], what: string): unknown =>
      list.push({ path: place, at: "value", message: `The env file ${quote(name)} ${what}.` });
    if (facts === undefined) report(found.warnings, "does not exist");
    else if (distrust !== undefined) report(found.issues, distrust);
    else if (!facts.isFile()) report(found.issues, "is no file");
    else if (facts.size > MOST_ENV_FILE_BYTES)
      report(found.issues, `has more than ${MOST_ENV_FILE_BYTES} bytes`);
    else {
      const text = await readFile(path, "utf8").catch(() => undefined);
      if (text === undefined) report(found.issues, "cannot be read");
      else for (const [variable, value] of parseEnvFile(text)) values.set(variable, value);
    }
  }
  return found;
}

/** Names of env files can refer to the environment only. */
function withVariables(name: string, env: NodeJS.ProcessEnv): string {
  return name.replace(/\$\{(?:env:)?(\w+)(?::-([^}]*))?\}/g, (all, variable: string, orElse?: string) => {
    const value = Object.hasOwn(env, variable) ? env[variable] : undefined;
    return value ?? orElse ?? all;
  });
}
