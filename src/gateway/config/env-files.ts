import { readFile, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { isPlainObject } from "../../core/json/json-value.ts";
import { type FileStamps, stampOf } from "../watch-stamps.ts";
import type { ConfigIssue } from "./check-shape.ts";
import { findDistrust } from "./config-files.ts";
import { quoteText } from "./config-path.ts";

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
      list.push({ path: place, at: "value", message: `The env file ${quoteText(name)} ${what}.` });
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

/** The most bytes of an env file. */
const MOST_ENV_FILE_BYTES = 1_048_576;

/** One `NAME=value`: quoted values may hold line breaks, unquoted ones end at ` #` or at the end of the line. */
const LINE =
  /^[ \t]*(?:export[ \t]+)?([A-Za-z_][\w.-]*)[ \t]*=[ \t]*(?:'([^']*)'|"((?:[^"\\]|\\[\s\S])*)"|`([^`]*)`|([^\r\n]*))/;

/** Reads lines of `NAME=value`: quotes, `export` and comments as in a shell; nothing in a value is replaced. */
export function parseEnvFile(text: string): Map<string, string> {
  const values = new Map<string, string>();
  let rest = text.replace(/^\uFEFF/, "");
  while (rest !== "") {
    const found = LINE.exec(rest);
    if (found !== null) values.set(found[1] as string, readValue(found));
    const end = rest.indexOf("\n", found?.[0].length ?? 0);
    rest = end === -1 ? "" : rest.slice(end + 1);
  }
  return values;
}

function readValue([, , single, double, backtick, plain = ""]: readonly (string | undefined)[]): string {
  if (double !== undefined)
    return double.replace(/\\([\s\S])/g, (_, character: string) => unescapeOne(character));
  return single ?? backtick ?? plain.replace(/(?:^|\s)#.*$/, "").trim();
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t" };

/** What a backslash and a character stand for; anything but the usual ones stays as it is. */
function unescapeOne(character: string): string {
  if (character === '"' || character === "\\" || character === "$") return character;
  return ESCAPES[character] ?? `\\${character}`;
}
