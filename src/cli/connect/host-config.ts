import { isDeepStrictEqual } from "node:util";
import { isPlainObject } from "../../core/json/json-value.ts";
import { toPlace } from "../../gateway/config/config-text.ts";
import type { HostName, HostSurroundings } from "../../gateway/config/host-files.ts";
import { knownHostFiles, MOST_DEPTH } from "../../gateway/config/import-hosts.ts";
import { readJsonText, TextMistake, type TextNode } from "../../gateway/config/json-text-map.ts";
import { CommandError } from "../io.ts";

/** Hosts that can be connected, by the names the command takes. */
export const CONNECTED_HOSTS = ["claude", "cursor", "vscode", "codex"] as const;

/** A name of `CONNECTED_HOSTS`. */
export type ConnectedHost = (typeof CONNECTED_HOSTS)[number];

/** How a host starts an MCP server over stdio. */
export interface ServerEntry {
  readonly command: string;
  readonly args: readonly string[];
}

interface HostShape {
  readonly title: HostName;
  /** The end of the path of the file that belongs to the person. */
  readonly file: string;
  /** The member that holds the servers. */
  readonly member: "mcpServers" | "servers" | "mcp_servers";
  readonly isToml?: boolean;
}

const SHAPES: Readonly<Record<ConnectedHost, HostShape>> = {
  claude: { title: "Claude Desktop", file: "claude_desktop_config.json", member: "mcpServers" },
  cursor: { title: "Cursor", file: "mcp.json", member: "mcpServers" },
  vscode: { title: "VS Code", file: "mcp.json", member: "servers" },
  codex: { title: "Codex", file: "config.toml", member: "mcp_servers", isToml: true },
};

/** What people call a host. */
export function titleOf(host: ConnectedHost): string {
  return SHAPES[host].title;
}

/** The file in which a host keeps the servers of a person. */
export function hostFile(host: ConnectedHost, surroundings: Omit<HostSurroundings, "cwd">): string {
  const { title, file } = SHAPES[host];
  // Files of a folder come first, those of the person after them.
  const paths = knownHostFiles({ ...surroundings, cwd: "" })
    .filter((known) => known.host === title && known.path.endsWith(file))
    .map(({ path }) => path);
  return paths.at(-1) as string;
}

/** Where that file is on each platform, as people write it. */
export function hostPlaces(host: ConnectedHost): Readonly<Record<"Linux" | "macOS" | "Windows", string>> {
  const at = (platform: NodeJS.Platform, home: string, env: NodeJS.ProcessEnv = {}): string =>
    hostFile(host, { platform, home, env });
  return {
    Linux: at("linux", "~"),
    macOS: at("darwin", "~"),
    Windows: at("win32", "%USERPROFILE%", { APPDATA: "%APPDATA%" }),
  };
}

/** The block for a host's file, for people to put there. */
export async function hostBlock(host: ConnectedHost, name: string, entry: ServerEntry): Promise<string> {
  const { member, isToml } = SHAPES[host];
  const block = { [member]: { [name]: toHostEntry(host, entry) } };
  if (isToml !== true) return `${JSON.stringify(block, undefined, 2)}\n`;
  const { stringify } = await import("smol-toml");
  return `${stringify(block).trim()}\n`;
}

function toHostEntry(host: ConnectedHost, { command, args }: ServerEntry): object {
  return host === "vscode" ? { type: "stdio", command, args } : { command, args };
}

/** A host's file with the server in it. */
export interface EditedFile {
  readonly text: string;
  /** What becomes of the server of this name. */
  readonly change: "added" | "replaced" | "none";
  /** How many servers of other names the host starts. */
  readonly others: number;
}

/**
 * Puts a server into the text of a host's file. Everything else stays letter for letter, comments too; throws a `CommandError` that names
 * the line for a text that cannot be read, and for one where nothing else could be kept.
 */
export async function withServer(
  host: ConnectedHost,
  given: string,
  { file, name, entry }: { readonly file: string; readonly name: string; readonly entry: ServerEntry },
): Promise<EditedFile> {
  const mark = given.startsWith("\uFEFF") ? "\uFEFF" : "";
  const text = given.slice(mark.length);
  const { member, isToml } = SHAPES[host];
  const shape: FileShape = { file, member, name, entry: toHostEntry(host, entry) };
  const edited =
    isToml === true ? await editToml(text, shape, await hostBlock(host, name, entry)) : editJson(text, shape);
  return { ...edited, text: `${mark}${edited.text}` };
}

interface FileShape {
  readonly file: string;
  readonly member: string;
  readonly name: string;
  readonly entry: object;
}

function editJson(text: string, shape: FileShape): EditedFile {
  const { file, member, name, entry } = shape;
  if (text.trim() === "")
    return {
      text: `${JSON.stringify({ [member]: { [name]: entry } }, undefined, 2)}\n`,
      change: "added",
      others: 0,
    };
  const root = readJson(text, file);
  const servers = root.members?.get(member)?.node;
  for (const [node, what] of [[root, "the file"] as const, [servers, `"${member}"`] as const]) {
    if (node !== undefined && node.members === undefined)
      throw new CommandError(
        `${toPlace(text, file, node.offset)}  ${what} is not an object; nothing was written.`,
      );
  }
  const before = servers?.members?.get(name)?.node;
  const others = (servers?.members?.size ?? 0) - (before === undefined ? 0 : 1);
  if (before !== undefined && isDeepStrictEqual(before.value, entry)) return { text, change: "none", others };
  const step = /^([ \t]+)"/m.exec(text)?.[1] ?? "  ";
  const value = (depth: number, of: unknown): string =>
    JSON.stringify(of, undefined, step).replaceAll("\n", `\n${step.repeat(depth)}`);
  const into = (node: TextNode, depth: number, [key, of]: readonly [string, unknown]): string => {
    const end = node.members?.size === 0 ? `\n${step.repeat(depth - 1)}` : ",";
    const added = `\n${step.repeat(depth)}${JSON.stringify(key)}: ${value(depth, of)}${end}`;
    return `${text.slice(0, node.offset + 1)}${added}${text.slice(node.offset + 1).replace(node.members?.size === 0 ? /^\s*/ : /^/, "")}`;
  };
  const edited =
    before !== undefined
      ? `${text.slice(0, before.offset)}${value(2, entry)}${text.slice(before.end)}`
      : servers !== undefined
        ? into(servers, 2, [name, entry])
        : into(root, 1, [member, { [name]: entry }]);
  assertKept(root.value, readJson(edited, file).value, shape);
  return { text: edited, change: before === undefined ? "added" : "replaced", others };
}

function readJson(text: string, file: string): TextNode {
  try {
    return readJsonText(text, MOST_DEPTH, { uniqueNames: true });
  } catch (thrown) {
    if (!(thrown instanceof TextMistake)) throw thrown;
    throw new CommandError(`${toPlace(text, file, thrown.offset)}  ${thrown.message} Nothing was written.`);
  }
}

async function editToml(text: string, shape: FileShape, block: string): Promise<EditedFile> {
  const { member, name, entry } = shape;
  const before = await readToml(text, shape.file);
  const servers = before[member];
  const known = isPlainObject(servers) && Object.hasOwn(servers, name) ? servers[name] : undefined;
  const count = isPlainObject(servers) ? Object.keys(servers).length : 0;
  const others = count - (known === undefined ? 0 : 1);
  if (known !== undefined && isDeepStrictEqual(toPlain(known), entry))
    return { text, change: "none", others };
  const rest = known === undefined ? text : withoutTable(text, `${member}.${name}`);
  const gap = rest.trim() === "" ? "" : rest.endsWith("\n\n") ? "" : rest.endsWith("\n") ? "\n" : "\n\n";
  const edited = `${rest}${gap}${block}`;
  assertKept(before, await readToml(edited, shape.file, true), shape);
  return { text: edited, change: known === undefined ? "added" : "replaced", others };
}

/** A text without a table and those within it, where each begins with a line of its own. Comments behind the last value stay: they are of what follows. */
function withoutTable(text: string, path: string): string {
  let isOut = false;
  let kept = "";
  let behind = "";
  for (const line of text.split(/(?<=\n)/)) {
    const [, header] = /^\s*\[\[?\s*([^[\]]+)\]/.exec(line) ?? [];
    if (header !== undefined) {
      const name = header.trim();
      isOut = name === path || name.startsWith(`${path}.`);
    }
    if (!isOut) kept += behind + line;
    behind = isOut && /^\s*(?:#|$)/.test(line) ? behind + line : "";
  }
  return kept + behind;
}

async function readToml(text: string, file: string, isEdited = false): Promise<Record<string, unknown>> {
  const { parse, TomlError } = await import("smol-toml");
  try {
    return parse(text) as Record<string, unknown>;
  } catch (thrown) {
    if (!(thrown instanceof TomlError)) throw thrown;
    if (isEdited) throw byHand(file);
    throw new CommandError(`${file}:${thrown.line}:${thrown.column}  This is not TOML. Nothing was written.`);
  }
}

function toPlain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

function assertKept(before: unknown, now: unknown, { file, member, name, entry }: FileShape): void {
  const wanted = structuredClone(before) as Record<string, Record<string, unknown>>;
  wanted[member] = { ...wanted[member], [name]: entry };
  if (!isDeepStrictEqual(JSON.stringify(sorted(now)), JSON.stringify(sorted(wanted)))) throw byHand(file);
}

/** The same data with members in one order, whatever classes parsers give their objects. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null || value instanceof Date) return value;
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return members.map(([key, member]) => [key, sorted(member)]);
}

function byHand(file: string): CommandError {
  return new CommandError(
    `${file} is written in a way that cannot be changed without touching the rest; put the block there by hand. Nothing was written.`,
  );
}
