import type { Transport } from "@modelcontextprotocol/client";
import type { McpLogLevel } from "../provider.ts";
import type { HttpConnectionOptions } from "./http-options.ts";
import type { McpLimits } from "./mcp-limits.ts";
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
  readonly transport: () => Transport;
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
export interface ConnectionSettings {
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

/** Names the server for people: the command, or the host; never arguments, paths or queries, which may hold secrets. */
export function nameServer(options: McpConnectionOptions): string {
  if ("command" in options) return `MCP server "${toPlainLine(String(options.command), 120)}"`;
  if (!("url" in options)) return "The MCP server";
  const url = URL.canParse(options.url) ? new URL(options.url).host : "of a malformed URL";
  return `MCP server ${toPlainLine(url, 120)}`;
}

/** Refuses options that cannot work with a `TypeError`. */
export function checkConnectionOptions(options: McpConnectionOptions): void {
  const kinds = ["command", "url", "transport"].filter((key) => Object.hasOwn(options, key));
  if (kinds.length !== 1) {
    throw new TypeError(`An MCP connection takes one of command, url and transport; it has ${kinds.length}.`);
  }
  checkDelay("timeoutMs", options.timeoutMs);
  checkDelay("connectTimeoutMs", options.connectTimeoutMs);
  if (options.reconnect) {
    checkDelay("reconnect.initialMs", options.reconnect.initialMs);
    checkDelay("reconnect.maxMs", options.reconnect.maxMs);
    const { factor } = options.reconnect;
    if (factor !== undefined && !(Number.isFinite(factor) && factor >= 1)) {
      throw new TypeError(`reconnect.factor must be a number from 1 on; it is ${String(factor)}.`);
    }
  }
}

function checkDelay(name: string, value: number | undefined): void {
  if (value === undefined || (typeof value === "number" && value >= 0)) return;
  throw new TypeError(`${name} must be a number of milliseconds, 0 or more; it is ${String(value)}.`);
}
