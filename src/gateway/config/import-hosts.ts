import { readFile, stat } from "node:fs/promises";
import { isPlainObject, parseJsonTextOrNone, setOwn } from "../../core/json/json-value.ts";
import { isSecretName, isTooCommon, looksRandom } from "../../core/secrets/secret-names.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import type { SourcePolicy } from "../policy/policy.ts";
import type { McpServerConfig } from "./gateway-config.ts";
import { type HostName, hostOfPath } from "./host-files.ts";
import { readJsonText, TextMistake } from "./json-text-map.ts";
import { escapeReferences, parseReferences } from "./resolve-config.ts";

export { type HostName, knownHostFiles } from "./host-files.ts";

/** The MCP servers of another host, in our shape. */
export interface ImportedServers {
  readonly host: HostName | "another host";
  readonly servers: Readonly<Record<string, McpServerConfig>>;
  /** Secrets that stood in the file, by the names of variables that the servers refer to now. */
  readonly secrets: Readonly<Record<string, string>>;
  /** What is different from before, one sentence each. */
  readonly notes: readonly string[];
}

/** Bytes of a host's file that are read. */
export const HOST_FILE_BYTES = 67_108_864;
/** How deeply a host's file may be nested. */
export const MOST_DEPTH = 256;

/** Reads the file of a host or editor; throws an `Error` with one sentence for what cannot be read. */
export async function readHostFile(
  path: string,
  { cwd }: { readonly cwd: string },
): Promise<ImportedServers> {
  const facts = await stat(path).catch(() => undefined);
  if (!facts?.isFile()) throw new Error(facts === undefined ? "The file does not exist." : "It is no file.");
  if (facts.size > HOST_FILE_BYTES) throw new Error(`The file has more than ${HOST_FILE_BYTES} bytes.`);
  const text = (await readFile(path, "utf8")).replace(/^\uFEFF/, "");
  const content = await parse(text, path);
  const host = hostOfPath(path) ?? hostOfContent(content);
  const servers: Record<string, McpServerConfig> = {};
  const secrets: Record<string, string> = {};
  const notes: string[] = [];
  for (const [name, entry] of entriesOf(content, cwd)) {
    const taken = fromHostEntry(entry, { name, host, cwd });
    notes.push(...taken.notes);
    const { server, secrets: own } = taken;
    if (server === undefined) continue;
    setOwn(servers, name, renameSecrets(name, { server, own }, secrets));
  }
  return { host: host ?? "another host", servers, secrets, notes };
}

/** Two servers may have different secrets under one name: the second gets a name of its own. */
function renameSecrets(
  name: string,
  { server, own }: { readonly server: McpServerConfig; readonly own: Readonly<Record<string, string>> },
  all: Record<string, string>,
): McpServerConfig {
  let text = JSON.stringify(server);
  for (const [variable, value] of Object.entries(own)) {
    let free = variable;
    const server = name
      .toUpperCase()
      .replace(/[^A-Z0-9]+/g, "_")
      .replace(/^(?=\d)/, "_");
    const base = variable.startsWith(`${server}_`) ? `${variable}_2` : `${server}_${variable}`;
    for (let i = 1; Object.hasOwn(all, free) && all[free] !== value; i++)
      free = i === 1 ? base : `${base}_${i}`;
    all[free] = value;
    if (free !== variable) text = text.replaceAll(`\${${variable}}`, () => `\${${free}}`);
  }
  return JSON.parse(text) as McpServerConfig;
}

async function parse(text: string, path: string): Promise<unknown> {
  try {
    if (path.endsWith(".toml")) return (await import("smol-toml")).parse(text);
    if (/\.ya?ml$/.test(path)) return (await (await import("./config-text.ts")).readYamlText(text)).value;
  } catch (thrown) {
    throw new Error(`The file cannot be read as ${path.endsWith(".toml") ? "TOML" : "YAML"}.`, {
      cause: thrown,
    });
  }
  try {
    return readJsonText(text, MOST_DEPTH).value;
  } catch (thrown) {
    if (!(thrown instanceof TextMistake)) throw thrown;
    const line = text.slice(0, thrown.offset).split("\n").length;
    throw new Error(`Line ${line}: ${thrown.message}`, { cause: thrown });
  }
}

/** The servers of a file, wherever the hosts keep them. */
function entriesOf(content: unknown, cwd: string): [string, unknown][] {
  if (!isPlainObject(content)) return [];
  const { mcp, projects } = content;
  const project = isPlainObject(projects) && Object.hasOwn(projects, cwd) ? projects[cwd] : undefined;
  const groups = [
    content["mcpServers"],
    content["mcp_servers"],
    content["servers"],
    content["mcp.servers"],
    isPlainObject(mcp) ? (mcp["servers"] ?? mcp) : undefined,
    content["context_servers"],
    content["extensions"],
    isPlainObject(project) ? project["mcpServers"] : undefined,
  ];
  // What stands nearest wins: servers of a project come last.
  return [...new Map(groups.flatMap(toEntries))];
}

/** Servers by name, or a list of servers that have one. */
function toEntries(group: unknown): [string, unknown][] {
  if (!Array.isArray(group)) {
    return isPlainObject(group) ? Object.entries(group).filter(([, entry]) => isPlainObject(entry)) : [];
  }
  return group
    .filter(isPlainObject)
    .map((entry, index) => [String(entry["name"] ?? entry["id"] ?? `server_${index + 1}`), entry]);
}

function hostOfContent(content: unknown): HostName | undefined {
  if (!isPlainObject(content)) return undefined;
  if (content["mcp_servers"] !== undefined) return "Codex";
  if (content["context_servers"] !== undefined) return "Zed";
  if (content["servers"] !== undefined || content["mcp.servers"] !== undefined) return "VS Code";
  if (content["extensions"] !== undefined) return "Goose";
  if (Array.isArray(content["mcpServers"])) return "Continue";
  return isPlainObject(content["mcp"]) && content["mcp"]["servers"] === undefined ? "opencode" : undefined;
}

/** One server of a host, taken over. */
interface HostEntry {
  /** Absent for what Waybill cannot start or reach. */
  readonly server?: McpServerConfig;
  readonly secrets: Readonly<Record<string, string>>;
  /** What is different from before, one sentence each. */
  readonly notes: readonly string[];
}

type Fields = Readonly<Record<string, unknown>>;

/** Where the entry stands. */
interface EntryPlace {
  readonly name: string;
  readonly host: HostName | undefined;
  readonly cwd: string;
}

const TYPES: Readonly<Record<string, McpServerConfig["type"]>> = {
  stdio: "stdio",
  local: "stdio",
  http: "http",
  remote: "http",
  sse: "sse",
  "streamable-http": "streamable-http",
  streamableHttp: "streamable-http",
  streamable_http: "streamable-http",
};

/** Members under which hosts keep which tools of a server may be used, and for how long. */
const HOST_POLICY_MEMBERS = [
  ...["enabled_tools", "includeTools", "allowedTools", "disabled_tools", "disabledTools", "excludeTools"],
  ...["tool_timeout_sec", "timeout"],
];

/** Members that were read, or that say nothing about how a server is started or reached. */
const READ = new Set([
  ...HOST_POLICY_MEMBERS,
  ...(
    "type transport command args env environment envs cmd cwd url serverUrl httpUrl uri headers http_headers requestOptions " +
    "env_http_headers bearer_token_env_var disabled enabled startup_timeout_sec startup_timeout_ms name id description source " +
    "display_name bundled"
  ).split(" "),
]);

/** Turns one server as any of the hosts writes it into one of ours; secrets are moved out. */
function fromHostEntry(given: unknown, place: EntryPlace): HostEntry {
  const notes: string[] = [];
  const note = (text: string): unknown => notes.push(`${place.name}: ${text}`);
  const secrets = new HostSecrets(place.name);
  if (!isPlainObject(given)) {
    note("is no object, and was left out.");
    return { secrets: {}, notes };
  }
  const read = (text: string): string => toReferences(text, place, note);
  const { command, args, env } = readProcess(given, read);
  const url = ["url", "serverUrl", "httpUrl", "uri"]
    .map((key) => given[key])
    .find((value) => typeof value === "string");
  if (command === undefined && url === undefined) {
    note("has neither a command nor an address, and was left out.");
    return { secrets: {}, notes };
  }
  const headers = readHeaders(given, read);
  const unread = Object.keys(given).filter((key) => !READ.has(key));
  if (unread.length > 0) note(`${unread.map((key) => JSON.stringify(key)).join(", ")} was not taken over.`);
  const move = (values: Readonly<Record<string, string>>): Record<string, string> =>
    Object.fromEntries(Object.entries(values).map(([key, value]) => [key, secrets.moveNamed(key, value)]));
  const type = typeOf(given, note);
  const server: McpServerConfig = {
    ...(type && { type }),
    ...(command !== undefined && { command }),
    ...(args.length > 0 && { args: secrets.moveArguments(args) }),
    ...(Object.keys(env).length > 0 && { env: move(env) }),
    ...(typeof given["cwd"] === "string" && { cwd: read(given["cwd"]) }),
    ...(command === undefined && url !== undefined && { url: secrets.moveAddress(read(url as string)) }),
    ...(Object.keys(headers).length > 0 && { headers: move(headers) }),
    ...(typeof given["bearer_token_env_var"] === "string" && {
      bearer: `\${${given["bearer_token_env_var"]}}`,
    }),
    ...((given["disabled"] === true || given["enabled"] === false) && { disabled: true }),
    ...readTimeout(given),
    ...toHostPolicy(given),
  };
  if (command !== undefined && url !== undefined)
    note("has a command and an address; the address was not taken over.");
  return { server, secrets: secrets.values, notes };
}

function typeOf(given: Fields, note: (text: string) => unknown): McpServerConfig["type"] {
  const said = given["type"] ?? given["transport"];
  if (typeof said !== "string") return undefined;
  if (!Object.hasOwn(TYPES, said))
    note(`its type ${JSON.stringify(said.slice(0, 60))} is not known, and was not taken over.`);
  // What starts a process or has an address needs no more than that.
  return Object.hasOwn(TYPES, said) &&
    (said === "sse" || said.startsWith("streamable") || said === "http" || said === "stdio")
    ? TYPES[said]
    : undefined;
}

/** A command is a text, a text and arguments in one list, or an object of both. */
function readProcess(given: Fields, read: (text: string) => string) {
  const nested = isPlainObject(given["command"]) ? given["command"] : {};
  const command = nested["path"] ?? nested["command"] ?? given["command"] ?? given["cmd"];
  const words = [command, nested["args"] ?? given["args"]]
    .flat()
    .filter((word) => word !== undefined && word !== null);
  const hasCommand = typeof command === "string" || Array.isArray(command);
  const [first, ...args] = words.map((word) => read(String(word)));
  const env = textsOf(nested["env"] ?? given["env"] ?? given["environment"] ?? given["envs"], read);
  return hasCommand && first !== undefined
    ? { command: first, args, env }
    : { command: undefined, args: [], env };
}

function readHeaders(given: Fields, read: (text: string) => string): Record<string, string> {
  const options = isPlainObject(given["requestOptions"]) ? given["requestOptions"] : {};
  const plain = textsOf(given["headers"] ?? given["http_headers"] ?? options["headers"], read);
  const variables = textsOf(given["env_http_headers"], (name) => `\${${name}}`);
  return { ...plain, ...variables };
}

function readTimeout(given: Fields): Pick<McpServerConfig, "connectTimeoutMs"> {
  const { startup_timeout_sec: seconds, startup_timeout_ms: milliseconds } = given;
  if (typeof milliseconds === "number" && milliseconds > 0)
    return { connectTimeoutMs: Math.round(milliseconds) };
  return typeof seconds === "number" && seconds > 0 ? { connectTimeoutMs: Math.round(seconds * 1_000) } : {};
}

function textsOf(value: unknown, read: (text: string) => string): Record<string, string> {
  if (!isPlainObject(value)) return {};
  const known = Object.entries(value).filter(([, member]) => member !== null && typeof member !== "object");
  return Object.fromEntries(known.map(([key, member]) => [key, read(String(member))]));
}

/** Turns what stands for something else in the texts of a host into references of ours. */
function toReferences(text: string, place: EntryPlace, note: (text: string) => unknown): string {
  let turned = text.replace(/\$\{input:([^}]+)\}/g, (_, id: string) => {
    note(`set ${toVariable(id)}, which ${place.host ?? "the host"} asks for as ${JSON.stringify(id)}.`);
    return `\${${toVariable(id)}}`;
  });
  turned = turned.replace(/\$\{\{\s*(?:secrets|inputs)\.([\w.-]+)\s*\}\}/g, (_, id: string) => {
    note(`set ${toVariable(id)}, which ${place.host ?? "the host"} keeps as a secret.`);
    return `\${${toVariable(id)}}`;
  });
  turned = turned
    .replaceAll(/\$\{workspace(?:Folder|Root)\}/g, () => escapeReferences(place.cwd))
    .replaceAll(/\$\{userHome\}/g, () => `\${HOME}`)
    .replaceAll(/\$\{(?:\/|pathSeparator)\}/g, "/");
  if (place.host === "opencode")
    turned = turned.replace(/(?<!\$)\{(env|file):([^}]+)\}/g, (_, kind, name) => `\${${kind}:${name}}`);
  if (place.host === "Gemini CLI")
    turned = turned.replace(/\$([A-Z_][A-Z0-9_]*)/g, (_, name) => `\${${name}}`);
  try {
    parseReferences(turned);
    return turned;
  } catch {
    note(`has a text with \${ that is no reference of Waybill's; it is kept as it stands.`);
    return escapeReferences(turned);
  }
}

/** Characters that mean something in our patterns; hosts mean names. */
const PATTERN = /[*?{}[\]]/;

/**
 * Turns what a host says about the tools of a server into a policy of ours: a tool that was off stays off. `timeout` is milliseconds
 * where it is a thousand or more, as some hosts have it, else seconds.
 */
function toHostPolicy(given: Readonly<Record<string, unknown>>): { readonly policy?: SourcePolicy } {
  const allow = namesOf(given["enabled_tools"] ?? given["includeTools"] ?? given["allowedTools"]);
  const deny = namesOf(given["disabled_tools"] ?? given["disabledTools"] ?? given["excludeTools"]);
  const timeoutMs = timeOf(given);
  const policy: SourcePolicy = {
    ...(allow !== undefined && { allow }),
    ...(deny !== undefined && deny.length > 0 && { deny }),
    ...(timeoutMs !== undefined && { timeoutMs }),
  };
  return Object.keys(policy).length === 0 ? {} : { policy };
}

/** One host writes arguments behind the names of tools, in brackets. */
function namesOf(value: unknown): readonly string[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const names = value.filter((name): name is string => typeof name === "string" && name !== "");
  return names.map((name) => name.replace(/\(.*$/s, "").replaceAll(new RegExp(PATTERN, "g"), "?"));
}

function timeOf({
  tool_timeout_sec: seconds,
  timeout,
}: Readonly<Record<string, unknown>>): number | undefined {
  if (typeof seconds === "number" && seconds > 0) return Math.round(seconds * 1_000);
  if (typeof timeout !== "number" || !(timeout > 0)) return undefined;
  return Math.round(timeout >= 1_000 ? timeout : timeout * 1_000);
}

/** Moves secrets that stand in texts out of them, to be kept as environment variables. */
class HostSecrets {
  /** The secrets by the names of their variables. */
  readonly values: Record<string, string> = {};
  readonly #server: string;

  constructor(server: string) {
    this.#server = server;
  }

  /** The value of an environment variable or header, or the reference that stands for it now. */
  moveNamed(name: string, value: string): string {
    const [, scheme = "", credential = value] =
      /^((?:Bearer|Basic|Token|ApiKey)\s+)(\S.*)$/is.exec(value) ?? [];
    const inside = isSecretName(name) ? undefined : this.#moveInside(name, value);
    if (inside !== undefined) return inside;
    if (hasReference(value) || isTooCommon(credential)) return value;
    if (!isSecretName(name) && !looksRandom(credential)) return value;
    return `${scheme}\${${this.#keep(name, credential)}}`;
  }

  /** The arguments of a program, with references for what follows `--token` or `--api-key=`. */
  moveArguments(args: readonly string[]): string[] {
    return args.map((arg, index) => {
      const [, flag = "", value = ""] = /^(--?[\w-]+=)(.*)$/s.exec(arg) ?? [];
      if (flag !== "") return `${flag}${this.moveNamed(flag.replace(/[-=]+/g, " ").trim(), value)}`;
      const previous = args[index - 1] ?? "";
      const isValue = /^--?[A-Za-z][\w-]*$/.test(previous) && !arg.startsWith("-");
      return this.moveNamed(isValue ? previous : "argument", arg);
    });
  }

  /** An address, with references for its password and for parameters that are called like secrets. */
  moveAddress(address: string): string {
    if (parseUrl(address) === undefined) return address;
    const moved = address.replace(
      /([?&])([^=&#]+)=([^&#]+)/g,
      (_, mark: string, name: string, value: string) => {
        return `${mark}${name}=${this.moveNamed(name, value)}`;
      },
    );
    return moved.replace(/^([a-z]+:\/\/[^/@:]*:)([^/@]+)@/i, (_, start: string, password: string) => {
      return `${start}${this.moveNamed("password", password)}@`;
    });
  }

  /** JSON with references for the secrets in it; nothing for a text that is not JSON. */
  #moveInside(whole: string, value: string): string | undefined {
    const parsed = /^\s*[{[]/.test(value) ? parseJsonTextOrNone(value) : undefined;
    if (typeof parsed !== "object" || parsed === null) return undefined;
    // What lies too deep, or under a name that is there twice, is not looked at below.
    if (!isReadWhole(value)) return hasReference(value) ? undefined : `\${${this.#keep(whole, value)}}`;
    const known = new Set(Object.keys(this.values));
    let text = value;
    for (const [name, member] of textsIn(parsed)) {
      const moved = this.moveNamed(name, member);
      const [before, after] = [JSON.stringify(member), JSON.stringify(moved)];
      if (moved === member) continue;
      if (before !== `"${member}"` || !text.includes(before)) {
        // What is escaped in the text would not be where the reference is filled in: all of it is one secret.
        for (const added of Object.keys(this.values)) if (!known.has(added)) delete this.values[added];
        return `\${${this.#keep(whole, value)}}`;
      }
      text = text.replaceAll(before, () => after);
    }
    return text;
  }

  /** Variables keep their names where those are free; others stand under the name of the server. */
  #keep(name: string, value: string): string {
    const own = toVariable(name);
    const isOwn = /^[A-Z][A-Z0-9_]*_[A-Z0-9_]+$/.test(name);
    const server = toVariable(this.#server);
    // A name that begins with a word of the server's says whose it is; `API_KEY` of a server "api" would be said twice too.
    const isSaid = own.includes("_") && server.split("_").includes(own.split("_")[0] ?? "");
    const wanted = isOwn || isSaid ? own : `${server}_${own}`;
    let free = wanted;
    for (let i = 2; Object.hasOwn(this.values, free) && this.values[free] !== value; i++)
      free = `${wanted}_${i}`;
    this.values[free] = value;
    return free;
  }
}

/** A name that an environment variable can have. */
function toVariable(name: string): string {
  const upper = name.replace(/([a-z0-9])([A-Z])/g, "$1_$2").toUpperCase();
  const plain = upper.replace(/[^A-Z0-9]+/g, "_").replace(/^_+|_+$/g, "");
  return /^[A-Z]/.test(plain) ? plain : `_${plain}`;
}

/** How deeply texts are looked for in JSON. */
const INNER_DEPTH = 20;

/** Tells whether nothing of a JSON text is passed over. */
function isReadWhole(text: string): boolean {
  try {
    return readJsonText(text, INNER_DEPTH, { uniqueNames: true }).end > 0;
  } catch (thrown) {
    if (thrown instanceof TextMistake) return false;
    throw thrown;
  }
}

/** The texts of JSON data with the names they stand under; those of a list stand under the name of the list. */
function* textsIn(value: unknown, name = "value", depth = 0): Generator<readonly [string, string]> {
  if (typeof value === "string") yield [name, value];
  if (typeof value !== "object" || value === null || depth >= INNER_DEPTH) return;
  for (const [key, member] of Object.entries(value))
    yield* textsIn(member, Array.isArray(value) ? name : key, depth + 1);
}

function hasReference(text: string): boolean {
  try {
    return parseReferences(text).some((part) => !("text" in part));
  } catch {
    return true;
  }
}
