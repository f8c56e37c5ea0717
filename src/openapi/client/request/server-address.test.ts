import { describe, expect, it } from "vitest";
import { cpuMs } from "../../../../test/cpu-ms.ts";
import { makePlan } from "../../../../test/operation-plans.ts";
import type { ServerPlan } from "../plan.ts";
import { createRequestBuilder } from "./request-builder.ts";
import type { ServerOptions } from "./server-address.ts";

function server(url: string, given: Partial<ServerPlan> = {}): ServerPlan {
  return { url, variables: {}, ...given };
}

/** Where a call of `/pets` goes. */
function addressOf(servers: readonly ServerPlan[], options: ServerOptions = {}): string {
  const { origin, path } = createRequestBuilder(makePlan({ path: "/pets", servers }), {
    ...options,
    limits: {},
  })({});
  return origin + path;
}

describe("the address of an operation", () => {
  it("RE-25 is that of its first server, base path included", () => {
    expect(addressOf([server("https://API.example:443/v1/"), server("https://b.example")])).toBe(
      "https://api.example/v1/pets",
    );
  });

  it("RE-25 is another of its servers, by place, name, URL or description", () => {
    const servers = [
      server("https://a.example", { description: "test" }),
      server("https://b.example/x", { name: "test", description: "Where we try things" }),
    ];
    for (const wanted of [1, "test", "https://b.example/x", "Where we try things"]) {
      expect(addressOf(servers, { server: wanted })).toBe("https://b.example/x/pets");
    }
    expect(() => addressOf(servers, { server: 2 })).toThrow(TypeError);
    expect(() => addressOf(servers, { server: "tset" })).toThrow('There is no server "tset"');
  });

  it("RE-25 is the one that the options give, whatever the document says", () => {
    for (const baseUrl of ["http://localhost:8080/api/", new URL("http://localhost:8080/api")]) {
      expect(addressOf([server("ftp://x")], { baseUrl })).toBe("http://localhost:8080/api/pets");
    }
    for (const baseUrl of [
      "/api",
      "ftp://x",
      "https://u:p@x.example",
      "https://x.example?a",
      "https://x.example#a",
    ]) {
      expect(() => addressOf([], { baseUrl })).toThrow(/^baseUrl must be an address/);
    }
  });

  it("RE-25 is relative to the document, where that came from the network", () => {
    const location = new URL("https://docs.example/apis/pets.json");
    expect(addressOf([server("/v2")], { location })).toBe("https://docs.example/v2/pets");
    expect(addressOf([server("../v2")], { location })).toBe("https://docs.example/v2/pets");
    expect(addressOf([server("//b.example/v2")], { location })).toBe("https://b.example/v2/pets");
  });

  it.each([
    ["api.example.com/v1", 'the server "api.example.com/v1" of its document', '"https://api.example.com/v1"'],
    ["localhost:3000/v1", 'the server "localhost:3000/v1" of its document', '"http://localhost:3000/v1"'],
    ["api.example:8443", 'the server "api.example:8443" of its document', '"https://api.example:8443"'],
  ])("RE-25 that lacks its scheme is shown, with one that would do: %s", (url, shown, hint) => {
    const build = createRequestBuilder(makePlan({ servers: [server(url)] }), { limits: {} });
    expect(() => build({})).toThrow(shown);
    expect(() => build({})).toThrow(`Pass baseUrl, such as ${hint}.`);
    expect(() => addressOf([], { baseUrl: url })).toThrow(`such as ${hint}`);
  });

  it.each(["user:secret@a.example", "a.example/x secret", "a.example/?secret", "v1/secret"])(
    "RE-25 that may be anything else is not shown: %s",
    (url) => {
      const build = createRequestBuilder(makePlan({ servers: [server(url)] }), { limits: {} });
      expect(() => build({})).toThrow(expect.objectContaining({ code: "NOT_IMPLEMENTED" }));
      expect(() => build({})).not.toThrow(/secret/);
    },
  );

  it.each([
    ["/", undefined],
    ["/v2", new URL("file:///tmp/pets.json")],
    ["ftp://a.example", undefined],
    ["https://user:secret@a.example", undefined],
    ["https://a.example/?key=1", undefined],
    ["https://", undefined],
    ["javascript:alert(1)", undefined],
  ])("RE-25 that nobody can know is told when it is called: %s", (url, location) => {
    const build = createRequestBuilder(makePlan({ servers: [server(url)] }), { location, limits: {} });
    expect(() => build({})).toThrow(
      expect.objectContaining({ code: "NOT_IMPLEMENTED", message: expect.stringContaining("Pass baseUrl.") }),
    );
    expect(() => build({})).not.toThrow(/secret/);
  });
});

describe("an address that is made to be slow", () => {
  it("RE-25 is read in no time", () => {
    const start = cpuMs();
    const many = 200_000;
    for (const url of [`https://a.example${"/".repeat(many)}x`, `https://a.example/${"{".repeat(many)}`]) {
      expect(addressOf([server(url)])).toContain("https://a.example/");
    }
    expect(cpuMs() - start).toBeLessThan(10_000);
  });
});

describe("the variables of a server", () => {
  const regional = server("https://{region}.example:{port}/{version}", {
    variables: {
      region: { default: "eu", enum: ["eu", "us"] },
      port: { default: "443" },
      version: { default: "v1" },
    },
  });

  it("RE-25 have the values of the document, or of the options", () => {
    expect(addressOf([regional])).toBe("https://eu.example/v1/pets");
    const serverVariables = { region: "us", port: "8443", version: "v2/beta x" };
    expect(addressOf([regional], { serverVariables })).toBe("https://us.example:8443/v2/beta%20x/pets");
  });

  it("RE-25 must be known, and have a value that they may have", () => {
    const given = (serverVariables: Record<string, string>) => () =>
      addressOf([regional], { serverVariables });
    expect(given({ regoin: "us" })).toThrow(/no variable "regoin"; it has "region", "port", "version"/);
    expect(given({ region: "mars" })).toThrow('"region" must be one of "eu", "us"');
    expect(given({ version: 2 as unknown as string })).toThrow('"version" must be text');
    expect(given({ constructor: "x" })).toThrow('no variable "constructor"');
  });

  it.each(["a/b", "a@evil.example", "a:1", "a?b", "a#b", "a\\b", "evil.example/", "", "a b", "é"])(
    "RE-25 never change the host: %j",
    (value) => {
      const open = server("https://{name}.example/", { variables: { name: { default: "a" } } });
      expect(() => addressOf([open], { serverVariables: { name: value } })).toThrow(
        '"name" is part of a host',
      );
    },
  );

  it.each(["..", ".", "a/../b", "%2e%2E", "a?b", "a#b", "\\..", "a\nb"])(
    "RE-25 never leave the path: %j",
    (version) => {
      expect(() => addressOf([regional], { serverVariables: { version } })).toThrow(
        '"version" is part of a path',
      );
    },
  );

  it("RE-25 may be an address by themselves", () => {
    const open = server("{base}/v1", { variables: { base: { default: "https://a.example" } } });
    expect(addressOf([open])).toBe("https://a.example/v1/pets");
    expect(addressOf([open], { serverVariables: { base: "http://b.example/x" } })).toBe(
      "http://b.example/x/v1/pets",
    );
    for (const base of [
      "javascript:x",
      "https://u@x.example",
      "https://x.example/../y",
      "x",
      "https://x.example?",
    ]) {
      expect(() => addressOf([open], { serverVariables: { base } })).toThrow('"base" must be an address');
    }
  });

  it("RE-25 without a value are told when the operation is called", () => {
    expect(() => addressOf([server("https://{tenant}.example")])).toThrow(
      expect.objectContaining({ code: "NOT_IMPLEMENTED", message: expect.stringContaining('"tenant"') }),
    );
    const serverVariables = { tenant: "acme" };
    expect(addressOf([server("https://{tenant}.example")], { serverVariables })).toBe(
      "https://acme.example/pets",
    );
  });
});
