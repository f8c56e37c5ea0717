import { isPlainObject } from "../../core/json/json-value.ts";
import type { McpServerConfig } from "./gateway-config.ts";
import type { HostName } from "./host-files.ts";
import { HOST_POLICY_MEMBERS, toHostPolicy } from "./host-policy.ts";
import { HostSecrets, toVariable } from "./host-secrets.ts";
import { escapeReferences, parseReferences } from "./references.ts";

/** One server of a host, taken over. */
export interface HostEntry {
  /** Absent for what Waybill cannot start or reach. */
  readonly server?: McpServerConfig;
  readonly secrets: Readonly<Record<string, string>>;
  /** What is different from before, one sentence each. */
  readonly notes: readonly string[];
}

type Fields = Readonly<Record<string, unknown>>;

/** Where the entry stands. */
export interface EntryPlace {
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
export function fromHostEntry(given: unknown, place: EntryPlace): HostEntry {
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
