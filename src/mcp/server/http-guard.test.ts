import { describe, expect, it } from "vitest";
import { createHttpGuard, type HttpGuardOptions } from "./http-guard.ts";

function ask(headers: Readonly<Record<string, string>>, options?: HttpGuardOptions): number {
  const request = new Request("http://localhost/mcp", { method: "POST", headers });
  return createHttpGuard(options).check(request)?.status ?? 200;
}

describe("createHttpGuard", () => {
  it.each(["localhost", "localhost:8080", "127.0.0.1:1", "[::1]", "[::1]:65535", "LOCALHOST:80"])(
    "Mcp: hears %s without being told to",
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
  ])("Mcp: refuses the host %j", (host) => expect(ask({ host })).toBe(403));

  it("Mcp: hears hosts it is told of, at one port or at any, besides those of the machine", () => {
    const hosts = ["api.example", "Other.example:8443"];
    expect(ask({ host: "api.example:1234" }, { hosts })).toBe(200);
    expect(ask({ host: "other.example:8443" }, { hosts })).toBe(200);
    expect(ask({ host: "other.example" }, { hosts })).toBe(403);
    expect(ask({ host: "localhost" }, { hosts })).toBe(200);
    expect(ask({ host: "sub.api.example" }, { hosts })).toBe(403);
    expect(ask({ host: "anything" }, { hosts: "any" })).toBe(200);
  });

  it("Mcp: takes the host of the URL where there is no header", () => {
    const guard = createHttpGuard();
    expect(guard.check(new Request("http://localhost:1/mcp"))).toBeUndefined();
    expect(guard.check(new Request("http://evil.example/mcp"))?.status).toBe(403);
  });

  it.each([
    "https://evil.example",
    "null",
    "http://localhost.evil.example",
    "http://localhost@evil.example",
    "file://",
    "localhost",
    "",
  ])("Mcp: refuses pages of %j", (origin) => expect(ask({ host: "localhost", origin })).toBe(403));

  it("Mcp: hears pages of this machine, of its own host and of the origins it is told of", () => {
    const options = { hosts: ["api.example"], origins: ["https://app.example"] };
    expect(ask({ host: "localhost:1", origin: "http://localhost:5173" })).toBe(200);
    expect(ask({ host: "api.example", origin: "https://api.example" }, options)).toBe(200);
    expect(ask({ host: "api.example", origin: "https://app.example" }, options)).toBe(200);
    expect(ask({ host: "api.example", origin: "https://app.example:444" }, options)).toBe(403);
    expect(ask({ host: "api.example", origin: "http://app.example" }, options)).toBe(403);
  });

  it("Mcp: does not take a host that anybody may name for the page's own", () => {
    expect(ask({ host: "evil.example", origin: "http://evil.example" }, { hosts: "any" })).toBe(403);
  });

  it("Mcp: answers browsers that ask in advance only for the origins it is told of", () => {
    const guard = createHttpGuard({ origins: ["https://app.example"] });
    const headers = {
      origin: "https://app.example",
      "access-control-request-headers": "mcp-param-region, x-evil",
    };
    const preflight = guard.preflight(new Request("http://localhost/", { method: "OPTIONS", headers }));
    expect(preflight?.status).toBe(204);
    expect(preflight?.headers.get("access-control-allow-origin")).toBe("https://app.example");
    const allowed = preflight?.headers.get("access-control-allow-headers") ?? "";
    expect(allowed).toContain("mcp-param-region");
    expect(allowed).not.toContain("x-evil");
    const local = new Request("http://localhost/", {
      method: "OPTIONS",
      headers: { origin: "http://localhost" },
    });
    expect(guard.preflight(local)).toBeUndefined();
    expect(guard.mark(local, new Response("x")).headers.has("access-control-allow-origin")).toBe(false);
  });

  it("Mcp: refuses hosts and origins that could never match", () => {
    for (const hosts of [["http://a"], ["a/b"], ["*"], "a" as never]) {
      expect(() => createHttpGuard({ hosts })).toThrow(TypeError);
    }
    for (const origins of [["app.example"], ["https://a/"], ["*"], [1 as never], "x" as never]) {
      expect(() => createHttpGuard({ origins })).toThrow(TypeError);
    }
  });
});
