import type { CallError } from "../../../core/errors/errors.ts";
import { parseUrl } from "../../../core/text/parse-url.ts";
import type { OutgoingRequest } from "../http-message.ts";
import { type Sent, transportError } from "./transport-errors.ts";

/** The only headers that go along to another origin: whatever else there is may be a credential. */
const HARMLESS: ReadonlySet<string> = new Set(["accept", "accept-encoding", "user-agent"]);

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Where a response sends. */
export interface Redirect {
  readonly status: number;
  /** As the header has it, each character a byte; a list where it was there more than once. */
  readonly location: string | readonly string[];
  /** The longest address that is followed. */
  readonly urlCharacters: number;
}

/** Tells whether a status sends elsewhere. */
export function isRedirect(status: number): boolean {
  return REDIRECTS.has(status);
}

/**
 * Makes the next request of a redirect, or throws where following it could do harm: credentials and bodies stay on their
 * origin, what was secure stays secure, and what changes something is not turned into what reads.
 */
export function toNextHop(request: OutgoingRequest, redirect: Redirect, sent: Sent): OutgoingRequest {
  const { status } = redirect;
  const url = toUrl(request, redirect, sent);
  const isSameOrigin = url.origin === request.origin;
  if (request.origin.startsWith("https:") && url.protocol === "http:") {
    throw refused("redirects from https to http", sent);
  }
  const isRead = request.method === "GET" || request.method === "HEAD";
  const keepsBody = status !== 303;
  if (!isRead && (status === 301 || status === 302)) {
    throw refused(`redirects a ${request.method} request with status ${status}`, sent);
  }
  if (keepsBody && !isSameOrigin && (!isRead || request.body !== undefined)) {
    throw refused(`redirects a ${request.method} request with a body to another origin`, sent);
  }
  return {
    method: keepsBody || isRead ? request.method : "GET",
    origin: url.origin,
    path: `${url.pathname}${url.search}`,
    headers: keptHeaders(request.headers, isSameOrigin, keepsBody),
    body: keepsBody ? request.body : undefined,
  };
}

function toUrl(request: OutgoingRequest, { location, urlCharacters }: Redirect, sent: Sent): URL {
  if (typeof location !== "string") throw unusable(sent);
  const text = Buffer.from(location, "latin1").toString("utf8");
  const base = `${request.origin}${request.path}`;
  if (text.length > urlCharacters || parseUrl(text, base) === undefined) throw unusable(sent);
  const url = new URL(text, base);
  if (url.protocol !== "http:" && url.protocol !== "https:") throw unusable(sent);
  if (url.username !== "" || url.password !== "" || url.href.length > urlCharacters) throw unusable(sent);
  return url;
}

function keptHeaders(
  headers: OutgoingRequest["headers"],
  isSameOrigin: boolean,
  keepsBody: boolean,
): Record<string, string> {
  const isKept = (name: string): boolean => {
    if (!isSameOrigin) return HARMLESS.has(name);
    return keepsBody || !name.startsWith("content-");
  };
  return Object.fromEntries(Object.entries(headers).filter(([name]) => isKept(name)));
}

function refused(what: string, sent: Sent): CallError {
  return transportError(
    { code: "ACCESS_DENIED", says: `${what}, which is not followed`, lasting: true },
    sent,
  );
}

function unusable(sent: Sent): CallError {
  return transportError(
    { code: "OUTPUT_INVALID", says: "redirects to an address that cannot be used" },
    sent,
  );
}
