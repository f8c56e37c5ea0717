import { homedir } from "node:os";
import { dirname, isAbsolute, resolve, sep } from "node:path";
import { isPlainObject } from "../../core/json/json-value.ts";
import { checkDelay, checkOption } from "../../core/options/check-options.ts";
import { collectOptionSecrets } from "../../core/secrets/collect-secrets.ts";
import { SecretMask } from "../../core/secrets/secret-mask.ts";
import { isSecretName } from "../../core/secrets/secret-names.ts";
import { checkPassedOn, type PassedOn, SourceSecrets } from "../../core/secrets/source-secrets.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import { childEnv } from "../channels/child-env.ts";
import type { McpTransport } from "../channels/transport-channel.ts";
import { MCP_LOG_LEVELS, type McpLogLevel } from "../provider.ts";
import { checkHttpOptions, type HttpConnectionOptions } from "./http-options.ts";
import { type McpLimits, toMcpLimits } from "./mcp-limits.ts";
import { toPlainLine } from "./plain-line.ts";

/** A server that is started as a child process. */
export interface StdioConnectionOptions {
  readonly command: string;
  readonly args?: readonly string[] | undefined;
  /** Added to the short list of variables that every child gets. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly cwd?: string | undefined;
  /** Names of further variables of this process that the child gets, or all of them. */
  readonly inheritEnv?: readonly string[] | "all" | undefined;
}

/** A server behind a transport of the caller's own making; it is called anew for every connection. */
export interface CustomConnectionOptions {
  readonly transport: () => McpTransport;
}

/** Times between attempts to make a lost connection again; each is shortened at random by up to a quarter. */
export interface ReconnectOptions {
  /** @default 500 */
  readonly initialMs?: number | undefined;
  /** @default 30_000 */
  readonly maxMs?: number | undefined;
  /** @default 2 */
  readonly factor?: number | undefined;
}

/** What every connection may be told. */
export interface ConnectionSettings extends PassedOn {
  /** The revisions to speak; "auto" asks the server, and falls back to 2025. @default "auto" */
  readonly protocol?: "auto" | "2025" | "2026" | undefined;
  /** @default `{ name: "waybill", … }` with the version of this package */
  readonly clientInfo?: { readonly name: string; readonly version: string } | undefined;
  /** The folders a server may be interested in. @default none */
  readonly roots?: readonly { readonly uri: string; readonly name?: string }[] | undefined;
  /** How long a request may take that says nothing else. @default 60_000 */
  readonly timeoutMs?: number | undefined;
  /** How long making a connection may take, starting the process included. @default 30_000 */
  readonly connectTimeoutMs?: number | undefined;
  /** False leaves a lost connection lost. @default the defaults of `ReconnectOptions` */
  readonly reconnect?: ReconnectOptions | false | undefined;
  readonly limits?: Partial<McpLimits> | undefined;
  /** The least important log message to be sent. @default the server's choice */
  readonly logLevel?: McpLogLevel | undefined;
}

/** How to reach one MCP server. */
export type McpConnectionOptions = ConnectionSettings &
  (StdioConnectionOptions | HttpConnectionOptions | CustomConnectionOptions);

/**
 * Names the server for people: its namespace, and the program or the host; never where a program is, nor arguments, paths or queries,
 * which may hold secrets.
 */
export function nameServer(
  options: McpConnectionOptions & { readonly namespace?: string | undefined },
): string {
  const place = placeOf(options);
  const { namespace } = options;
  if (namespace === undefined) return place === undefined ? "The MCP server" : `MCP server ${place}`;
  const shown = "command" in options ? programOf(options.command) : place;
  return `MCP server "${namespace}"${shown === undefined ? "" : ` (${shown})`}`;
}

function placeOf(options: McpConnectionOptions): string | undefined {
  if ("command" in options) return `"${programOf(String(options.command))}"`;
  if (!("url" in options)) return undefined;
  const text = String(options.url);
  return toPlainLine(parseUrl(text) !== undefined ? new URL(text).host : "of a malformed URL", 120);
}

/** Names the program of a command, without the folder it is in. */
export function programOf(command: string): string {
  return toPlainLine(command.split(/[\\/]/).findLast((part) => part.trim() !== "") ?? command, 120);
}

/** Finds what of the options is a credential, and which paths of this machine the server knows from them. */
export function secretsOf(options: McpConnectionOptions): SourceSecrets {
  const known = new SecretMask();
  const { said: _, maskResults: __, secrets: ___, ...given } = options;
  collectOptionSecrets({ ...given }, ["mcpServers", ""], known);
  if (!("command" in options)) return new SourceSecrets(known, options);
  const { command, cwd, env = {}, inheritEnv } = options;
  const inherited = inheritEnv === undefined ? [] : Object.entries(childEnv({ inheritEnv }));
  for (const [name, value] of inherited) if (isSecretName(name)) known.add(value);
  const folders = [
    cwd,
    process.cwd(),
    homedir(),
    env["HOME"],
    /[\\/]/.test(command) ? dirname(command) : undefined,
  ];
  return new SourceSecrets(known, options, pathsOf(folders));
}

/** Folders that say something about this machine, the longest first; `/` and `/usr` do not. */
function pathsOf(folders: readonly (string | undefined)[]): readonly string[] {
  const absolute = folders.filter((folder) => folder !== undefined && isAbsolute(folder)) as string[];
  const telling = absolute
    .map((folder) => resolve(folder))
    .filter((folder) => folder.split(sep).length > 2 || folder === homedir());
  return [...new Set(telling)].sort((a, b) => b.length - a.length);
}

/** Refuses options that cannot work with a `TypeError`. */
export function checkConnectionOptions(options: McpConnectionOptions): void {
  const kinds = ["command", "url", "transport"].filter((key) => Object.hasOwn(options, key));
  if (kinds.length !== 1) {
    throw new TypeError(`An MCP connection takes one of command, url and transport; it has ${kinds.length}.`);
  }
  if ("command" in options) checkCommand(options);
  else if ("url" in options) checkHttpOptions(options);
  else if (typeof options.transport !== "function") {
    throw new TypeError("transport must be a function that makes a transport.");
  }
  checkSettings(options);
  checkReconnect(options.reconnect);
}

function checkCommand({ command, args }: StdioConnectionOptions): void {
  if (typeof command !== "string" || command === "")
    throw new TypeError("command must be the name of a program.");
  const isStrings = Array.isArray(args) && args.every((arg) => typeof arg === "string");
  checkOption("args", args, "a list of strings", isStrings);
}

const PROTOCOLS: readonly unknown[] = ["auto", "2025", "2026"];

function checkSettings(options: ConnectionSettings): void {
  const { protocol, roots, logLevel, clientInfo, limits } = options;
  if (protocol !== undefined && !PROTOCOLS.includes(protocol)) {
    const year = /^(2025|2026)-\d\d-\d\d$/.exec(String(protocol))?.[1];
    const hint = year === undefined ? "" : `; write "${year}"`;
    throw new TypeError(`protocol must be "auto", "2025" or "2026"${hint}.`);
  }
  checkPassedOn(options);
  checkDelay("timeoutMs", options.timeoutMs);
  checkDelay("connectTimeoutMs", options.connectTimeoutMs);
  const levels = `one of ${MCP_LOG_LEVELS.map((level) => `"${level}"`).join(", ")}`;
  checkOption("logLevel", logLevel, levels, MCP_LOG_LEVELS.includes(logLevel as McpLogLevel));
  const isRoots = Array.isArray(roots) && roots.every((root) => typeof root?.uri === "string");
  checkOption("roots", roots, "a list of objects with a uri", isRoots);
  const { name, version }: Record<string, unknown> = isPlainObject(clientInfo) ? clientInfo : {};
  const isNamed = typeof name === "string" && typeof version === "string";
  checkOption("clientInfo", clientInfo, "an object with a name and a version", isNamed);
  checkOption("limits", limits, "an object", isPlainObject(limits));
  toMcpLimits(limits);
}

function checkReconnect(reconnect: ConnectionSettings["reconnect"]): void {
  checkOption("reconnect", reconnect, "an object or false", reconnect === false || isPlainObject(reconnect));
  if (!reconnect) return;
  checkDelay("reconnect.initialMs", reconnect.initialMs);
  checkDelay("reconnect.maxMs", reconnect.maxMs);
  const { factor } = reconnect;
  const isFactor = typeof factor === "number" && Number.isFinite(factor) && factor >= 1;
  checkOption("reconnect.factor", factor, "a number from 1 on", isFactor);
}
