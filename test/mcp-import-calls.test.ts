import { afterEach, describe, expect, it, vi } from "vitest";
import { type CallError, encodeEnvelope, localEnvelope, OperationRegistry, unwrap } from "../src/index.ts";
import { toMcpServer } from "../src/mcp/index.ts";
import { closeImported, imported, OBJECT, serverOf, text } from "./import-raw-server.ts";
import { collect, rejection, until } from "./make-operation.ts";
import { CLIENTS } from "./mcp-server-peers.ts";

afterEach(async () => {
  vi.useRealTimers();
  await closeImported();
});

describe("calling imported tools", () => {
  it("RE-23 sends the input as given, with the trace, and hears progress", async () => {
    const server = serverOf(
      () => [{ name: "t", inputSchema: OBJECT }],
      ({ arguments: args, _meta }) => {
        const { progressToken } = _meta as { progressToken: unknown };
        server.notify("notifications/progress", { progressToken, progress: 1, total: 2, message: "half" });
        return { content: [], structuredContent: { args: args ?? null } };
      },
    );
    const { registry } = await imported(server);
    const heard: unknown[] = [];
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const options = {
      metadata: { traceparent, other: 1 },
      onProgress: (value: unknown) => heard.push(value),
    };
    expect((await registry.execute("raw.t", { a: 1 }, options)).data).toEqual({ args: { a: 1 } });
    expect(heard).toEqual([{ progress: 1, total: 2, message: "half" }]);
    const { params } = server.received.find(({ method }) => method === "tools/call") ?? {};
    expect(params?.["_meta"]).toMatchObject({ traceparent });
    expect(params?.["_meta"]).not.toHaveProperty("other");
  });

  it("RE-23 sends the trace that it is given for a call, in place of the caller's", async () => {
    const server = serverOf(
      () => [{ name: "t", inputSchema: OBJECT }],
      () => ({ content: [] }),
    );
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const given: unknown[] = [];
    const propagate = (metadata: object) => {
      given.push(metadata);
      return { traceparent };
    };
    const { registry } = await imported(server, { propagate });
    await registry.execute("raw.t", {}, { metadata: { mine: 1 } });
    const { params } = server.received.find(({ method }) => method === "tools/call") ?? {};
    expect([given, params?.["_meta"]]).toMatchObject([[{ mine: 1 }], { traceparent }]);
  });

  it("RE-23 input that is no object is refused before anything is sent", async () => {
    const server = serverOf(() => [{ name: "t", inputSchema: true }]);
    const { registry } = await imported(server);
    for (const input of ["x", 1, null, [1], new Map()]) {
      expect(await rejection(registry.execute("raw.t", input))).toMatchObject({ code: "VALIDATION_ERROR" });
    }
    expect(server.received.some(({ method }) => method === "tools/call")).toBe(false);
  });

  it("RE-23 an abort reaches the server, and a deadline ends the call", async () => {
    const server = serverOf(
      () => [{ name: "t", inputSchema: OBJECT }],
      () => new Promise(() => {}),
    );
    const { registry } = await imported(server);
    const controller = new AbortController();
    const pending = registry.execute("raw.t", {}, { signal: controller.signal });
    const calls = () => server.received.filter(({ method }) => method === "tools/call").length;
    await until(() => calls() === 1);
    controller.abort();
    expect(await rejection(pending)).toMatchObject({ code: "ABORTED" });
    // No time passes until the server has the call.
    vi.useFakeTimers({ toFake: ["performance"] });
    const late = rejection(registry.execute("raw.t", {}, { timeoutMs: 30 }));
    await until(() => calls() === 2);
    vi.advanceTimersByTime(30);
    expect(await late).toMatchObject({ code: "TIMEOUT" });
    await expect
      .poll(() => server.received.filter(({ method }) => method === "notifications/cancelled").length, {
        timeout: 20_000,
      })
      .toBe(2);
  });

  it("RE-23 breaking an output schema is reported, or refused where that is asked for; errors are not looked at", async () => {
    let isError = false;
    const tool = { name: "t", inputSchema: OBJECT, outputSchema: { ...OBJECT, required: ["n"] } };
    const server = serverOf(
      () => [tool],
      () => ({ content: [text("x")], structuredContent: {}, isError }),
    );
    const warn = await imported(server);
    const strict = await imported(server, { outputPolicy: "strict" });
    const envelope = await warn.registry.execute("raw.t", {});
    expect(envelope.data).toEqual({});
    expect(envelope.meta.waybill?.violations).toHaveLength(1);
    expect(await rejection(strict.registry.execute("raw.t", {}))).toMatchObject({ code: "OUTPUT_INVALID" });
    isError = true;
    expect((await strict.registry.execute("raw.t", {})).meta.isError).toBe(true);
  });

  it.each(["strict", "warn", "off"] as const)(
    "RE-23 the policy %s of a registry holds for imported tools, unless the import has its own",
    async (outputPolicy) => {
      const tool = { name: "t", inputSchema: OBJECT, outputSchema: { ...OBJECT, required: ["n"] } };
      const server = serverOf(
        () => [tool],
        () => ({ content: [text("x")], structuredContent: {} }),
      );
      const { source } = await imported(server);
      const registry = new OperationRegistry([], { outputPolicy, onWarning: () => {} });
      registry.registerAll(source);
      const outcome = await registry.execute("raw.t", {}).then(
        ({ meta }) => meta.waybill?.violations?.length ?? 0,
        (error: unknown) => (error as CallError).code,
      );
      expect(outcome).toBe({ strict: "OUTPUT_INVALID", warn: 1, off: 0 }[outputPolicy]);
      const own = await imported(server, { outputPolicy: "strict" });
      const other = new OperationRegistry([], { outputPolicy, onWarning: () => {} });
      other.registerAll(own.source);
      expect(await rejection(other.execute("raw.t", {}))).toMatchObject({ code: "OUTPUT_INVALID" });
    },
  );

  it("RE-31 a supplied schema wins over the advertised one, and asks for JSON in text", async () => {
    const server = serverOf(
      () => [{ name: "t", inputSchema: OBJECT, outputSchema: { type: "string" } }],
      () => ({ content: [text("[1,2]")] }),
    );
    const schemas = { t: { type: "array", items: { type: "integer" } } };
    const { registry } = await imported(server, { schemas });
    expect(await registry.execute("raw.t", {})).toMatchObject({
      data: [1, 2],
      meta: { waybill: { obtained: "text-json" } },
    });
  });

  it("RE-23 unwraps { result } only where the schema is exactly that, and not where it is unwanted", async () => {
    const outputSchema = { ...OBJECT, properties: { result: { type: "integer" } }, required: ["result"] };
    const server = serverOf(
      () => [{ name: "t", inputSchema: OBJECT, outputSchema }],
      () => ({ content: [text("7")], structuredContent: { result: 7 } }),
    );
    const { registry } = await imported(server);
    expect(registry.get("raw.t")?.outputSchema).toEqual({ type: "integer" });
    expect((await registry.execute("raw.t", {})).data).toBe(7);
    const whole = await imported(server, { unwrapResult: false });
    expect((await whole.registry.execute("raw.t", {})).data).toEqual({ result: 7 });
  });

  it("RE-23 an unknown tool is OPERATION_NOT_FOUND, and what is no result OUTPUT_INVALID", async () => {
    const server = serverOf(
      () => [{ name: "t", inputSchema: OBJECT }],
      ({ name }) => {
        if (name !== "t") throw { code: -32602, message: `Unknown tool: ${name}` };
        return { content: [], deep: JSON.parse("[".repeat(600) + "]".repeat(600)) };
      },
    );
    const { source } = await imported(server);
    expect(await rejection(source.call("nope", {}))).toMatchObject({ code: "OPERATION_NOT_FOUND" });
    expect(await rejection(source.call("t", {}))).toMatchObject({ code: "OUTPUT_INVALID" });
  });
});

describe("results that are not as MCP has them", () => {
  const answers: Record<string, object> = {
    starter: { message: "Hello, Ada!" },
    old: { toolResult: { n: 1 } },
    beside: { content: [text("3 rows")], rows: [1, 2, 3], resultType: "complete", inputRequests: {} },
    failed: { content: [text("No such row.")], isError: "true" },
    null: { content: [text("fine")], isError: null },
  };

  it("RE-23 are read, noted, and passed on when served", async () => {
    const tools = Object.keys(answers).map((name) => ({ name, inputSchema: OBJECT }));
    const { source, registry, warnings } = await imported(
      serverOf(
        () => tools,
        ({ name }) => answers[String(name)],
      ),
    );
    const first = async (name: string) => await registry.execute(`raw.${name}`, {});
    expect(unwrap(await first("starter"))).toEqual({ message: "Hello, Ada!" });
    expect(unwrap(await first("old"))).toEqual({ toolResult: { n: 1 } });
    expect((await first("beside")).meta.waybill?.unknown).toEqual({ rows: [1, 2, 3], inputRequests: {} });
    expect([(await first("failed")).meta.isError, (await first("null")).meta.isError]).toEqual([true, false]);
    expect(source.oddities).toBe(5);
    expect(warnings.filter((warning) => warning.includes("answers with"))).toHaveLength(5);
    const server = toMcpServer(registry);
    for (const connect of Object.values(CLIENTS)) {
      const client = await connect(server);
      const call = async (name: string) => await client.callTool({ name: `raw_${name}`, arguments: {} });
      expect(await call("starter")).toMatchObject({
        content: [text('{"message":"Hello, Ada!"}')],
        structuredContent: { message: "Hello, Ada!" },
      });
      const beside = await call("beside");
      expect(beside).toMatchObject({ content: [text("3 rows")], rows: [1, 2, 3] });
      expect(beside).not.toHaveProperty("inputRequests");
      expect(await call("failed")).toMatchObject({ content: [text("No such row.")], isError: true });
      await client.close();
    }
    await server.close();
  });
});

describe("keeping ids", () => {
  const facts = (more: object) => ({
    "dev.waybill/operation": { id: "shop.buy", type: "query", version: "2.0.0", ...more },
  });

  it("X-6 tools that Waybill serves keep their ids, types, versions and errors; others go under the namespace", async () => {
    const errors = [{ code: "SOLD_OUT", httpStatus: 409 }];
    const server = serverOf(
      () => [
        { name: "shop_buy", inputSchema: OBJECT, _meta: facts({ tags: ["a"], errors }) },
        { name: "plain", inputSchema: OBJECT, _meta: { "dev.waybill/operation": { id: "bad id" } } },
      ],
      () => ({
        content: [text("No.")],
        isError: true,
        _meta: { "dev.waybill/result": { outcome: "call-error", code: "SOLD_OUT", message: "None left." } },
      }),
    );
    const { registry } = await imported(server, { keepIds: true });
    expect(registry.list().map(({ id }) => id)).toEqual(["raw.plain", "shop.buy"]);
    expect(registry.get("shop.buy")).toMatchObject({ type: "query", version: "2.0.0", tags: ["a"], errors });
    expect(await rejection(registry.execute("shop.buy", {}))).toMatchObject({
      code: "SOLD_OUT",
      httpStatus: 409,
    });
    expect((await registry.execute("raw.plain", {})).meta.isError).toBe(true);
    const without = await imported(server, { keepIds: true, namespace: undefined });
    expect(without.source.unusable.map(({ tool }) => tool)).toEqual(["plain"]);
    expect((await imported(server)).registry.get("shop.buy")).toBeUndefined();
  });

  it("X-6 input that was wrapped for MCP is unwrapped again", async () => {
    const inputSchema = { ...OBJECT, properties: { input: { type: "string" } }, required: ["input"] };
    const server = serverOf(
      () => [{ name: "t", inputSchema, _meta: facts({ wrapsInput: true }) }],
      ({ arguments: args }) => ({ content: [], structuredContent: { args } }),
    );
    const { registry } = await imported(server, { keepIds: true });
    expect(registry.get("shop.buy")?.inputSchema).toEqual({ type: "string" });
    expect((await registry.execute("shop.buy", "x")).data).toEqual({ args: { input: "x" } });
  });

  it("RE-28 a subscription yields what progress brings, and leaving it cancels the call", async () => {
    const server = serverOf(
      () => [{ name: "s", inputSchema: OBJECT, _meta: facts({ type: "subscription" }) }],
      async ({ arguments: args, _meta }) => {
        const { progressToken } = _meta as { progressToken: unknown };
        for (let n = 0; n < 3; n++) {
          const value = encodeEnvelope(localEnvelope({ n, at: new Date(n) }, "shop.buy"));
          server.notify("notifications/progress", {
            progressToken,
            progress: n + 1,
            _meta: { "dev.waybill/yield": value },
          });
        }
        if ((args as { forever?: boolean }).forever) await new Promise(() => {});
        return { content: [], structuredContent: { items: [], count: 3, truncated: false } };
      },
    );
    const { registry } = await imported(server, { keepIds: true });
    const values = await collect(registry.subscribe("shop.buy", {}));
    expect(values.map(({ data }) => data)).toEqual([0, 1, 2].map((n) => ({ n, at: new Date(n) })));
    expect(values.map(({ meta }) => [meta.source, meta.waybill?.sequence])).toEqual([
      ["mcp", 0],
      ["mcp", 1],
      ["mcp", 2],
    ]);
    for await (const { data } of registry.subscribe("shop.buy", { forever: true })) {
      if ((data as { n: number }).n === 1) break;
    }
    await expect
      .poll(() => server.received.some(({ method }) => method === "notifications/cancelled"), {
        timeout: 20_000,
      })
      .toBe(true);
  });
});
