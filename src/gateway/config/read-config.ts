import { readFile, stat } from "node:fs/promises";
import { basename, dirname, isAbsolute, relative, resolve } from "node:path";
import { isPlainObject, memberAt, setOwn } from "../../core/json/json-value.ts";
import { SecretMask } from "../../core/secrets/secret-mask.ts";
import { cleanText } from "../../core/text/clean-text.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import { LEAST_KEY_CHARACTERS } from "../../mcp/server/sealing-keys.ts";
import { WEBHOOK_LIMITS } from "../approvals/approval-webhook.ts";
import { stampOf } from "../watch-stamps.ts";
import { identityMistakes } from "./check-identity.ts";
import { type ConfigIssue, checkShape, type Findings, type ValueFacts } from "./check-shape.ts";
import { findDistrust } from "./config-files.ts";
import {
  CONFIG_LIMITS,
  type ConfigPath,
  LEAST_SECRET_CHARACTERS,
  LEAST_TOKEN_CHARACTERS,
  pathKey,
  quoteText,
  showPath,
} from "./config-path.ts";
import { type ConfigText, type Locate, locateInModule, readConfigText } from "./config-text.ts";
import { readEnvFiles } from "./env-files.ts";
import type { GatewayConfig } from "./gateway-config.ts";
import { ConfigError, type LoadedConfig } from "./loaded-config.ts";
import { parseReferences, ReferenceMistake, type ResolvedConfig, resolveConfig } from "./resolve-config.ts";
import { URL_SPELLINGS } from "./source-schemas.ts";

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
  const faults = sortMissing(resolved.missing, { config, places }, findings);
  if (findings.issues.length > 0) {
    // What is not set may be in a file that is not there.
    const reasons = resolved.missing.length > 0 ? envFiles.warnings : [];
    throw new ConfigError(toLines([...reasons, ...findings.issues], places), files);
  }
  return {
    config: withUrls(config) as GatewayConfig,
    baseDir,
    files,
    faults,
    warnings: [...text.warnings, ...findings.warnings.map((warning) => places.line(warning))],
    secrets,
    tokenVariables: tokenVariables(text.value),
    env,
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
  found: ResolvedConfig["missing"],
  { config, places }: { readonly config: unknown; readonly places: Places },
  findings: Findings,
): Record<string, string> {
  const faults: Record<string, string> = {};
  for (const missing of found) {
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

/** Finds the environment variables that tokens of callers are taken from, by who holds them, in a config as it was written. */
function tokenVariables(config: unknown): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const tokens = memberAt(config, "serve", "auth", "tokens");
  if (!isPlainObject(tokens)) return found;
  for (const [holder, entry] of Object.entries(tokens)) {
    const token = memberAt(entry, "token");
    const name = typeof token === "string" ? variableIn(token) : undefined;
    if (name !== undefined) found.set(holder, name);
  }
  return found;
}

/** The variable a text is, where it is nothing else. */
function variableIn(text: string): string | undefined {
  try {
    const [part, ...more] = parseReferences(text);
    return part !== undefined && "env" in part && more.length === 0 ? part.env : undefined;
  } catch (thrown) {
    if (thrown instanceof ReferenceMistake) return undefined;
    throw thrown;
  }
}

/** Checks what a schema cannot say: fields that go together, addresses, tokens, and who may reach the gateway. */
function checkMeaning(config: unknown, facts: ValueFacts, findings: Findings): void {
  if (!isPlainObject(config)) return;
  const report: Report = (path, message, at = "value") => findings.issues.push({ path, at, message });
  const isKnown = (path: ConfigPath): boolean => !facts.unresolved.has(pathKey(path));
  const servers = membersOf(config["mcpServers"]);
  const apis = membersOf(config["openapi"]);
  if (servers.length + apis.length > CONFIG_LIMITS.sources) {
    report(
      [],
      `The config has ${servers.length + apis.length} sources; at most ${CONFIG_LIMITS.sources} are mounted.`,
    );
  }
  const check: Checking = { report, isKnown };
  for (const [name, server] of servers) checkServer(server, ["mcpServers", name], check);
  for (const [name, api] of apis) checkAddress(api["baseUrl"], ["openapi", name, "baseUrl"], check);
  const knowsCallers = asksWhoCalls(config["serve"]);
  for (const [kind, sources] of [
    ["mcpServers", servers],
    ["openapi", apis],
  ] as const) {
    for (const [name, entry] of sources) {
      const path = [kind, name];
      for (const mistake of identityMistakes(entry, showPath(path), { kind, knowsCallers }))
        report([...path, "identity"], mistake);
    }
  }
  if (isPlainObject(config["serve"])) checkServe(config["serve"], check);
  if (isPlainObject(config["approvals"]) && isPlainObject(config["approvals"]["webhook"])) {
    const path = ["approvals", "webhook"];
    const { url, secret } = config["approvals"]["webhook"];
    checkAddress(url, [...path, "url"], check);
    checkLength(secret, { path: [...path, "secret"], least: WEBHOOK_LIMITS.secret }, check);
  }
  if (isPlainObject(config["bus"])) {
    checkLength(config["bus"]["secret"], { path: ["bus", "secret"], least: LEAST_SECRET_CHARACTERS }, check);
  } else if (isPlainObject(config["state"]) && config["state"]["store"] === "nats") {
    report(
      ["state", "store"],
      'state.store is "nats", and there is no bus: add "bus": { "nats": "nats://…" }.',
    );
  }
}

function asksWhoCalls(serve: unknown): boolean {
  const auth = isPlainObject(serve) && isPlainObject(serve["auth"]) ? serve["auth"] : {};
  return Object.values(auth).some((way) => isPlainObject(way) && Object.keys(way).length > 0);
}

type Report = (path: ConfigPath, message: string, at?: "key" | "value") => void;
type Fields = Readonly<Record<string, unknown>>;

/** Where mistakes are told, and which values can be looked at. */
interface Checking {
  readonly report: Report;
  /** Tells whether a value is known: one that a missing reference stands for is not. */
  readonly isKnown: (path: ConfigPath) => boolean;
}

function membersOf(value: unknown): [string, Fields][] {
  if (!isPlainObject(value)) return [];
  return Object.entries(value).filter((entry): entry is [string, Fields] => isPlainObject(entry[1]));
}

function checkServer(server: Fields, path: ConfigPath, check: Checking): void {
  const { report } = check;
  const shown = showPath(path);
  const [url, ...more] = ["url", ...URL_SPELLINGS].filter((name) => server[name] !== undefined);
  const hasCommand = server["command"] !== undefined;
  if (url === undefined && !hasCommand)
    report(path, `${shown} needs a command to start, or the url of a server.`);
  if (url !== undefined && hasCommand)
    report(path, `${shown} has both command and ${url}; keep one of them.`);
  if (more.length > 0) report(path, `${shown} has both ${url} and ${more.join(" and ")}; keep url.`);
  const { type } = server;
  if (type === "stdio" && url !== undefined && !hasCommand) {
    report([...path, "type"], `${shown}.type is "stdio", which needs a command; it has ${url}.`);
  } else if (typeof type === "string" && type !== "stdio" && hasCommand && url === undefined) {
    report([...path, "type"], `${shown}.type is ${quoteText(type)}, which needs a url; it has command.`);
  }
  if (url !== undefined) checkAddress(server[url], [...path, url], check);
}

function checkAddress(value: unknown, path: ConfigPath, { report, isKnown }: Checking): void {
  if (typeof value !== "string" || value === "" || !isKnown(path)) return;
  // The address itself may hold a token, and is not shown.
  if (parseUrl(value) === undefined)
    report(path, `${showPath(path)} must be an address such as https://example.com/mcp.`);
  else if (!/^https?:$/.test(new URL(value).protocol)) {
    report(path, `${showPath(path)} must begin with https:// or http://.`);
  }
}

function checkServe(serve: Fields, check: Checking): void {
  const { report } = check;
  const auth = isPlainObject(serve["auth"]) ? serve["auth"] : {};
  const tokens = membersOf(auth["tokens"]);
  checkTokens(tokens, check);
  checkAddress(serve["publicUrl"], ["serve", "publicUrl"], check);
  if (isPlainObject(serve["sessions"])) checkSessionKey(serve["sessions"]["key"], check);
  const { host, format, formats } = serve;
  const isOpen = tokens.length === 0 && !isPlainObject(auth["jwt"]);
  if (typeof host === "string" && isOpen && !isLoopbackHost(host)) {
    report(
      ["serve", "host"],
      `serve.host ${quoteText(host)} lets other machines in, and nothing says who may call; add serve.auth.tokens (or serve.auth.jwt), or use "127.0.0.1".`,
    );
  }
  if (typeof format === "string" && Array.isArray(formats) && !formats.includes(format)) {
    report(["serve", "format"], `serve.format ${quoteText(format)} is not among serve.formats.`);
  }
}

function checkSessionKey(key: unknown, check: Checking): void {
  const path = ["serve", "sessions", "key"];
  if (!Array.isArray(key)) {
    checkLength(key, { path, least: LEAST_KEY_CHARACTERS }, check);
    return;
  }
  if (key.length === 0) check.report(path, `${showPath(path)} must have at least one key.`);
  for (const [index, each] of key.entries()) {
    checkLength(each, { path: [...path, index], least: LEAST_KEY_CHARACTERS }, check);
  }
}

function checkTokens(tokens: readonly [string, Fields][], check: Checking): void {
  const { report, isKnown } = check;
  const holders = new Map<string, string>();
  for (const [name, { token }] of tokens) {
    const path = ["serve", "auth", "tokens", name, "token"];
    if (typeof token !== "string" || token === "" || !isKnown(path)) continue;
    checkLength(token, { path, least: LEAST_TOKEN_CHARACTERS }, check);
    const other = holders.get(token);
    if (other !== undefined)
      report(
        path,
        `${showPath(path)} is that of ${quoteText(other)} too; each holder needs one of their own.`,
      );
    holders.set(token, name);
  }
}

/** Nobody shall guess it; an empty one has been reported. */
function checkLength(
  value: unknown,
  { path, least }: { readonly path: ConfigPath; readonly least: number },
  { report, isKnown }: Checking,
): void {
  if (typeof value !== "string" || value === "" || value.length >= least || !isKnown(path)) return;
  report(path, `${showPath(path)} must have at least ${least} characters; it has ${value.length}.`);
}

/** Tells whether only this machine can reach a gateway that listens on this address. */
function isLoopbackHost(host: string): boolean {
  const bare = host.toLowerCase().replace(/^\[(.*)\]$/, "$1");
  return (
    bare === "localhost" ||
    bare.endsWith(".localhost") ||
    bare === "::1" ||
    /^127(?:\.\d{1,3}){3}$/.test(bare)
  );
}
