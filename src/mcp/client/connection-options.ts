import { homedir } from "node:os";
import { dirname, isAbsolute, resolve, sep } from "node:path";
import type { Identity } from "../../core/access/identity.ts";
import type { FailureCause } from "../../core/errors/failure.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import {
  checkDelay,
  checkNames,
  checkOption,
  completeLimits,
  describeValue,
} from "../../core/options/check-options.ts";
import { collectOptionSecrets } from "../../core/secrets/collect-secrets.ts";
import { checkPassedOn, type PassedOn, SecretMask, SourceSecrets } from "../../core/secrets/secret-mask.ts";
import { isSecretName } from "../../core/secrets/secret-names.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import { LOOPBACK } from "../../http/address-guard.ts";
import type { OAuthStore } from "../../http/oauth/oauth-store.ts";
import type { McpTransport } from "../channels/channel.ts";
import { childEnv } from "../channels/child-process.ts";
import { MCP_LOG_LEVELS, type McpLogLevel } from "../provider.ts";
import { toPlainLine } from "./plain-line.ts";

/** A server that is started as a child process. */
export interface StdioTarget {
  readonly command: string;
  readonly args?: readonly string[] | undefined;
  /** Added to the short list of variables that every child gets. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly cwd?: string | undefined;
  /** Names of further variables of this process that the child gets, or all of them. */
  readonly inheritEnv?: readonly string[] | "all" | undefined;
}

/** A server behind a transport of the caller's own making; it is called anew for every connection. */
export interface TransportTarget {
  readonly transport: () => McpTransport;
}

/** Times between attempts to make a lost connection again, without an end; each is shortened at random by up to a quarter. */
export interface ReconnectOptions {
  /** Milliseconds before the first attempt; doubled for each further one. @default 500 */
  readonly delayMs?: number | undefined;
  /** @default 30_000 */
  readonly maxDelayMs?: number | undefined;
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

/** Which MCP server: its address, a program to start, an address with its transport, or a transport of your own. */
export type McpTarget = string | URL | StdioTarget | HttpTarget | TransportTarget;

/** How to reach one MCP server: which, and all that connections may be told. */
export type McpConnectionOptions = ConnectionSettings &
  (StdioTarget | HttpConnectionOptions | TransportTarget);

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

function checkCommand({ command, args }: StdioTarget): void {
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
  checkDelay("reconnect.delayMs", reconnect.delayMs);
  checkDelay("reconnect.maxDelayMs", reconnect.maxDelayMs);
}

/** What a token or headers are needed for. */
export interface McpCredentialRequest {
  /** Whose request they go with; nothing for an anonymous caller, and for what a connection does of its own accord: it opens, lists, and listens. */
  readonly identity: Identity | undefined;
}

/** A value, or how to get one each time it is needed. */
export type Given<T> = T | ((request: McpCredentialRequest) => T | Promise<T>);

/** A server behind an address. */
export interface HttpTarget {
  readonly url: string | URL;
  /** The transport to use: streamable HTTP, or the old HTTP+SSE of 2024-11-05. @default streamable HTTP, and the old one where a server does not take it */
  readonly type?: "streamable-http" | "sse" | undefined;
}

/** How Waybill shows a server who is calling: a token for `Authorization: Bearer`, or OAuth (see `createOAuthStore`). */
export type McpAuth =
  | { readonly bearer: Given<string>; readonly oauth2?: undefined }
  | { readonly oauth2: OAuthStore; readonly bearer?: undefined };

/** What requests to a server behind an address are sent with. */
export interface HttpSettings {
  readonly auth?: McpAuth | undefined;
  /** Sent with every request to the server, and to nobody else. @default none */
  readonly headers?: Given<Readonly<Record<string, string>>> | undefined;
  /** @default the platform's */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** Allows plain http to hosts other than this machine. @default false */
  readonly allowHttp?: boolean | undefined;
}

/** A server behind an address, and what requests to it are sent with. */
export type HttpConnectionOptions = HttpTarget & HttpSettings;

/** Headers that belong to the transport: setting them would make message and headers disagree, or split a request. */
const RESERVED =
  /^(?:host|content-length|content-type|transfer-encoding|connection|keep-alive|upgrade|te|trailer|expect|accept|last-event-id|mcp-.*)$/i;

/** Refuses options that cannot work with a `TypeError`, which shows no secret. */
function checkHttpOptions(options: HttpConnectionOptions): void {
  const { headers, auth, fetch, type } = options;
  toServerUrl(options);
  const isType = type === "streamable-http" || type === "sse";
  checkOption("type", type, '"streamable-http" or "sse"', isType);
  const isHeaders = isPlainObject(headers) || typeof headers === "function";
  checkOption("headers", headers, "an object of strings, or a function that gives one", isHeaders);
  if (isPlainObject(headers)) toSafeHeaders(headers);
  checkOption("auth", auth, "{ bearer } or { oauth2 }", isPlainObject(auth));
  if (auth !== undefined) checkAuth(auth);
  checkOption("fetch", fetch, "a function", typeof fetch === "function");
}

function checkAuth(auth: McpAuth): void {
  checkNames(auth, ["bearer", "oauth2"], "auth.");
  const { bearer, oauth2 } = auth;
  if ((bearer === undefined) === (oauth2 === undefined))
    throw new TypeError("auth takes one of bearer and oauth2.");
  if (bearer !== undefined && typeof bearer !== "function") toToken(bearer);
  const isStore = typeof oauth2 === "object" && oauth2 !== null;
  checkOption("auth.oauth2", oauth2, "made by createOAuthStore()", isStore);
}

/** Takes a token that can stand in a header; any other is a `TypeError` that does not show it. */
export function toToken(bearer: unknown): string {
  if (typeof bearer !== "string") {
    throw new TypeError(
      `auth.bearer must be a string or a function that gives one; it is ${describeValue(bearer)}.`,
    );
  }
  if (!/^[\x21-\x7e]+$/.test(bearer)) {
    throw new TypeError(
      "auth.bearer must be a token that can stand in a header: visible ASCII without white space.",
    );
  }
  return bearer;
}

const ALLOW_HTTP = "use https, or set allowHttp";

/** A server on another machine is addressed without encryption. */
class PlainHttpError extends TypeError {
  readonly failure: FailureCause = { reason: "plain-http", advice: ALLOW_HTTP };

  constructor(host: string) {
    super(`Plain http to ${host} could be read on the way; ${ALLOW_HTTP}.`);
  }
}

/** Reads the URL; plain http to another machine, credentials in it, or another scheme are a `TypeError`. */
export function toServerUrl(options: HttpConnectionOptions): URL {
  const text = String(options.url);
  assertScheme(text);
  const url = new URL(text);
  if (url.username !== "" || url.password !== "") {
    throw new TypeError("The url of an MCP server must not hold credentials; use auth or headers.");
  }
  if (url.protocol === "http:" && !LOOPBACK.test(url.hostname) && options.allowHttp !== true) {
    throw new PlainHttpError(url.host);
  }
  return url;
}

function assertScheme(text: string): void {
  if (/^https?:/i.test(text) && parseUrl(text) !== undefined) return;
  // "localhost:3000" reads as a URL of the scheme "localhost:".
  const guess = /^[\w.-]+(?::\d{1,5})?(?:\/|$)/.test(text) ? `http://${text}` : "";
  if (parseUrl(guess) !== undefined) {
    const { host, hostname } = new URL(guess);
    const scheme = LOOPBACK.test(hostname) ? "http" : "https";
    throw new TypeError(`The url of an MCP server needs a scheme; write ${scheme}://${host}.`);
  }
  if (parseUrl(text) === undefined) throw new TypeError("The url of an MCP server must be an absolute URL.");
  throw new TypeError(`The url of an MCP server must be https or http; it is ${new URL(text).protocol}`);
}

/** Checks headers before they are sent: names and values that HTTP allows, and none that the transport owns. */
export function toSafeHeaders(given: Readonly<Record<string, string>>): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(given)) {
    if (RESERVED.test(name)) throw new TypeError(`The header ${name} belongs to the transport.`);
    // Outer white space would be dropped without a word.
    if (typeof value !== "string" || value.trim() !== value) {
      throw new TypeError(`The value of the header ${name} must be a string without white space around it.`);
    }
    headers.set(name, value);
  }
  return headers;
}

/** Takes a value as it is, or asks for it. */
export async function resolveGiven<T extends object | string>(
  given: Given<T>,
  request: McpCredentialRequest,
): Promise<T> {
  return typeof given === "function" ? await given(request) : given;
}

/** Bounds on what a server may send, on how often it may ask, and on how long its tasks are waited for. */
export interface McpLimits {
  /** Bytes of one message. @default 67_108_864 */
  readonly messageBytes: number;
  /** Characters of one question to a caller, written as JSON. @default 1_048_576 */
  readonly questionLength: number;
  /** Rounds of questions of one request (2026-07-28). @default 8 */
  readonly rounds: number;
  /** Questions of one round. @default 16 */
  readonly questions: number;
  /** Questions waiting for an answer at once, over all requests. @default 64 */
  readonly openQuestions: number;
  /** Milliseconds that a task may run where its call has no deadline. @default 86_400_000 */
  readonly taskMs: number;
  /** Milliseconds for which a server may be away while a task of it is waited for. @default 600_000 */
  readonly taskSilenceMs: number;
}

/** The limits in force where none are given. */
export const MCP_LIMITS: McpLimits = {
  messageBytes: 67_108_864,
  questionLength: 1_048_576,
  rounds: 8,
  questions: 16,
  openQuestions: 64,
  taskMs: 86_400_000,
  taskSilenceMs: 600_000,
};

/** Completes the limits given; one that is no positive integer is a `TypeError`. */
export function toMcpLimits(given: Partial<McpLimits> | undefined): McpLimits {
  return completeLimits(MCP_LIMITS, given, notPositive);
}

/** Says of a limit what it must be. */
export function notPositive(value: unknown): string {
  return `must be a positive integer; it is ${String(value)}`;
}
