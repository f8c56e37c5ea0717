import type { OAuthStore } from "./oauth-store.ts";

/** A value, or how to get one each time it is needed. */
export type Given<T> = T | (() => T | Promise<T>);

/** A server behind streamable HTTP. */
export interface HttpConnectionOptions {
  readonly url: string;
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

/** Reads the URL; plain http to another machine, credentials in it, or another scheme are a `TypeError`. */
export function toServerUrl(options: HttpConnectionOptions): URL {
  if (!URL.canParse(options.url)) throw new TypeError("The url of an MCP server must be an absolute URL.");
  const url = new URL(options.url);
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    throw new TypeError(`The url of an MCP server must be https or http; it is ${url.protocol}`);
  }
  if (url.username !== "" || url.password !== "") {
    throw new TypeError("The url of an MCP server must not hold credentials; use bearer or headers.");
  }
  if (url.protocol === "http:" && !LOOPBACK.test(url.hostname) && options.allowHttp !== true) {
    throw new TypeError(`Plain http to ${url.host} could be read on the way; use https, or set allowHttp.`);
  }
  return url;
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
