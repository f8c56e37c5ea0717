import type { AnswerHeaders, HttpAnswer, Refusal, RequestHead } from "./exchange.ts";

/** From where an endpoint may be reached. */
export interface HostGuardOptions {
  /**
   * Names this endpoint is reached under besides those of the loopback interface, each with or without a port. `"any"` gives up
   * the protection against DNS rebinding. @default loopback names only
   */
  readonly hosts?: readonly string[] | "any" | undefined;
  /** Origins of web pages that may use this endpoint, such as `https://app.example`; they get CORS headers. @default none */
  readonly origins?: readonly string[] | undefined;
}

/** What pages of the allowed origins may send and read; header names in lower case. */
export interface CorsRules {
  readonly methods: readonly string[];
  readonly requestHeaders: readonly string[];
  /** Finds further headers a page may send, among those it asks for. @default none */
  readonly isRequestHeader?: ((name: string) => boolean) | undefined;
  readonly exposedHeaders: readonly string[];
}

/** Decides by `Host`, `Origin` and `Sec-Fetch-Site` whether a request is heard, and tells browsers so. */
export interface HostGuard {
  /** Refuses a request, or lets it pass by returning nothing; `isPage` says that people may come to it from other sites. */
  check(request: RequestHead, isPage?: boolean): Refusal | undefined;
  /** Answers a browser that asks in advance; nothing where that is not for this origin. */
  preflight(request: RequestHead): HttpAnswer | undefined;
  /** The headers that make an answer readable for the page that asked; nothing where it may not read it. */
  corsHeaders(request: RequestHead): AnswerHeaders | undefined;
}

const LOOPBACK = new Set(["localhost", "127.0.0.1", "[::1]"]);
const HOST = /^(\[[0-9a-f:.]{2,45}\]|[a-z0-9._-]{1,253})(?::(\d{1,5}))?$/;
const ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/[^/?#\s]+$/;
const HEADER = /^[a-z0-9!#$%&'*+.^_`|~-]{1,256}$/;

/** Creates a guard; a malformed host or origin is a `TypeError`. */
export function createHostGuard(options: HostGuardOptions, cors: CorsRules): HostGuard {
  const isHost = readHosts(options.hosts ?? []);
  const origins = readOrigins(options.origins ?? []);
  const sameHost = options.hosts !== "any";
  const check = (request: RequestHead, isPage = false): Refusal | undefined => {
    const host = hostOf(request);
    if (!isHost(host)) {
      return forbidden("This host name is not served here; add it to `hosts` if it should be.");
    }
    const origin = request.header("origin");
    if (origin !== undefined && origins.has(origin)) return undefined;
    if (origin !== undefined && !isNearOrigin(origin, sameHost ? host : undefined)) {
      return forbidden("This origin may not use the endpoint; add it to `origins` if it should.");
    }
    if (!isFromElsewhere(request) || (isPage && isVisit(request))) return undefined;
    return forbidden(
      "Pages of other sites may not use the endpoint; add their origin to `origins` if they should.",
    );
  };
  const allowed = (request: RequestHead): string | undefined => {
    const origin = origins.size === 0 ? undefined : request.header("origin");
    return origin !== undefined && origins.has(origin) ? origin : undefined;
  };
  return {
    check,
    preflight(request) {
      const origin = allowed(request);
      return origin === undefined ? undefined : createPreflight(request, origin, cors);
    },
    corsHeaders(request) {
      const origin = allowed(request);
      return origin === undefined ? undefined : headersFor(origin, cors);
    },
  };
}

/** The host a request was sent to, as the client names it; the URL knows where the header has been taken away. */
function hostOf(request: RequestHead): string {
  return (request.header("host") ?? new URL(request.origin).host).toLowerCase();
}

function readHosts(hosts: readonly string[] | "any"): (host: string) => boolean {
  if (hosts === "any") return () => true;
  if (!Array.isArray(hosts)) throw new TypeError('hosts must be a list of host names, or "any".');
  const names = new Set(hosts.map((host) => String(host).toLowerCase()));
  for (const name of names) {
    if (!HOST.test(name))
      throw new TypeError(`hosts must be names such as "example.com:8080", not "${name}".`);
  }
  return (host) => {
    const [, name, port] = HOST.exec(host) ?? [];
    if (name === undefined || Number(port ?? 0) > 65_535) return false;
    return LOOPBACK.has(name) || names.has(name) || names.has(host);
  };
}

function readOrigins(origins: readonly string[]): ReadonlySet<string> {
  if (!Array.isArray(origins)) throw new TypeError("origins must be a list of origins.");
  for (const origin of origins) {
    if (typeof origin !== "string" || !ORIGIN.test(origin)) {
      throw new TypeError(`origins must be such as "https://app.example", without a path, not "${origin}".`);
    }
  }
  return new Set(origins);
}

/** Tells whether a page comes from this machine, or from the host it asks; the latter only means something for a checked host. */
function isNearOrigin(origin: string, host: string | undefined): boolean {
  const [, scheme, authority] = /^(https?):\/\/([^/?#@\s]+)$/.exec(origin.toLowerCase()) ?? [];
  if (scheme === undefined || authority === undefined) return false;
  const [, name] = HOST.exec(authority) ?? [];
  return name !== undefined && (LOOPBACK.has(name) || authority === host);
}

/** Tells whether a browser says that a page of another origin had it ask; a page sends no `Origin` with a plain GET. */
function isFromElsewhere(request: RequestHead): boolean {
  const site = request.header("sec-fetch-site");
  return site !== undefined && site !== "same-origin" && site !== "none";
}

/** Tells whether a person followed a link: the page they come from sees nothing of the answer. */
function isVisit(request: RequestHead): boolean {
  const isRead = request.method === "GET" || request.method === "HEAD";
  const isNavigation = request.header("sec-fetch-mode") === "navigate";
  return isRead && isNavigation && request.header("sec-fetch-dest") === "document";
}

function createPreflight(request: RequestHead, origin: string, cors: CorsRules): HttpAnswer {
  const { methods, requestHeaders, isRequestHeader = () => false } = cors;
  const wanted = (request.header("access-control-request-headers") ?? "").toLowerCase().split(",");
  const more = wanted.map((name) => name.trim()).filter((name) => HEADER.test(name) && isRequestHeader(name));
  const headers = {
    ...headersFor(origin, cors),
    "access-control-allow-methods": methods.join(", "),
    "access-control-allow-headers": [...requestHeaders, ...more].join(", "),
    "access-control-max-age": "600",
  };
  return { status: 204, headers, body: undefined };
}

function headersFor(origin: string, { exposedHeaders }: CorsRules): AnswerHeaders {
  return {
    "access-control-allow-origin": origin,
    "access-control-expose-headers": exposedHeaders.join(", "),
    vary: "origin",
  };
}

function forbidden(message: string): Refusal {
  return { status: 403, message, headers: {} };
}
