import { CallError } from "../../../core/errors/errors.ts";
import { isFramingHeader, isHeaderValue, isToken } from "../header-rules.ts";
import type { OutgoingRequest, RequestDraft } from "../http-message.ts";
import type { TransportLimits } from "../openapi-options.ts";
import { shown } from "./invalid-input.ts";
import { hasDotSegment } from "./path-template.ts";

/** The bounds of a request when none are given. */
const REQUEST_LIMITS = { requestBytes: 33_554_432, urlCharacters: 32_768 } as const;

/** All but what RFC 3986 lets a path hold. */
const NO_PATH = /[^\w\-.~!$&'()*+,;=:@%/]/;

/** The same for a query. */
const NO_QUERY = /[^\w\-.~!$&'()*+,;=:@%/?]/;

/** A percent sign that escapes nothing. */
const NO_ESCAPE = /%(?![0-9A-Fa-f]{2})/;

/** What cannot be a cookie, or is more than one. */
const NO_COOKIE = /[^!-:<-~]/;

/**
 * Joins what a draft holds, and looks at all of it once more, whoever wrote it. A path that passes is one that every URL parser
 * leaves as it is: no character that needs escaping, no dot segment.
 */
export function finishRequest(draft: RequestDraft, limits: TransportLimits): OutgoingRequest {
  const { method, origin, path, query, cookies, headers, body } = draft;
  if (!isToken(method) || method === "CONNECT") throw unsendable("method");
  if (path.charCodeAt(0) !== 47 || NO_PATH.test(path) || NO_ESCAPE.test(path) || hasDotSegment(path)) {
    throw unsendable("path");
  }
  const joined = query.length === 0 ? "" : `?${query.join("&")}`;
  if (joined !== "" && (NO_QUERY.test(joined) || NO_ESCAPE.test(joined))) throw unsendable("query");
  const most = limits.urlCharacters ?? REQUEST_LIMITS.urlCharacters;
  if (origin.length + path.length + joined.length > most) {
    throw tooLarge(`The address of the request is longer than ${most} characters.`);
  }
  for (const name of Object.keys(headers)) checkHeader(name, headers[name]);
  checkBodySize(body, limits);
  const sent = cookies.length === 0 ? headers : withCookies(headers, cookies);
  return { method, origin, path: path + joined, headers: sent, body };
}

/** Refuses a body that is larger than the limit. */
export function checkBodySize(body: string | Uint8Array | undefined, limits: TransportLimits): void {
  const most = limits.requestBytes ?? REQUEST_LIMITS.requestBytes;
  if (body === undefined || (typeof body === "string" && body.length * 3 <= most)) return;
  const size = typeof body === "string" ? Buffer.byteLength(body) : body.byteLength;
  if (size > most) throw tooLarge(`The body of the request is larger than ${most} bytes.`);
}

function checkHeader(name: string, value: unknown): void {
  const isRight =
    isToken(name) && !isFramingHeader(name) && typeof value === "string" && isHeaderValue(value);
  if (!isRight) throw unsendable(`header ${shown(name)}`);
}

/** Cookies join those of a header that is declared as such. */
function withCookies(headers: Readonly<Record<string, string>>, cookies: readonly string[]) {
  if (cookies.some((cookie) => NO_COOKIE.test(cookie))) throw unsendable("cookies");
  const { cookie } = headers;
  const all = cookie === undefined || cookie === "" ? cookies : [cookie, ...cookies];
  return { ...headers, cookie: all.join("; ") };
}

function unsendable(what: string): CallError {
  const message = `The request cannot be sent: what was made of the input is not valid in its ${what}.`;
  return new CallError("VALIDATION_ERROR", message, { stack: false });
}

function tooLarge(message: string): CallError {
  return new CallError("TOO_LARGE", message, { stack: false });
}
