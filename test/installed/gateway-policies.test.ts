import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { OperationPolicy } from "../../src/gateway/index.ts";
import {
  CLIENT_KINDS,
  callTool,
  connectClient,
  connectForTest,
  type GatewayProcess,
  type ServiceProcess,
  STDIO_SERVICE,
  service,
  startGateway,
  startService,
} from "../gateway-process.ts";
import { waybill } from "../installed-command.ts";

const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

describe("a gateway that asks for tokens", () => {
  const TOKENS = { ann: "ann-0123456789abcdef", bob: "bob-0123456789abcdef", cat: "cat-0123456789abcdef" };
  let gateway: GatewayProcess;
  beforeAll(async () => {
    gateway = await startGateway(
      {
        mcpServers: { near: { ...STDIO_SERVICE, policy: { scopes: ["sums"] } } },
        operations: service("operations.js"),
        policies: { "local.health": { scopes: ["sums", "admin"] } },
        serve: {
          auth: {
            tokens: {
              ann: { token: "${ANN}", scopes: ["sums"] },
              bob: { token: "${BOB}" },
              cat: { token: "${CAT}", scopes: ["sums", "admin"], format: "status-envelope" },
            },
          },
          clients: { "desk-*": { format: "tool-envelope" } },
        },
      },
      { env: { ANN: TOKENS.ann, BOB: TOKENS.bob, CAT: TOKENS.cat } },
    );
  });
  afterAll(async () => {
    expect((await gateway?.stop())?.code).toBe(0);
  });

  it("RE-30 refuses who has none or a wrong one, over HTTP and MCP", async () => {
    const add = { a: 1, b: 2 };
    const wrong = [{}, as("wrong-0123456789abcdef"), { headers: { authorization: TOKENS.ann } }];
    for (const init of wrong) {
      expect((await gateway.post("local.add", add, init)).status).toBe(401);
      for (const kind of CLIENT_KINDS) await expect(connectClient(kind, gateway, init)).rejects.toThrow();
    }
    for (const path of ["/", "/metrics", "/openapi.json"]) {
      expect([path, (await fetch(gateway.url + path)).status]).toEqual([path, 401]);
    }
    expect((await gateway.post("local.add", add, as(TOKENS.bob))).status).toBe(200);
    const missing = await waybill(["list", "--url", gateway.url]);
    expect(missing.code).toBe(3);
    const found = await waybill(["list", "--url", gateway.url], { env: { WAYBILL_TOKEN: TOKENS.ann } });
    expect([found.code, found.stdout.includes("near.add")]).toEqual([0, true]);
  });

  it.each(CLIENT_KINDS)("RE-30 shows and runs for %s what the scopes of a token allow", async (kind) => {
    const seen: Record<string, unknown> = {};
    for (const [name, token] of Object.entries(TOKENS)) {
      const client = await connectForTest(kind, gateway, as(token));
      const names = (await client.listTools()).tools.map((tool) => tool.name);
      const call = (id: string, input: object) =>
        callTool(client, id, input).then(
          ({ isError = false }) => (isError ? "error" : "ok"),
          () => "error",
        );
      seen[name] = {
        near: names.includes("near_add"),
        health: names.includes("local_health"),
        add: await call("near.add", { a: 1, b: 2 }),
        look: await call("local.health", {}),
        http: (await gateway.post("near.add", { a: 1, b: 2 }, as(token))).status,
        api: (await fetch(`${gateway.url}/api/local/health`, as(token))).status,
      };
    }
    expect(seen).toEqual({
      ann: { near: true, health: false, add: "ok", look: "error", http: 200, api: 403 },
      bob: { near: false, health: false, add: "error", look: "error", http: 403, api: 403 },
      cat: { near: true, health: true, add: "ok", look: "ok", http: 200, api: 200 },
    });
  });

  it.each(CLIENT_KINDS)("RE-30 writes for %s in the format of its name or its token", async (kind) => {
    const formatOf = async (token: string, name: string) => {
      const client = await connectForTest(kind, gateway, { ...as(token), name });
      const { content, structuredContent } = await callTool(client, "local.add", { a: 1, b: 2 });
      if (content.some(({ text = "" }) => text.startsWith("__ENVELOPE_V1__"))) return "tool-envelope";
      return "meta" in (structuredContent as object) ? "status-envelope" : "mcp";
    };
    expect(await formatOf(TOKENS.ann, "other")).toBe("mcp");
    expect(await formatOf(TOKENS.cat, "other")).toBe("status-envelope");
    expect(await formatOf(TOKENS.cat, "desk-7")).toBe("tool-envelope");
  });
});

describe("policies of a config", () => {
  let depot: ServiceProcess;
  let gateway: GatewayProcess;
  const POLICIES: Record<string, OperationPolicy> = {
    "depot.wait": { timeoutMs: 3_000 },
    "near.wait": { timeoutMs: 3_000 },
    "depot.count": { cacheMs: 60_000, singleFlight: true },
    "depot.crowd": { concurrency: 2 },
    "local.add": { rate: { calls: 2, perMs: 1_000 } },
    "local.health": { enabled: false },
    "flaky.try": { retry: { attempts: 4, delayMs: 1 } },
    "flaky.change": { retry: { attempts: 4, delayMs: 1 } },
  };
  const FLAKY = `
    import { CallError } from "waybill";
    const counts = new Map();
    const handler = ({ key, fails }) => {
      const tried = (counts.get(key) ?? 0) + 1;
      counts.set(key, tried);
      if (tried <= fails) throw new CallError("UNAVAILABLE", "Not yet.");
      return { tried };
    };
    const inputSchema = { type: "object", properties: { key: { type: "string" }, fails: { type: "integer" } }, required: ["key", "fails"] };
    const shared = { namespace: "flaky", version: "1.0.0", description: "", inputSchema, handler };
    export const again = { ...shared, name: "try", type: "query" };
    export const change = { ...shared, name: "change", type: "mutation" };
  `;
  beforeAll(async () => {
    depot = await startService("http-service.js");
    gateway = await startGateway(
      {
        mcpServers: { near: { ...STDIO_SERVICE, policy: { deny: ["pro*"] } } },
        openapi: {
          depot: { document: `${depot.url}/openapi.json` },
          few: { document: `${depot.url}/openapi.json`, policy: { allow: ["add", "w*"], deny: ["wait"] } },
        },
        operations: [service("operations.js"), "flaky.js"],
        policies: POLICIES,
      },
      { files: { "flaky.js": FLAKY } },
    );
  });
  afterAll(async () => {
    const ended = await gateway?.stop();
    await depot?.kill();
    expect(ended?.code).toBe(0);
  });

  const call = async (
    operation: string,
    input: object,
    headers: Record<string, string> = {},
  ): Promise<Record<string, unknown>> => {
    const { status, body } = await gateway.post(operation, input, { headers });
    return { ...(body as Record<string, unknown>), status };
  };

  it("RE-30 leave out what is denied, not allowed or switched off, everywhere", async () => {
    const { tools } = await (await connectForTest("SDK 1", gateway)).listTools();
    const names = tools.map(({ name }) => name);
    const { stdout } = await waybill(["list", "--url", gateway.url, "--json"]);
    const document = await (await fetch(`${gateway.url}/openapi.json`)).text();
    for (const [operation, isThere] of [
      ["near.add", true],
      ["near.process", false],
      ["few.add", true],
      ["few.wait", false],
      ["few.echo", false],
      ["local.health", false],
    ] as const) {
      expect([operation, names.includes(operation.replace(".", "_"))]).toEqual([operation, isThere]);
      expect([operation, stdout.includes(`"${operation}"`)]).toEqual([operation, isThere]);
      expect([operation, document.includes(`/api/${operation.replace(".", "/")}"`)]).toEqual([
        operation,
        isThere,
      ]);
      if (!isThere) expect((await call(operation, {})).status).toBe(404);
    }
  });

  it("RE-30 end calls that take too long, over HTTP and MCP", async () => {
    const client = await connectForTest("SDK 2, 2026", gateway);
    const end = async (operation: string): Promise<void> => {
      const [quick, slow, answer] = await Promise.all([
        call(operation, { ms: 1 }),
        call(operation, { ms: 60_000 }),
        callTool(client, operation, { ms: 60_000 }),
      ]);
      expect(quick).toMatchObject({ status: 200, waited: 1 });
      expect(slow).toMatchObject({ status: 504, code: "TIMEOUT" });
      expect([answer.isError, JSON.stringify(answer).includes("TIMEOUT")]).toEqual([true, true]);
    };
    await Promise.all(["depot.wait", "near.wait"].map(end));
    // What a caller asks for may be shorter, and is not longer.
    const header = { "waybill-timeout-ms": "50" };
    expect(await call("local.wait", { ms: 60_000 }, header)).toMatchObject({ status: 504, code: "TIMEOUT" });
    const longer = { "waybill-timeout-ms": "50000" };
    expect(await call("near.wait", { ms: 60_000 }, longer)).toMatchObject({ status: 504, code: "TIMEOUT" });
  });

  it("RE-30 try reads again, and never what changes something", async () => {
    expect(await call("flaky.try", { key: "a", fails: 3 })).toMatchObject({ status: 200, tried: 4 });
    expect(await call("flaky.try", { key: "b", fails: 4 })).toMatchObject({
      status: 503,
      code: "UNAVAILABLE",
    });
    expect(await call("flaky.change", { key: "c", fails: 1 })).toMatchObject({ status: 503 });
    expect(await call("flaky.change", { key: "c", fails: 1 })).toMatchObject({ status: 200, tried: 2 });
    expect(gateway.stderr()).toContain('"attempts":4');
  });

  it("RE-30 share one run among callers of the same, and keep what it came to", async () => {
    const client = await connectForTest("SDK 2, 2025", gateway);
    const input = { key: "shared", ms: 300 };
    const calls = Array.from({ length: 20 }, (_, i) =>
      i % 2 === 0
        ? call("depot.count", input).then(({ counted }) => counted)
        : callTool(client, "depot.count", input).then(
            ({ structuredContent }) => (structuredContent as { counted: number }).counted,
          ),
    );
    expect(new Set(await Promise.all(calls))).toEqual(new Set([1]));
    const hits = (await gateway.metric("waybill_cache_hits_total")) ?? 0;
    expect(await call("depot.count", input)).toMatchObject({ counted: 1 });
    expect(await gateway.metric("waybill_cache_hits_total")).toBe(hits + 1);
    expect(await call("depot.count", { ...input, key: "other" })).toMatchObject({ counted: 1 });
  });

  it("RE-30 let no more run at a time, nor in a period, than they say", async () => {
    const crowd = await Promise.all(Array.from({ length: 8 }, () => call("depot.crowd", { ms: 300 })));
    expect(crowd.every(({ status }) => status === 200)).toBe(true);
    expect(Math.max(...crowd.map(({ most }) => most as number))).toBe(2);
    const startedAt = performance.now();
    const sums = await Promise.all(Array.from({ length: 5 }, () => call("local.add", { a: 1, b: 1 })));
    expect(sums.every(({ status }) => status === 200)).toBe(true);
    // Two at once, two a second later, one after another second: turns are waited for, and none is lost.
    expect(performance.now() - startedAt).toBeGreaterThan(1_000);
    expect(gateway.stderr()).toMatch(/"operation":"local.add"[^\n]*"waitedMs":/);
  });

  it("RE-30 run what changes something once for each idempotency key, over HTTP and MCP", async () => {
    const input = { body: { key: "ordered" } };
    const key = { "idempotency-key": "k-1" };
    const [first, second] = await Promise.all([
      call("depot.order", input, key),
      call("depot.order", input, key),
    ]);
    expect([first, second]).toMatchObject([
      { status: 200, ordered: 1 },
      { status: 200, ordered: 1 },
    ]);
    expect(await call("depot.order", input, key)).toMatchObject({ ordered: 1 });
    expect(await call("depot.order", { body: { key: "else" } }, key)).toMatchObject({ status: 422 });
    expect(await call("depot.order", input)).toMatchObject({ ordered: 2 });
    const client = await connectForTest("SDK 1", gateway);
    const meta = { "dev.waybill/idempotencyKey": "k-2" };
    const answers = [
      await callTool(client, "depot.order", input, { meta }),
      await callTool(client, "depot.order", input, { meta }),
    ];
    expect(answers.map(({ structuredContent }) => structuredContent)).toEqual([
      { ordered: 3 },
      { ordered: 3 },
    ]);
  });

  it("RE-30 count every call once in the audit log and in /metrics", async () => {
    const text = await (await fetch(`${gateway.url}/metrics`)).text();
    const counted = [...text.matchAll(/^waybill_calls_total\{.*\} (\d+)$/gm)];
    const records = gateway.stderr().match(/"event":"call"/g)?.length;
    expect(counted.reduce((sum, [, value]) => sum + Number(value), 0)).toBe(records);
  });
});
