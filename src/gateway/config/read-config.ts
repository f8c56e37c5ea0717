import { readFile, stat } from "node:fs/promises";
import { basename, dirname, isAbsolute, relative, resolve } from "node:path";
import { isPlainObject, setOwn } from "../../core/json/json-value.ts";
import { SecretMask } from "../../core/secrets/secret-mask.ts";
import { cleanText } from "../../core/text/clean-text.ts";
import { stampOf } from "../file-stamps.ts";
import { checkMeaning } from "./check-meaning.ts";
import { type ConfigIssue, checkShape, type Findings } from "./check-shape.ts";
import { CONFIG_LIMITS } from "./config-limits.ts";
import { showPath } from "./config-path.ts";
import { type ConfigText, type Locate, readConfigText } from "./config-text.ts";
import { readEnvFiles } from "./env-files.ts";
import { findDistrust } from "./file-trust.ts";
import type { GatewayConfig } from "./gateway-config.ts";
import { ConfigError, type LoadedConfig } from "./loaded-config.ts";
import { locateInModule } from "./locate-in-module.ts";
import { type ResolvedConfig, resolveConfig } from "./resolve-config.ts";
import { URL_SPELLINGS } from "./source-schemas.ts";
import { tokenVariables } from "./token-variables.ts";

/** Variables by name. */
type Environment = Readonly<Record<string, string | undefined>>;

/** How a config is read. */
export interface LoadOptions {
  /** Where references lead. @default the environment of this process */
  readonly env?: Environment | undefined;
  /** What files are named from in messages. @default that of the process */
  readonly cwd?: string;
}

/** How a config that came from no file is read. */
export interface LoadObjectOptions extends Pick<LoadOptions, "env"> {
  /** What relative paths of the config start from. */
  readonly baseDir: string;
}

/**
 * Reads, checks and resolves a config file; throws a `ConfigError` that lists every mistake with its place. A file that belongs to another
 * user, or that others can change, is refused before anything of it runs.
 */
export async function loadConfig(
  path: string,
  { env = process.env, cwd = process.cwd() }: LoadOptions = {},
): Promise<LoadedConfig> {
  const full = resolve(cwd, path);
  const near = relative(cwd, full);
  const name = near.startsWith("..") || isAbsolute(near) ? full : near;
  const own = new Map([[full, stampOf(full)]]);
  const distrust = await findDistrust(full);
  if (distrust !== undefined) throw new ConfigError([`${name} ${distrust}.`]);
  const read = /\.(?:json|ya?ml)$/.test(full) ? await readText(full, name) : await runModule(full, name);
  const loaded = await load(read, { baseDir: dirname(full), env });
  return { ...loaded, path: full, files: new Map([...own, ...loaded.files]) };
}

/** Checks and resolves a config that came from no file. */
export async function loadConfigObject(
  config: GatewayConfig,
  { baseDir, env = process.env }: LoadObjectOptions,
): Promise<LoadedConfig> {
  return load({ value: config, warnings: [], locate: () => () => "" }, { baseDir, env });
}

async function readText(path: string, name: string): Promise<ConfigText> {
  const facts = await stat(path).catch(() => undefined);
  if (facts === undefined) throw new ConfigError([`${name} does not exist.`]);
  if (!facts.isFile()) throw new ConfigError([`${name} is no file.`]);
  if (facts.size > CONFIG_LIMITS.bytes)
    throw new ConfigError([`${name} has more than ${CONFIG_LIMITS.bytes} bytes.`]);
  const text = await readFile(path, "utf8").catch(() => undefined);
  if (text === undefined) throw new ConfigError([`${name} cannot be read.`]);
  return readConfigText(text, name);
}

/** A module gives a config as its default or as `config`, or a function that makes one. */
async function runModule(path: string, name: string): Promise<ConfigText> {
  if (!/\.[cm]?[jt]s$/.test(path)) {
    throw new ConfigError([
      `${name} is of no kind that is read: .json, .yaml, .yml, .ts, .mts, .js or .mjs.`,
    ]);
  }
  const facts = await stat(path).catch(() => undefined);
  if (!facts?.isFile())
    throw new ConfigError([`${name} ${facts === undefined ? "does not exist" : "is no file"}.`]);
  const { loadModule } = await import("../load-module.ts");
  let value: unknown;
  try {
    const module = await loadModule(path);
    value = module["default"] ?? module["config"];
    if (typeof value === "function") value = await value();
  } catch (thrown) {
    throw new ConfigError([`${placeIn(thrown, path, name)}  ${reasonOf(thrown)}`]);
  }
  if (value === undefined) throw new ConfigError([`${name} exports no config; export it as default.`]);
  return { value, warnings: [], locate: () => locateInModule(path, name) };
}

/** Where in the module an error came from, as far as its stack tells. */
function placeIn(thrown: unknown, path: string, name: string): string {
  const stack = thrown instanceof Error ? String(thrown.stack) : "";
  const at = stack
    .split(/[\s()]/)
    .find((word) => word.includes(basename(path)) && /:\d+(?::\d+)?$/.test(word));
  const place = /:\d+(?::\d+)?$/.exec(at ?? "")?.[0];
  return `${name}${place ?? ""}`;
}

function reasonOf(thrown: unknown): string {
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  const line = cleanText(message.slice(0, 1_000)).text.split("\n", 1)[0] as string;
  return `The config could not be loaded: ${line.slice(0, 300)}`;
}

interface Surroundings {
  readonly baseDir: string;
  readonly env: NodeJS.ProcessEnv;
}

async function load(text: ConfigText, { baseDir, env }: Surroundings): Promise<LoadedConfig> {
  const secrets = new SecretMask();
  const envFiles = await readEnvFiles(text.value, baseDir, env);
  const variable = (name: string): string | undefined =>
    Object.hasOwn(env, name) ? env[name] : envFiles.values.get(name);
  const resolved = resolveConfig(text.value, { baseDir, variable, secrets });
  const files = new Map([...envFiles.files, ...resolved.files]);
  const findings: Findings = {
    issues: [...envFiles.issues, ...resolved.issues],
    warnings: [...envFiles.warnings],
  };
  const config = checkShape(withUsualSpellings(resolved.value), resolved, findings);
  checkMeaning(config, resolved, findings);
  const places = new Places(text);
  const faults = sortMissing(resolved, config, findings, places);
  if (findings.issues.length > 0) throw new ConfigError(toLines(findings.issues, places), files);
  return {
    config: withUrls(config) as GatewayConfig,
    baseDir,
    files,
    faults,
    warnings: [...text.warnings, ...findings.warnings.map((warning) => places.line(warning))],
    secrets,
    tokenVariables: tokenVariables(text.value),
  };
}

/** Finds places when the first one is asked for. */
class Places {
  readonly #text: ConfigText;
  #locate: Locate | undefined;

  constructor(text: ConfigText) {
    this.#text = text;
  }

  of({ path, at }: ConfigIssue): string {
    this.#locate ??= this.#text.locate();
    return this.#locate(path, at);
  }

  line(issue: ConfigIssue): string {
    const place = this.of(issue);
    return place === "" ? issue.message : `${place}  ${issue.message}`;
  }
}

function toLines(issues: readonly ConfigIssue[], places: Places): readonly string[] {
  const lines = [...new Set(issues.map((issue) => places.line(issue)))];
  if (lines.length <= CONFIG_LIMITS.issues) return lines;
  const rest = lines.length - CONFIG_LIMITS.issues;
  return [...lines.slice(0, CONFIG_LIMITS.issues), `… and ${rest} more.`];
}

/** A reference that leads nowhere is the fault of its source, and a mistake anywhere else; of a source that is off it is nothing. */
function sortMissing(
  resolved: ResolvedConfig,
  config: unknown,
  findings: Findings,
  places: Places,
): Record<string, string> {
  const faults: Record<string, string> = {};
  for (const missing of resolved.missing) {
    const [kind, name] = missing.path;
    const shown = showPath(missing.path);
    if (
      (kind !== "mcpServers" && kind !== "openapi") ||
      typeof name !== "string" ||
      missing.path.length < 3
    ) {
      findings.issues.push({ ...missing, message: `${missing.message}; ${shown} refers to it.` });
      continue;
    }
    const entry = (config as Record<string, Record<string, unknown>>)[kind]?.[name];
    const isOff = isPlainObject(entry) && entry["disabled"] === true;
    const where = [places.of(missing), shown].filter((part) => part !== "").join(", ");
    if (!isOff) faults[`${kind}.${name}`] ??= `${missing.message} (${where})`;
  }
  return faults;
}

const TYPE_SPELLINGS: Readonly<Record<string, string>> = {
  streamableHttp: "streamable-http",
  streamable_http: "streamable-http",
  local: "stdio",
};

/** Other hosts have names of their own for how a server is spoken to. */
function withUsualSpellings(config: unknown): unknown {
  for (const server of serversOf(config)) {
    const { type } = server;
    if (typeof type === "string" && Object.hasOwn(TYPE_SPELLINGS, type))
      server["type"] = TYPE_SPELLINGS[type];
  }
  return config;
}

/** The same for `url`. */
function withUrls(config: unknown): unknown {
  for (const server of serversOf(config)) {
    for (const spelling of URL_SPELLINGS) {
      if (server[spelling] === undefined) continue;
      setOwn(server, "url", server[spelling]);
      delete server[spelling];
    }
  }
  return config;
}

function serversOf(config: unknown): Record<string, unknown>[] {
  const servers = isPlainObject(config) ? config["mcpServers"] : undefined;
  return isPlainObject(servers) ? Object.values(servers).filter(isPlainObject) : [];
}
