import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { query } from "../../../test/make-operation.ts";
import { loadedConfig } from "../../../test/served-gateway.ts";
import { toolError } from "../../core/envelope/envelope.ts";
import { defineOperation } from "../../core/operation/operation.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { serveMcpHttp, toMcpServer } from "../../mcp/index.ts";
import { serveHttp } from "../../openapi/server/serve-http.ts";
import { createGateway } from "../gateway.ts";
import { Metrics } from "./observe/metrics.ts";
import { type CallRecord, createObserver } from "./observe/observer.ts";
import { serveGateway } from "./serve-gateway.ts";

const MODERN = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};

describe("a gateway made from a config", () => {
  it("warns of a listener of its sources that throws, and goes on: the others hear, and the config is taken over", async () => {
    const warnings: string[] = [];
    const gateway = await createGateway(loadedConfig({}), { onWarning: (text) => void warnings.push(text) });
    let told = 0;
    gateway.onSources(() => {
      throw new Error("heard");
    });
    gateway.onSources(() => told++);
    await gateway.reload(loadedConfig({ mcpServers: { files: { command: "/nowhere/at/all" } } }));
    expect(gateway.sources.map(({ name }) => name)).toEqual(["files"]);
    await gateway.close();
    expect(told).toBeGreaterThan(0);
    expect(warnings).toContain("A listener of the sources threw.");
  });

  it("RE-30 is served whole, with what policies did in the record of each call", async () => {
    const observer = createObserver();
    const records: CallRecord[] = [];
    observer.listen({ end: (record) => void records.push(record) });
    const inputSchema = { type: "object", properties: {}, additionalProperties: false } as const;
    const greet = query("desk.greet", () => ({ hello: 1 }), { inputSchema });
    const loaded = {
      ...loadedConfig({
        policies: { "desk.*": { cacheMs: 60_000 } },
        mcpServers: { files: { command: "/nowhere/at/all" } },
      }),
      localOperations: [greet],
    };
    const gateway = await createGateway(loaded, { observers: [observer] });
    await gateway.ready;
    const server = await serveGateway(gateway, loaded);
    try {
      for (let i = 0; i < 2; i++) {
        expect(await (await fetch(`${server.url}/api/desk/greet`)).json()).toEqual({ hello: 1 });
      }
      const body = JSON.stringify({ operation: "files.read", input: {} });
      const headers = { "content-type": "application/json" };
      const missing = await fetch(`${server.url}/call`, { method: "POST", headers, body });
      expect(missing.status).toBe(503);
      expect(await missing.json()).toMatchObject({
        detail: 'The source "files" is down: its program cannot be started.',
      });
      const atPath = await fetch(`${server.url}/api/files/read?x=1`);
      expect([atPath.status, (await atPath.json()).detail]).toEqual([
        503,
        expect.stringContaining('The source "files" is'),
      ]);
      expect((await fetch(`${server.url}/api/other/read`)).status).toBe(404);
    } finally {
      await server.close({ timeoutMs: 0 });
      await gateway.close();
    }
    expect(records).toMatchObject([
      { operation: "desk.greet", entry: "http", outcome: "ok" },
      { operation: "desk.greet", cached: true },
      { operation: "files.read", outcome: "call_error", code: "UNAVAILABLE" },
    ]);
  });

  it("RE-30 says nothing of a source to callers who may call nothing of it, up or down", async () => {
    const tokens = {
      ann: { token: "the-token-of-ann-1", scopes: ["files"] },
      bob: { token: "the-token-of-bob-1" },
    };
    const loaded = {
      ...loadedConfig({
        serve: { auth: { tokens } },
        mcpServers: { files: { command: "/nowhere/at/all", policy: { scopes: ["files"] } } },
      }),
      localOperations: [query("desk.greet", () => 1)],
    };
    const gateway = await createGateway(loaded);
    await gateway.ready;
    const server = await serveGateway(gateway, loaded);
    const ask = async (who: string, path: string, body?: object, name = "") => {
      const headers = {
        authorization: `Bearer the-token-of-${who}-1`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        ...(path === "/mcp" && {
          "mcp-protocol-version": "2026-07-28",
          "mcp-method": "tools/call",
          "mcp-name": name,
        }),
      };
      const init = body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
      const response = await fetch(server.url + path, init);
      const text = await response.text();
      // What differs between any two requests.
      const told = text
        .replace(/"(?:instance|requestId|x-request-id)":"[^"]*"/g, "")
        .replaceAll("nowhere", "files");
      return [response.status, told];
    };
    const call = (name: string) => ({
      ...{ jsonrpc: "2.0", id: 1, method: "tools/call" },
      params: { name, arguments: {}, _meta: MODERN },
    });
    try {
      for (const to of [
        (who: string, source: string) => ask(who, "/call", { operation: `${source}.read`, input: {} }),
        (who: string, source: string) => ask(who, `/api/${source}/read`),
        (who: string, source: string) => ask(who, "/batch", [{ operation: `${source}.read`, input: {} }]),
        (who: string, source: string) => ask(who, "/mcp", call(`${source}_read`), `${source}_read`),
      ]) {
        expect(await to("bob", "files")).toEqual(await to("bob", "nowhere"));
        expect((await to("ann", "files"))[1]).toContain("The source");
        expect((await to("bob", "files"))[1]).not.toContain("The source");
      }
    } finally {
      await server.close({ timeoutMs: 0 });
      await gateway.close();
    }
  });

  it("X-4 shows the token of a caller to no server behind it, and to no handler", async () => {
    const TOKEN = "the-token-of-ann-1";
    const seen: string[] = [];
    const authenticate = ({ headers }: { headers: { entries(): Iterable<[string, string]> } }) => {
      seen.push(JSON.stringify([...headers.entries()]));
      return undefined;
    };
    const inputSchema = { type: "object", properties: {}, additionalProperties: false } as const;
    const behind = new OperationRegistry([query("desk.greet", () => 1, { inputSchema })]);
    const [mcp, api] = [
      await serveMcpHttp(toMcpServer(behind), { authenticate }),
      await serveHttp(behind, { authenticate }),
    ];
    const here = query("here.see", (_, context) => void seen.push(inspect(context, { depth: 9 })), {
      inputSchema,
    });
    const loaded = {
      ...loadedConfig({
        serve: { auth: { tokens: { ann: { token: TOKEN } } } },
        mcpServers: { tools: { url: mcp.url } },
        openapi: { api: { document: `${api.url}/openapi.json` } },
      }),
      localOperations: [here],
    };
    const gateway = await createGateway(loaded);
    await gateway.ready;
    const server = await serveGateway(gateway, loaded);
    try {
      seen.length = 0;
      const operations = [...gateway.executor.operations].map(({ id }) => id);
      expect(operations).toHaveLength(3);
      for (const sent of [{ authorization: `Bearer ${TOKEN}` }, { "x-api-key": TOKEN }]) {
        const post = async (path: string, body: object, more: Record<string, string> = {}) => {
          const headers = { ...sent, cookie: `t=${TOKEN}`, "content-type": "application/json", ...more };
          const init = { method: "POST", headers, body: JSON.stringify(body) };
          const response = await fetch(server.url + path, init);
          return { isFine: response.ok, told: await response.text() };
        };
        const rpc = async (method: string, name = "") => {
          const params = { ...(name !== "" && { name, arguments: {} }), _meta: MODERN };
          const { told } = await post(
            "/mcp",
            { jsonrpc: "2.0", id: 1, method, params },
            {
              ...{ accept: "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28" },
              ...{ "mcp-method": method, ...(name !== "" && { "mcp-name": name }) },
            },
          );
          return JSON.parse(told).result;
        };
        for (const operation of operations) {
          expect((await post("/call", { operation, input: {} })).isFine).toBe(true);
        }
        for (const { name } of (await rpc("tools/list")).tools) {
          expect(await rpc("tools/call", name)).toMatchObject({ content: expect.anything() });
        }
      }
      expect(seen.length).toBeGreaterThanOrEqual(12);
      expect(seen.filter((text) => text.includes(TOKEN))).toEqual([]);
    } finally {
      await server.close({ timeoutMs: 0 });
      await gateway.close();
      await mcp.close({ timeoutMs: 0 });
      await api.close({ timeoutMs: 0 });
    }
  });

  it("RE-30 records a repetition over HTTP as one, with how the first call ended, and runs nothing again", async () => {
    const logged: Record<string, unknown>[] = [];
    const metrics = new Metrics();
    const log = { info: (_: string, fields?: object) => void logged.push({ ...fields }) };
    const observer = createObserver({ log, metrics });
    const seen: unknown[] = [];
    observer.listen({
      begin: ({ operation }) => void seen.push(["begin", operation]),
      end: ({ repeated }, { input }) => void seen.push(["end", repeated, input]),
    });
    let runs = 0;
    const act = (name: string, handler: () => unknown) =>
      defineOperation({
        ...{ namespace: "desk", name, version: "1.0.0", type: "mutation", description: "" },
        handler,
      });
    const operations = [
      act("book", () => ({ runs: ++runs })),
      act("refuse", () => {
        runs++;
        return toolError("It is gone.", { code: "NOT_FOUND" });
      }),
    ];
    const auth = { tokens: { ann: { token: "the-token-of-ann-1" } } };
    const loaded = { ...loadedConfig({ serve: { auth } }), localOperations: operations };
    const gateway = await createGateway(loaded, { observers: [observer] });
    await gateway.ready;
    const server = await serveGateway(gateway, loaded, { metrics, onReplay: observer.replay });
    const headers = {
      ...{ "content-type": "application/json", authorization: "Bearer the-token-of-ann-1" },
      "idempotency-key": "one",
    };
    const post = async (path: string, body: unknown, id: string) => {
      const init = {
        method: "POST",
        headers: { ...headers, "x-request-id": id },
        body: JSON.stringify(body),
      };
      return (await fetch(`${server.url}${path}`, init)).headers.get("idempotency-replayed");
    };
    try {
      expect(await post("/api/desk/book", { n: 1 }, "a")).toBeNull();
      expect(await post("/api/desk/book", { n: 1 }, "b")).toBe("true");
      expect(await post("/api/desk/refuse", {}, "c")).toBeNull();
      expect(await post("/api/desk/refuse", {}, "d")).toBe("true");
      const batch = [{ operation: "desk.book", input: { n: 2 } }];
      await post("/batch", batch, "e");
      await post("/batch", batch, "f");
    } finally {
      await server.close({ timeoutMs: 0 });
      await gateway.close();
      metrics.close();
    }
    expect(runs).toBe(3);
    const told = { source: "desk", type: "mutation", subject: "ann", entry: "http" };
    expect(logged).toMatchObject([
      { event: "call", requestId: "a", operation: "desk.book", outcome: "ok" },
      { event: "call", requestId: "b", operation: "desk.book", ...told, outcome: "ok", repeated: true },
      { requestId: "c", operation: "desk.refuse", outcome: "tool_error" },
      { requestId: "d", ...told, outcome: "tool_error", code: "NOT_FOUND", repeated: true },
      { operation: "desk.book" },
      { operation: "desk.book", ...told, outcome: "ok", repeated: true },
    ]);
    expect(logged.filter(({ repeated }) => repeated).length).toBe(3);
    expect(seen.slice(2, 4)).toEqual([
      ["begin", "desk.book"],
      ["end", true, { n: 1 }],
    ]);
    expect(observer.running).toBe(0);
    expect(metrics.text()).toMatch(/waybill_calls_total\{operation="desk\.book"[^}]*\} 4/);
  });
});
