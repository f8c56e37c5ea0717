import { createRefusal } from "./http-refusal.ts";

/** From where an endpoint may be reached. */
export interface HttpGuardOptions {
  /**
   * Names this endpoint is reached under besides those of the loopback interface, each with or without a port. `"any"` gives up
   * the protection against DNS rebinding. @default loopback names only
   */
  readonly hosts?: readonly string[] | "any" | undefined;
  /** Origins of web pages that may use this endpoint, such as `https://app.example`; they get CORS headers. @default none */
  readonly origins?: readonly string[] | undefined;
}

/** Decides by `Host` and `Origin` whether a request is heard, and tells browsers so. */
export interface HttpGuard {
  /** Refuses a request, or lets it pass by returning nothing. */
  check(request: Request): Response | undefined;
  /** Answers a browser that asks in advance; nothing where that is not for this origin. */
  preflight(request: Request): Response | undefined;
  /** Marks a response as readable for the page that asked. */
  mark(request: Request, response: Response): Response;
}

const LOOPBACK = new Set(["localhost", "127.0.0.1", "[::1]"]);
const HOST = /^(\[[0-9a-f:.]{2,45}\]|[a-z0-9._-]{1,253})(?::(\d{1,5}))?$/;
const ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/[^/?#\s]+$/;

const METHODS = "GET, POST, DELETE";
const REQUEST_HEADERS = [
  "accept",
  "authorization",
  "content-type",
  "last-event-id",
  "mcp-method",
  "mcp-name",
  "mcp-protocol-version",
  "mcp-session-id",
];
const PARAM_HEADER = /^mcp-param-[a-z0-9!#$%&'*+.^_`|~-]{1,128}$/;

/** Creates a guard; a malformed host or origin is a `TypeError`. */
export function createHttpGuard(options: HttpGuardOptions = {}): HttpGuard {
  const isHost = readHosts(options.hosts ?? []);
  const origins = readOrigins(options.origins ?? []);
  const sameHost = options.hosts !== "any";
  const check = (request: Request): Response | undefined => {
    const host = hostOf(request);
    if (!isHost(host)) {
      return createRefusal(403, "This host name is not served here; add it to `hosts` if it should be.");
    }
    const origin = request.headers.get("origin");
    if (origin === null || origins.has(origin) || isNearOrigin(origin, sameHost ? host : undefined)) return;
    return createRefusal(403, "This origin may not use the endpoint; add it to `origins` if it should.");
  };
  const allowed = (request: Request): string | undefined => {
    const origin = request.headers.get("origin");
    return origin !== null && origins.has(origin) ? origin : undefined;
  };
  return {
    check,
    preflight(request) {
      const origin = allowed(request);
      return origin === undefined ? undefined : createPreflight(request, origin);
    },
    mark(request, response) {
      const origin = origins.size === 0 ? undefined : allowed(request);
      return origin === undefined ? response : withOrigin(response, origin);
    },
  };
}

/** The host a request was sent to, as the client names it; the URL knows where the header has been taken away. */
function hostOf(request: Request): string {
  return (request.headers.get("host") ?? new URL(request.url).host).toLowerCase();
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

function createPreflight(request: Request, origin: string): Response {
  const wanted = (request.headers.get("access-control-request-headers") ?? "").toLowerCase().split(",");
  const params = wanted.map((name) => name.trim()).filter((name) => PARAM_HEADER.test(name));
  const headers = {
    "access-control-allow-methods": METHODS,
    "access-control-allow-headers": [...REQUEST_HEADERS, ...params].join(", "),
    "access-control-max-age": "600",
  };
  return withOrigin(new Response(null, { status: 204, headers }), origin);
}

function withOrigin(response: Response, origin: string): Response {
  const headers = new Headers(response.headers);
  headers.set("access-control-allow-origin", origin);
  headers.set("access-control-expose-headers", "mcp-session-id, www-authenticate, retry-after");
  headers.append("vary", "origin");
  return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
}
