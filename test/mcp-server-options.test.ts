import { PassThrough } from "node:stream";
import { InMemoryTransport } from "@modelcontextprotocol/server";
import { describe, expect, it } from "vitest";
import { combineFormats, createResultFormat } from "../src/formats/index.ts";
import { OperationRegistry } from "../src/index.ts";
import { createMcpHandler, fromMcp, serveMcpHttp, serveStdio, toMcpServer } from "../src/mcp/index.ts";
import { query, rejection, until } from "./make-operation.ts";
import { legacyClient } from "./mcp-server-peers.ts";

const operation = query("a.b", () => 1);
const registry = new OperationRegistry([operation]);
const server = toMcpServer(registry);
const read = (): string => "";

/** What a call throws; fails when it does not. */
function thrown(run: () => unknown): Error {
  try {
    run();
  } catch (error) {
    return error as Error;
  }
  throw new Error("Nothing was thrown.");
}

describe("toMcpServer", () => {
  it.each([
    ["nothing", undefined, "takes a registry or another executor"],
    ["a list", [operation], "new OperationRegistry([operation])"],
    ["a promise", Promise.resolve(registry), "await the promise"],
  ])("Mcp: says what it takes when it is given %s", (_, executor, message) => {
    const error = thrown(() => toMcpServer(executor as never));
    expect(error).toBeInstanceOf(TypeError);
    expect(error.message).toContain(message);
  });

  it.each<[unknown, string]>([
    [null, "The options must be an object"],
    [{ format: "tool-envelope" }, 'createResultFormat("tool-envelope")'],
    [{ format: {} }, "format must be an object with write and outputSchema"],
    [{ formats: createResultFormat("mcp") }, "formats must be a list"],
    [{ formats: ["mcp"] }, "formats[0] must be"],
    [{ store: {} }, "store must be an object with put and read"],
    [{ store: Promise.resolve() }, "await the promise"],
    [{ providers: [Promise.resolve()] }, "providers[0] must be an McpProvider"],
    [{ providers: [Promise.resolve()] }, "await the promise"],
    [{ providers: [undefined] }, "providers[0] must be"],
    [{ resources: [{ name: "r", uri: "intro", read }] }, "resources[0].uri must be an absolute URI"],
    [{ resources: [{ name: "r", read }] }, "resources[0].uri"],
    [{ resources: [{ name: "r", uri: "docs://a" }] }, "resources[0].read must be a function"],
    [{ resources: [{ uri: "docs://a", read }] }, "resources[0] must be an object with a name"],
    [{ resourceTemplates: [{ name: "t", read }] }, "resourceTemplates[0].uriTemplate"],
    [{ resourceTemplates: [{ name: "t", uriTemplate: "a://{b}" }] }, "resourceTemplates[0].read"],
    [{ prompts: [{ name: "p" }] }, "prompts[0].get must be a function"],
    [{ prompts: [{ name: "p", get: read, arguments: ["a"] }] }, "prompts[0].arguments"],
    [{ prompts: {} }, "prompts must be a list"],
    [{ limits: { pageSize: "10" } }, 'limits.pageSize must be an integer from 1, and is "10"'],
    [{ limits: { streamItems: -1 } }, "and is -1"],
    [{ limits: { pagesize: 1 } }, 'did you mean "limits.pageSize"?'],
    [{ limits: 5 }, "limits must be an object"],
    [{ resource: [] }, 'There is no option "resource"; did you mean "resources"?'],
    [{ catalog: true }, 'did you mean "catalogue"?'],
    [{ catalogue: "yes" }, "catalogue must be true or false"],
    [{ names: { dot: true } }, '"names.dots"'],
    [{ onWarning: "log" }, "onWarning must be a function"],
    [{ identity: "ann" }, "identity must be an object with a subject"],
    [{ version: 1 }, "version must be a string; it is 1"],
  ])("Mcp: refuses options at once: %j", (options, message) => {
    const error = thrown(() => toMcpServer(registry, options as never));
    expect(error).toBeInstanceOf(TypeError);
    expect(error.message).toContain(message);
  });
});

describe("serving", () => {
  it("Mcp: says that it takes a registry, or what toMcpServer returns", async () => {
    const message = "takes a registry, or what toMcpServer returns";
    const none = {} as never;
    expect(thrown(() => serveStdio(none)).message).toBe(`serveStdio ${message}: serveStdio(registry).`);
    expect(thrown(() => createMcpHandler(none)).message).toContain(`createMcpHandler ${message}`);
    expect(await rejection(serveMcpHttp(Promise.resolve(server) as never))).toMatchObject({
      name: "TypeError",
      message: `serveMcpHttp ${message}; await the promise first.`,
    });
  });

  it("Mcp: serves a registry with the options of a server and of the endpoint beside each other", async () => {
    const http = await serveMcpHttp(registry, {
      name: "post",
      identity: { subject: "ann" },
      limits: { pageSize: 1, sessions: 3, connections: 5 },
    });
    const source = await fromMcp(http.url, { namespace: "x", onWarning: () => {} });
    expect([source.server.serverInfo?.["name"], [...source].length]).toEqual(["post", registry.size]);
    await source.close();
    await http.close();
    const options = { title: "Post", limits: { waitingCalls: 1, streamBytes: 1_000 } };
    await createMcpHandler(registry, options).close();
    const error = thrown(() => createMcpHandler(registry, { limits: { pageSize: 0 } }));
    expect(error.message).toContain("limits.pageSize must be");
  });

  it("Mcp: a server that was made of a registry closes with what serves it", async () => {
    let listeners = 0;
    const executor = Object.assign(new OperationRegistry([query("a.b", () => 1)]), {});
    const follow = executor.onChange.bind(executor);
    executor.onChange = (listener) => {
      listeners += 1;
      const stop = follow(listener);
      return () => {
        listeners -= 1;
        stop();
      };
    };
    const connection = serveStdio(executor, {
      stdin: new PassThrough(),
      stdout: new PassThrough(),
      name: "a",
    });
    const handler = createMcpHandler(executor);
    const http = await serveMcpHttp(executor);
    expect(listeners).toBeGreaterThanOrEqual(3);
    await Promise.all([connection.close(), handler.close(), http.close()]);
    expect(listeners).toBe(0);
  });

  it("Mcp: says that a server has its options already", async () => {
    const options = { name: "late" } as never;
    const error = await rejection(serveMcpHttp(server, options));
    expect(error).toBeInstanceOf(TypeError);
    expect((error as Error).message).toBe(
      "name is an option of the server: give it to toMcpServer, or give serveMcpHttp a registry.",
    );
    expect(thrown(() => serveStdio(server, options)).message).toContain("give serveStdio a registry");
    expect(thrown(() => createMcpHandler(server, { limits: { pageSize: 1 } } as never)).message).toContain(
      'There is no option "limits.pageSize"',
    );
  });

  it.each<[object, string]>([
    [{ prot: 1 }, 'did you mean "port"?'],
    [{ port: "80" }, "port must be a whole number"],
    [{ port: 65_536 }, "it is 65536"],
    [{ path: 5 }, "path must be a string"],
    [{ authenticate: true }, "authenticate must be a function"],
    [{ limits: { calls: 1, conections: 1 } }, 'did you mean "limits.connections"?'],
    [{ limits: { stalledMs: 0 } }, "limits.stalledMs must be a whole number"],
    [{ limits: { bodyBytes: "1mb" } }, 'limits.bodyBytes must be a whole number, 1 or more; it is "1mb"'],
  ])("Mcp: refuses options over HTTP at once: %j", async (options, message) => {
    const error = await rejection(serveMcpHttp(server, options));
    expect(error).toBeInstanceOf(TypeError);
    expect((error as Error).message).toContain(message);
  });

  it("Mcp: refuses options of a handler and of stdio at once", () => {
    expect(thrown(() => createMcpHandler(server, { port: 1 } as never)).message).toContain(
      'no option "port"',
    );
    expect(thrown(() => serveStdio(server, { stdIn: 1 } as never)).message).toContain(
      'did you mean "stdin"?',
    );
    expect(thrown(() => serveStdio(server, { stdin: 1 } as never)).message).toContain(
      "stdin must be a stream",
    );
    const limits = { messageBytes: "1" as never };
    expect(thrown(() => serveStdio(server, { limits })).message).toContain('it is "1"');
  });
});

describe("formats", () => {
  it("Mcp: say how they are made and combined", () => {
    const format = createResultFormat("mcp");
    expect(thrown(() => combineFormats([format] as never)).message).toContain("not in a list");
    expect(thrown(() => (combineFormats as () => unknown)()).message).toContain(
      "combineFormats(first, second)",
    );
    expect(thrown(() => (createResultFormat as () => unknown)()).message).toContain("tool-envelope");
    const { message } = thrown(() => createResultFormat("odd" as never));
    expect(message).toContain("status-envelope");
    expect(message).not.toContain("response-envelope");
    expect(thrown(() => createResultFormat({} as never))).toBeInstanceOf(TypeError);
  });
});

describe("registerAll", () => {
  it("RE-22 says to await a source that is still a promise", () => {
    const error = thrown(() => new OperationRegistry().registerAll(Promise.resolve([]) as never));
    expect(error).toBeInstanceOf(TypeError);
    expect(error.message).toContain("registerAll(await source)");
    for (const odd of [undefined, null, 5, {}, { operations: 5 }]) {
      expect(thrown(() => new OperationRegistry().registerAll(odd as never))).toBeInstanceOf(TypeError);
    }
  });
});

describe("McpServer.close", () => {
  let [started, stopped] = [0, 0];
  const waits = query("slow.wait", async (_, { signal }) => {
    started += 1;
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    stopped += 1;
  });

  it("Mcp: refuses new peers and ends those there are", async () => {
    const closing = toMcpServer(registry);
    const client = await legacyClient(closing);
    const gone = new Promise<void>((resolve) => {
      client.onclose = resolve;
    });
    await closing.close();
    await gone;
    expect(closing.isClosed).toBe(true);
    const [, there] = InMemoryTransport.createLinkedPair();
    await expect(closing.connect(there)).rejects.toThrow("closed");
    expect(thrown(() => serveStdio(closing, { stdin: new PassThrough() })).message).toContain("closed");
    await closing.close();
  });

  it.each(["2025", "2026"] as const)(
    "Mcp: ends calls over HTTP, and answers 503 from then on (%s)",
    async (protocol) => {
      [started, stopped] = [0, 0];
      const closing = toMcpServer(new OperationRegistry([waits]));
      const http = await serveMcpHttp(closing);
      const source = await fromMcp(http.url, { namespace: "x", protocol, onWarning: () => {} });
      const call = rejection(source.call("slow_wait", {}, { timeoutMs: 600_000 }));
      await until(() => started === 1);
      await closing.close();
      await until(() => stopped === 1);
      expect(await call).not.toMatchObject({ code: "TIMEOUT" });
      const response = await fetch(http.url, { method: "POST", body: "{}" });
      expect(response.status).toBe(503);
      await source.close();
      await http.close();
    },
  );
});
