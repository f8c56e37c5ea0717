import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createMemoryBus, createRemoteRegistry, serveCalls } from "../src/call/index.ts";
import { createClient, type Executor, OperationRegistry, toCallError } from "../src/index.ts";
import { fromMcp, serveMcpHttp, toMcpServer } from "../src/mcp/index.ts";
import { fromOpenApi, serveHttp } from "../src/openapi/index.ts";
import { collect, rejection } from "./make-operation.ts";

const json = { "application/json": {} };
const count = (name: string) => ({ name, in: "query", schema: { type: "integer" } });
const listed = (operationId: string, names: readonly string[], more: object = {}) => ({
  get: {
    operationId,
    parameters: names.map(count),
    responses: {
      200: {
        description: "A page",
        content: { "application/json": { schema: { type: "array", items: { type: "integer" } } } },
        ...more,
      },
    },
  },
});

/** An API somebody else runs: pages in two styles, bytes, and errors with words of its own. */
const DOCUMENT = {
  openapi: "3.1.0",
  info: { title: "Foreign", version: "1" },
  paths: {
    "/linked": listed("linked", ["page"], { headers: { Link: { schema: { type: "string" } } } }),
    "/offset": listed("offset", ["offset", "limit"]),
    "/bytes": {
      get: { operationId: "bytes", responses: { 200: { description: "", content: { "image/png": {} } } } },
    },
    "/broken": { get: { operationId: "broken", responses: { 200: { description: "", content: json } } } },
    "/missing": { get: { operationId: "missing", responses: { 200: { description: "", content: json } } } },
    "/events": {
      get: {
        operationId: "events",
        responses: { 200: { description: "", content: { "text/event-stream": {} } } },
      },
    },
  },
};

const foreign = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? "", "http://x");
  const at = (name: string) => Number(searchParams.get(name) ?? 0);
  const answer = (body: unknown, status = 200, headers = {}) =>
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
  switch (pathname) {
    case "/linked":
      return answer(
        [at("page")],
        200,
        at("page") < 2 ? { link: `</linked?page=${at("page") + 1}>; rel="next"` } : {},
      );
    case "/offset":
      return answer([0, 1, 2, 3, 4].slice(at("offset"), at("offset") + 2));
    case "/bytes":
      return response.writeHead(200, { "content-type": "image/png" }).end(Buffer.from([1, 2, 255]));
    case "/events":
      return response
        .writeHead(200, { "content-type": "text/event-stream" })
        .end('id: 1\nevent: tick\ndata: {"n":1}\n\nid: 2\nevent: tick\ndata: {"n":2}\n\n');
    case "/missing":
      return answer({ message: "It is closed.", at: "/srv/secret.js" }, 404);
    default:
      return answer({ message: "It is closed.", at: "/srv/secret.js" }, 500);
  }
});

interface Way {
  readonly executor: Executor;
  close(): Promise<void>;
}

const WAYS: Readonly<Record<string, (registry: OperationRegistry) => Promise<Way>>> = {
  HTTP: async (registry) => {
    const http = await serveHttp(registry);
    const source = await fromOpenApi(`${http.url}/openapi.json`, { namespace: "x", keepIds: true });
    const executor = new OperationRegistry();
    executor.registerAll(source);
    const close = async () => {
      await source.close();
      await http.close();
    };
    return { executor, close };
  },
  MCP: async (registry) => {
    const server = toMcpServer(registry);
    const http = await serveMcpHttp(server);
    const source = await fromMcp(http.url, { namespace: "x", keepIds: true });
    const executor = new OperationRegistry();
    executor.registerAll(source);
    const close = async () => {
      await source.close();
      await http.close();
      await server.close();
    };
    return { executor, close };
  },
  "the bus": async (registry) => {
    const bus = createMemoryBus();
    const handler = await serveCalls(registry, bus);
    const executor = await createRemoteRegistry(bus);
    const close = async () => {
      await executor.close();
      await handler.drain();
      await bus.close();
    };
    return { executor, close };
  },
};

describe.each(Object.keys(WAYS))("X-6 an API somebody else runs, imported and served on over %s", (name) => {
  let way: Way;
  let close: () => Promise<void>;
  beforeAll(async () => {
    await new Promise<void>((resolve) =>
      foreign.listening ? resolve() : foreign.listen(0, "127.0.0.1", resolve),
    );
    const baseUrl = `http://127.0.0.1:${(foreign.address() as AddressInfo).port}`;
    const source = await fromOpenApi(DOCUMENT, { namespace: "far", baseUrl, retry: false });
    const registry = new OperationRegistry();
    registry.registerAll(source);
    way = await (WAYS[name] as (registry: OperationRegistry) => Promise<Way>)(registry);
    close = async () => {
      await way.close();
      await source.close();
    };
  });
  afterAll(() => close());

  it("RE-27 lets its pages be followed", async () => {
    const client = createClient(way.executor);
    expect(await collect(client.pages("far.linked", {}))).toEqual([[0], [1], [2]]);
    const pages = await collect(client.pages("far.offset", { offset: 0, limit: 2 }));
    expect(pages.flat()).toEqual([0, 1, 2, 3, 4]);
  });

  it("RE-26 gives its bytes and its events", async () => {
    expect((await way.executor.execute("far.bytes", {})).data).toEqual(Uint8Array.of(1, 2, 255));
    const events = await collect(way.executor.subscribe("far.events", {}));
    expect(events.map(({ data, meta }) => [data, meta.waybill?.cursor])).toEqual([
      [{ n: 1 }, "1"],
      [{ n: 2 }, "2"],
    ]);
  });

  it("X-11 fails with the same codes, and passes on what the other server said as its words alone", async () => {
    for (const [id, code] of [
      ["far.missing", "NOT_FOUND"],
      ["far.broken", "EXECUTION_ERROR"],
    ] as const) {
      const error = await rejection(way.executor.execute(id, {}));
      expect(error).toMatchObject({ code });
      const { message, details } = toCallError(error).toJSON();
      expect(message).not.toContain("closed");
      expect(details).toMatchObject({ said: "It is closed." });
      expect(JSON.stringify([message, details])).not.toContain("secret.js");
    }
  });
});

afterAll(() => new Promise((resolve) => foreign.close(resolve).closeAllConnections()));
