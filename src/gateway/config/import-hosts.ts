import { readFile, stat } from "node:fs/promises";
import { isPlainObject, setOwn } from "../../core/json/json-value.ts";
import type { McpServerConfig } from "./gateway-config.ts";
import { fromHostEntry } from "./host-entry.ts";
import { type HostName, hostOfPath } from "./host-files.ts";
import { readJsonText, TextMistake } from "./json-text-map.ts";

export { type HostName, knownHostFiles } from "./host-files.ts";

/** The MCP servers of another host, in our shape. */
export interface HostServers {
  readonly host: HostName | "another host";
  readonly servers: Readonly<Record<string, McpServerConfig>>;
  /** Secrets that stood in the file, by the names of variables that the servers refer to now. */
  readonly secrets: Readonly<Record<string, string>>;
  /** What is different from before, one sentence each. */
  readonly notes: readonly string[];
}

const MOST_BYTES = 67_108_864;
const MOST_DEPTH = 256;

/** Reads the file of a host or editor; throws an `Error` with one sentence for what cannot be read. */
export async function readHostFile(path: string, { cwd }: { readonly cwd: string }): Promise<HostServers> {
  const facts = await stat(path).catch(() => undefined);
  if (!facts?.isFile()) throw new Error(facts === undefined ? "The file does not exist." : "It is no file.");
  if (facts.size > MOST_BYTES) throw new Error(`The file has more than ${MOST_BYTES} bytes.`);
  const text = (await readFile(path, "utf8")).replace(/^\uFEFF/, "");
  const content = await parse(text, path);
  const host = hostOfPath(path) ?? hostOfContent(content);
  const servers: Record<string, McpServerConfig> = {};
  const secrets: Record<string, string> = {};
  const notes: string[] = [];
  for (const [name, entry] of entriesOf(content, cwd)) {
    const taken = fromHostEntry(entry, { name, host, cwd });
    notes.push(...taken.notes);
    if (taken.server === undefined) continue;
    setOwn(servers, name, renameSecrets(taken.server, taken.secrets, secrets, name));
  }
  return { host: host ?? "another host", servers, secrets, notes };
}

/** Two servers may have different secrets under one name: the second gets a name of its own. */
function renameSecrets(
  server: McpServerConfig,
  own: Readonly<Record<string, string>>,
  all: Record<string, string>,
  name: string,
): McpServerConfig {
  let text = JSON.stringify(server);
  for (const [variable, value] of Object.entries(own)) {
    let free = variable;
    const base = `${name
      .toUpperCase()
      .replace(/[^A-Z0-9]+/g, "_")
      .replace(/^(?=\d)/, "_")}_${variable}`;
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
    if (/\.ya?ml$/.test(path)) return (await (await import("./yaml-text-map.ts")).readYamlText(text)).value;
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
