import { afterEach, describe, expect, it } from "vitest";
import { closeImported, imported, OBJECT, serverOf } from "../../../test/import-raw-server.ts";
import { rejection } from "../../../test/make-operation.ts";
import {
  approveTools,
  fromMcp,
  type McpSource,
  type McpSourceOptions,
  Oddities,
  openMcpSource,
} from "./from-mcp.ts";
import { createToolLock } from "./lock/tool-lock.ts";

afterEach(closeImported);

const BASE = {
  namespace: "n",
  transport: () => {
    throw new Error("It was connected to.");
  },
};
const HTTP = { namespace: "n", url: "http://127.0.0.1:9" };
const open = (options: unknown) => rejection(openMcpSource(options as McpSourceOptions));

describe("options of fromMcp", () => {
  it.each([
    [{ ...BASE, timeout: 3 }, 'There is no option "timeout"; did you mean "timeoutMs"?'],
    [{ ...BASE, catalog: {} }, 'There is no option "catalog".'],
    [{ ...BASE, limits: { messagebytes: 3 } }, 'did you mean "limits.messageBytes"?'],
    [{ ...BASE, limits: 3 }, "limits must be an object; it is 3."],
    [{ ...BASE, limits: { rounds: 0 } }, "limits.rounds must be a positive integer"],
    [{ ...BASE, reconnect: { max: 3 } }, 'There is no option "reconnect.max"'],
    [{ ...BASE, reconnect: true }, "reconnect must be an object or false; it is true."],
    [
      { ...BASE, reconnect: { delayMs: -1 } },
      "reconnect.delayMs must be a number of milliseconds, 0 or more",
    ],
    [{ ...BASE, protocol: "2024" }, 'protocol must be "auto", "2025" or "2026".'],
    [{ ...BASE, protocol: "2025-11-25" }, 'protocol must be "auto", "2025" or "2026"; write "2025".'],
    [{ ...BASE, timeoutMs: "3" }, "timeoutMs must be a number of milliseconds; it is of type string."],
    [{ ...BASE, filter: ["a"] }, "filter must be a function; it is a list."],
    [{ ...BASE, onLog: {} }, "onLog must be a function; it is of type object."],
    [{ ...BASE, onWarning: 1 }, "onWarning must be a function; it is 1."],
    [{ ...BASE, onDefinitionChange: null }, "onDefinitionChange must be a function; it is null."],
    [{ ...BASE, outputPolicy: "loose" }, 'outputPolicy must be "off", "warn" or "strict"'],
    [{ ...BASE, logLevel: "loud" }, 'logLevel must be one of "debug", "info"'],
    [{ ...BASE, roots: ["file:///x"] }, "roots must be a list of objects with a uri; it is a list."],
    [{ ...BASE, clientInfo: { name: "x" } }, "clientInfo must be an object with a name and a version"],
    [{ ...BASE, schemas: [] }, "schemas must be an object of schemas by name of tool; it is a list."],
    [{ ...BASE, pagers: 1 }, "pagers must be an object of pagers by name of tool; it is 1."],
    [{ ...BASE, reader: {} }, "reader must be made by createResultReader()"],
    [{ ...BASE, keepIds: "yes" }, "keepIds must be true or false"],
    [{ ...BASE, pin: "lock.json" }, "pin must be true, { lockFile } or { lock }; it is of type string."],
    [{ ...BASE, pin: {} }, "pin must be true, { lockFile } or { lock }"],
    [{ namespace: "n", transport: {} }, "transport must be a function"],
    [{ namespace: "n", command: "" }, "command must be the name of a program."],
    [
      { namespace: "n", command: "node", args: "x.js" },
      "args must be a list of strings; it is of type string.",
    ],
    [{ namespace: "n", url: "localhost:3000/mcp" }, "write http://localhost:3000."],
    [{ namespace: "n", url: "example.com" }, "write https://example.com."],
    [{ namespace: "n", url: "//x" }, "must be an absolute URL"],
    [{ namespace: "n", url: "ws://localhost" }, "must be https or http; it is ws:"],
    [{ ...HTTP, headers: "a: b" }, "headers must be an object of strings"],
    [{ ...HTTP, auth: { bearer: 7 } }, "auth.bearer must be a string or a function that gives one; it is 7."],
    [{ ...HTTP, fetch: {} }, "fetch must be a function"],
    [{ ...HTTP, auth: "me" }, "auth must be { bearer } or { oauth2 }; it is of type string."],
    [{ ...HTTP, auth: {} }, "auth takes one of bearer and oauth2."],
    [{ ...HTTP, auth: { bearer: "t", oauth2: {} } }, "auth takes one of bearer and oauth2."],
    [{ ...HTTP, auth: { oauth2: "me" } }, "auth.oauth2 must be made by createOAuthStore()"],
    [{ ...HTTP, auth: { token: "t" } }, 'There is no option "auth.token".'],
    [{ ...BASE, auth: { bearer: "t" } }, "auth is for servers with a url."],
  ])("X-4 are refused before anything is connected to (%#)", async (options, message) => {
    const error = await open(options);
    expect(error).toBeInstanceOf(TypeError);
    expect((error as Error).message).toContain(message);
  });

  it.each<[readonly unknown[], string]>([
    [[], "fromMcp takes a server and options"],
    [[7, { namespace: "n" }], "fromMcp takes a server and options"],
    [["https://x.example", null], "fromMcp takes a server and options"],
    [[HTTP], "namespace belongs into the second argument: fromMcp(server, { namespace })."],
    [["https://x.example", HTTP], "url belongs to the server: fromMcp({ url }, options)."],
    [[{ comand: "x" }, {}], 'There is no option "comand"; did you mean "command"?'],
    [["node x.js", { namespace: "n" }], "must be an absolute URL"],
    [[{ command: "x" }, { namespace: "n", headers: {} }], "headers is for servers with a url."],
  ])("X-4 a server comes first, its options second (%#)", async (given, message) => {
    const error = await rejection((fromMcp as (...all: unknown[]) => Promise<unknown>)(...given));
    expect(error).toBeInstanceOf(TypeError);
    expect((error as Error).message).toContain(message);
  });

  it.each(["SECRET\nx", "SECRET x", "", "SECRET\u00e9"])(
    "X-4 a token that is no header is not shown",
    async (bearer) => {
      const error = await open({ ...HTTP, auth: { bearer } });
      expect(error).toBeInstanceOf(TypeError);
      expect((error as Error).message).toContain("auth.bearer must be a token that can stand in a header");
      expect(String(error)).not.toContain("SECRET");
    },
  );

  it.each([() => 7, async () => undefined, () => "SECRET x"])(
    "X-4 a function that gives no token is told so (%#)",
    async (bearer) => {
      const error = await open({ ...HTTP, auth: { bearer } });
      expect(error).toMatchObject({
        code: "UNAUTHENTICATED",
        message: expect.stringMatching(/^auth\.bearer must be /),
      });
      expect(JSON.stringify(error)).not.toContain("SECRET");
    },
  );

  it("Mcp: warns of schemas and pagers for tools that are not listed", async () => {
    const server = serverOf(() => ["a", "b"].map((name) => ({ name, inputSchema: OBJECT })));
    const schemas = { a: { type: "object" }, typo: { type: "object" } };
    const pagers = { b: { next: () => undefined }, gone: { next: () => undefined } };
    const { warnings } = await imported(server, {
      schemas,
      pagers,
      filter: (name: string) => name !== "b",
    } as never);
    expect(warnings).toEqual([
      'schemas names the tool "typo", which the server does not list.',
      'pagers names the tool "gone", which the server does not list.',
    ]);
  });
});

describe("options of a request of a source", () => {
  it("X-4 are refused with a TypeError on every way, and nothing waits for them", async () => {
    const { source } = await imported(serverOf(() => [{ name: "t", inputSchema: OBJECT }]));
    const ways = (options: never): Promise<unknown>[] => [
      source.call("t", {}, options),
      source.listResources(options),
      source.listResourceTemplates(options),
      source.readResource("a://b", options),
      source.subscribeResource("a://b", options),
      source.unsubscribeResource("a://b", options),
      source.listPrompts(options),
      source.getPrompt("p", {}, options),
      source.complete(
        { ref: { type: "ref/prompt", name: "p" }, argument: { name: "a", value: "" } },
        options,
      ),
    ];
    for (const options of [
      { signal: {}, timeoutMs: 5 },
      { signal: new AbortController() },
      { timeoutMs: "3" },
    ]) {
      for (const outcome of await Promise.allSettled(ways(options as never))) {
        expect(outcome).toMatchObject({ status: "rejected", reason: expect.any(TypeError) });
      }
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  });
});

describe("approveTools", () => {
  it("Mcp: says that a source has to be awaited, and that names are a list", async () => {
    const server = serverOf(() => [{ name: "t", inputSchema: OBJECT }]);
    const { source } = await imported(server, { pin: { lock: createToolLock() } });
    const promised = Promise.resolve(source) as unknown as McpSource;
    expect(await rejection(approveTools(promised))).toEqual(
      new TypeError("approveTools takes a source made by fromMcp(); await fromMcp() first."),
    );
    expect(await rejection(approveTools({} as McpSource))).toBeInstanceOf(TypeError);
    for (const names of ["t", 7]) {
      expect(await rejection(approveTools(source, names as never))).toEqual(
        new TypeError('The tools to approve must be a list of names, such as ["read_file"].'),
      );
    }
    expect(Object.keys((await approveTools(source, ["t"])).servers["raw"] ?? {})).toEqual(["t"]);
  });
});

describe("Oddities", () => {
  it("X-6 tells of each kind once and counts the rest", () => {
    const warnings: string[] = [];
    const oddities = new Oddities((message) => warnings.push(message));
    for (let i = 0; i < 100; i++) {
      oddities.add(`A line on standard output is no JSON: noise ${i}`);
      oddities.add(
        i % 2 === 0 ? "An answer belongs to no request." : `An answer belongs to no request: e${i}`,
      );
    }
    expect(warnings).toEqual([
      "A line on standard output is no JSON: noise 0",
      "An answer belongs to no request.",
    ]);
    expect(oddities.count).toBe(200);
  });

  it("X-6 tells of 32 kinds, and not of one more", () => {
    const warnings: string[] = [];
    const oddities = new Oddities((message) => warnings.push(message));
    for (let i = 0; i < 32; i++) oddities.add(`Kind ${"x".repeat(i)}`);
    expect(warnings).toHaveLength(32);
    oddities.add("Another kind");
    expect([warnings.length, oddities.count]).toEqual([32, 33]);
  });
});
