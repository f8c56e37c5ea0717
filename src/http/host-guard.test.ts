import { describe, expect, it } from "vitest";
import { FetchRequest } from "./fetch-exchange.ts";
import { type CorsRules, createHostGuard, type HostGuard, type HostGuardOptions } from "./host-guard.ts";

const CORS: CorsRules = {
  methods: ["GET", "PUT"],
  requestHeaders: ["accept", "x-mine"],
  isRequestHeader: (name) => name.startsWith("x-param-"),
  exposedHeaders: ["x-told", "retry-after"],
};

const requestTo = (...given: ConstructorParameters<typeof Request>) =>
  new FetchRequest(new Request(...given));

function createGuard(options: HostGuardOptions = {}, cors = CORS): HostGuard {
  return createHostGuard(options, cors);
}

function ask(headers: Readonly<Record<string, string>>, options?: HostGuardOptions): number {
  const request = requestTo("http://localhost/x", { method: "POST", headers });
  return createGuard(options).check(request)?.status ?? 200;
}

describe("createHostGuard", () => {
  it.each(["localhost", "localhost:8080", "127.0.0.1:1", "[::1]", "[::1]:65535", "LOCALHOST:80"])(
    "Http: hears %s without being told to",
    (host) => expect(ask({ host })).toBe(200),
  );

  it.each([
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1.nip.io",
    "localhost.",
    "localhost:65536",
    "localhost:80:80",
    "localhost@evil.example",
    "evil.example#localhost",
    "localhost/evil",
    "127.1",
    "2130706433",
    "[::ffff:127.0.0.1]",
    "0.0.0.0",
    "",
  ])("Http: refuses the host %j", (host) => expect(ask({ host })).toBe(403));

  it("Http: hears hosts it is told of, at one port or at any, besides those of the machine", () => {
    const hosts = ["api.example", "Other.example:8443"];
    expect(ask({ host: "api.example:1234" }, { hosts })).toBe(200);
    expect(ask({ host: "other.example:8443" }, { hosts })).toBe(200);
    expect(ask({ host: "other.example" }, { hosts })).toBe(403);
    expect(ask({ host: "localhost" }, { hosts })).toBe(200);
    expect(ask({ host: "sub.api.example" }, { hosts })).toBe(403);
    expect(ask({ host: "anything" }, { hosts: "any" })).toBe(200);
  });

  it("Http: takes the host of the URL where there is no header", () => {
    const guard = createGuard();
    expect(guard.check(requestTo("http://localhost:1/x"))).toBeUndefined();
    expect(guard.check(requestTo("http://evil.example/x"))?.status).toBe(403);
  });

  it.each([
    "https://evil.example",
    "null",
    "http://localhost.evil.example",
    "http://localhost@evil.example",
    "file://",
    "localhost",
    "",
  ])("Http: refuses pages of %j", (origin) => expect(ask({ host: "localhost", origin })).toBe(403));

  it("Http: hears pages of this machine, of its own host and of the origins it is told of", () => {
    const options = { hosts: ["api.example"], origins: ["https://app.example"] };
    expect(ask({ host: "localhost:1", origin: "http://localhost:5173" })).toBe(200);
    expect(ask({ host: "api.example", origin: "https://api.example" }, options)).toBe(200);
    expect(ask({ host: "api.example", origin: "https://app.example" }, options)).toBe(200);
    expect(ask({ host: "api.example", origin: "https://app.example:444" }, options)).toBe(403);
    expect(ask({ host: "api.example", origin: "http://app.example" }, options)).toBe(403);
  });

  it("Http: does not take a host that anybody may name for the page's own", () => {
    expect(ask({ host: "evil.example", origin: "http://evil.example" }, { hosts: "any" })).toBe(403);
  });

  it.each([
    ["same-origin", 200],
    ["none", 200],
    ["same-site", 403],
    ["cross-site", 403],
    ["same-origin, cross-site", 403],
    ["", 403],
  ])("Http: by what a browser says of the page that had it ask: %j is %i", (site, status) => {
    expect(ask({ host: "localhost", "sec-fetch-site": site })).toBe(status);
    const near = { host: "localhost:1", origin: "http://localhost:5173", "sec-fetch-site": site };
    expect(ask(near)).toBe(status);
    const origins = ["https://app.example"];
    const allowed = { host: "localhost", origin: "https://app.example", "sec-fetch-site": site };
    expect(ask(allowed, { origins })).toBe(200);
  });

  it("Http: answers browsers that ask in advance only for the origins it is told of", () => {
    const guard = createGuard({ origins: ["https://app.example"] });
    const headers = {
      origin: "https://app.example",
      "access-control-request-headers": "x-param-region, x-evil, X-Param-Bad=1",
    };
    const preflight = guard.preflight(requestTo("http://localhost/", { method: "OPTIONS", headers }));
    expect(preflight?.status).toBe(204);
    expect(preflight?.headers["access-control-allow-origin"]).toBe("https://app.example");
    expect(preflight?.headers["access-control-allow-methods"]).toBe("GET, PUT");
    expect(preflight?.headers["access-control-allow-headers"]).toBe("accept, x-mine, x-param-region");
    const local = requestTo("http://localhost/", {
      method: "OPTIONS",
      headers: { origin: "http://localhost" },
    });
    expect(guard.preflight(local)).toBeUndefined();
    expect(guard.corsHeaders(local)).toBeUndefined();
  });

  it("Http: lets pages send no more than is listed, where nothing says what else", () => {
    const { isRequestHeader: _, ...cors } = CORS;
    const guard = createGuard({ origins: ["https://app.example"] }, cors);
    const headers = { origin: "https://app.example", "access-control-request-headers": "x-param-region" };
    const preflight = guard.preflight(requestTo("http://localhost/", { method: "OPTIONS", headers }));
    expect(preflight?.headers["access-control-allow-headers"]).toBe("accept, x-mine");
  });

  it("Http: lets pages of the origins it is told of read answers", () => {
    const guard = createGuard({ origins: ["https://app.example"] });
    const request = requestTo("http://localhost/", { headers: { origin: "https://app.example" } });
    expect(guard.corsHeaders(request)).toEqual({
      "access-control-allow-origin": "https://app.example",
      "access-control-expose-headers": "x-told, retry-after",
      vary: "origin",
    });
  });

  it("Http: says which option would help", () => {
    const guard = createGuard();
    const from = (headers: Record<string, string>) =>
      guard.check(requestTo("http://localhost/", { headers }));
    expect(from({ host: "evil.example" })?.message).toContain("`hosts`");
    expect(from({ host: "localhost", origin: "https://evil.example" })?.message).toContain("`origins`");
  });

  it("Http: refuses hosts and origins that could never match", () => {
    for (const hosts of [["http://a"], ["a/b"], ["*"], "a" as never]) {
      expect(() => createGuard({ hosts })).toThrow(TypeError);
    }
    for (const origins of [["app.example"], ["https://a/"], ["*"], [1 as never], "x" as never]) {
      expect(() => createGuard({ origins })).toThrow(TypeError);
    }
  });
});
