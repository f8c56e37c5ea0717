import { isPlainObject } from "../../core/json/json-value.ts";
import { checkOption, describeValue } from "../../core/options/check-options.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import type { OAuthStore } from "./oauth-store.ts";

/** A value, or how to get one each time it is needed. */
export type Given<T> = T | (() => T | Promise<T>);

/** A server behind an address. */
export interface HttpConnectionOptions {
  readonly url: string | URL;
  /** The transport to use: streamable HTTP, or the old HTTP+SSE of 2024-11-05. @default streamable HTTP, and the old one where a server does not take it */
  readonly type?: "streamable-http" | "sse" | undefined;
  /** Sent with every request to the server, and to nobody else. @default none */
  readonly headers?: Given<Readonly<Record<string, string>>> | undefined;
  /** A token for `Authorization: Bearer`. @default none */
  readonly bearer?: Given<string> | undefined;
  /** See `createOAuthStore`. @default no OAuth */
  readonly auth?: OAuthStore | undefined;
  /** @default the platform's */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** Allows plain http to hosts other than this machine. @default false */
  readonly allowHttp?: boolean | undefined;
}

/** Names of this machine, as URLs spell them. */
export const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/i;

/** Headers that belong to the transport: whoever sets them would make message and headers disagree, or split a request. */
const RESERVED =
  /^(?:host|content-length|content-type|transfer-encoding|connection|keep-alive|upgrade|te|trailer|expect|accept|last-event-id|mcp-.*)$/i;

/** Refuses options that cannot work with a `TypeError`, which shows no secret. */
export function checkHttpOptions(options: HttpConnectionOptions): void {
  const { headers, bearer, auth, fetch, type } = options;
  toServerUrl(options);
  const isType = type === "streamable-http" || type === "sse";
  checkOption("type", type, '"streamable-http" or "sse"', isType);
  const isHeaders = isPlainObject(headers) || typeof headers === "function";
  checkOption("headers", headers, "an object of strings, or a function that gives one", isHeaders);
  if (isPlainObject(headers)) toSafeHeaders(headers);
  if (bearer !== undefined && typeof bearer !== "function") toToken(bearer);
  if (auth !== undefined && bearer !== undefined) {
    throw new TypeError("An MCP connection takes bearer or auth, not both.");
  }
  checkOption("auth", auth, "made by createOAuthStore()", typeof auth === "object" && auth !== null);
  checkOption("fetch", fetch, "a function", typeof fetch === "function");
}

/** Takes a token that can stand in a header; any other is a `TypeError` that does not show it. */
export function toToken(bearer: unknown): string {
  if (typeof bearer !== "string") {
    throw new TypeError(
      `bearer must be a string or a function that gives one; it is ${describeValue(bearer)}.`,
    );
  }
  if (!/^[\x21-\x7e]+$/.test(bearer)) {
    throw new TypeError(
      "bearer must be a token that can stand in a header: visible ASCII without white space.",
    );
  }
  return bearer;
}

/** Reads the URL; plain http to another machine, credentials in it, or another scheme are a `TypeError`. */
export function toServerUrl(options: HttpConnectionOptions): URL {
  const text = String(options.url);
  assertScheme(text);
  const url = new URL(text);
  if (url.username !== "" || url.password !== "") {
    throw new TypeError("The url of an MCP server must not hold credentials; use bearer or headers.");
  }
  if (url.protocol === "http:" && !LOOPBACK.test(url.hostname) && options.allowHttp !== true) {
    throw new TypeError(`Plain http to ${url.host} could be read on the way; use https, or set allowHttp.`);
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
export async function resolveGiven<T extends object | string>(given: Given<T>): Promise<T> {
  return typeof given === "function" ? await given() : given;
}
