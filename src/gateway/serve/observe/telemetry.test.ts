import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { context, metrics, propagation, trace } from "@opentelemetry/api";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { query, rejection, until } from "../../../../test/make-operation.ts";
import { handGateway, loadedConfig } from "../../../../test/served-gateway.ts";
import { serveCalls } from "../../../call/call-handler.ts";
import { createMemoryBus } from "../../../call/memory-bus.ts";
import { PendingRequestMap } from "../../../call/pending-request-map.ts";
import { createRemoteRegistry } from "../../../call/remote-registry.ts";
import { toolError } from "../../../core/envelope/envelope.ts";
import { CallError } from "../../../core/errors/errors.ts";
import { OperationRegistry } from "../../../core/registry/registry.ts";
import { SecretMask } from "../../../core/secrets/secret-mask.ts";
import { serveGateway } from "../serve-gateway.ts";
import { createLogger } from "./logger.ts";
import { createObserver, withEntry } from "./observer.ts";
import { createTelemetry, type Telemetry, wantsTelemetry } from "./telemetry.ts";

interface SentSpan {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly status: { readonly code?: number };
  readonly attributes: readonly { readonly key: string; readonly value: Record<string, unknown> }[];
}

const OBSERVED = { type: "requested", operationId: "desk.say", requestId: "r" } as const;
const SERVER = 2;
const INTERNAL = 1;
const CLIENT = 3;

const attributesOf = ({ attributes }: SentSpan) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

/** What one file registers with this process is there for the next one. */
function unregister(): void {
  for (const api of [trace, metrics, context, propagation]) api.disable();
}

describe("createTelemetry", () => {
  const bodies: string[] = [];
  const posts: { readonly path: string; readonly body: Record<string, unknown> }[] = [];
  const receiver = createServer((request, response) => {
    let text = "";
    request.on("data", (chunk) => {
      text += chunk;
    });
    request.on("end", () => {
      bodies.push(text);
      posts.push({ path: request.url ?? "", body: JSON.parse(text) });
      response.setHeader("content-type", "application/json").end("{}");
    });
  });
  let telemetry: Telemetry | undefined;

  beforeAll(async () => {
    await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
    const { port } = receiver.address() as AddressInfo;
    unregister();
    const settings = {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_BSP_SCHEDULE_DELAY: "50",
      OTEL_METRIC_EXPORT_INTERVAL: "1000",
      OTEL_METRIC_EXPORT_TIMEOUT: "1000",
    };
    for (const [name, value] of Object.entries(settings)) vi.stubEnv(name, value);
    telemetry = await createTelemetry();
  });

  afterAll(async () => {
    vi.unstubAllEnvs();
    await telemetry?.close();
    unregister();
    receiver.close();
  });

  const spans = (): SentSpan[] =>
    posts
      .filter(({ path }) => path === "/v1/traces")
      .flatMap(({ body }) =>
        (body["resourceSpans"] as unknown as { scopeSpans: { spans: SentSpan[] }[] }[]).flatMap(
          ({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans),
        ),
      );

  it("RE-30 sends a span for each call, within the caller's trace, and passes the trace on", async () => {
    if (telemetry === undefined) throw new Error("no telemetry");
    const passedOn: unknown[] = [];
    const gateway = handGateway(
      [
        query("desk.inner", (_, context) => {
          passedOn.push(context.metadata["traceparent"]);
          return "planted-output";
        }),
        query("desk.outer", (_, context) =>
          context.execute("desk.inner", { text: "planted-input" } as never),
        ),
        query("desk.broken", () => {
          throw new CallError("UNAVAILABLE", "planted-message");
        }),
      ],
      [createObserver({ telemetry })],
    );
    const server = await serveGateway(gateway, loadedConfig(), { telemetry });
    const call = (operation: string, headers: Record<string, string> = {}) =>
      fetch(`${server.url}/call`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify({ operation, input: { text: "planted-input" } }),
      });
    const traceId = "0af7651916cd43dd8448eb211c80319c";
    try {
      expect((await call("desk.outer", { traceparent: `00-${traceId}-b7ad6b7169203331-01` })).status).toBe(
        200,
      );
      expect((await call("desk.broken")).status).toBe(503);
      await until(() => spans().length >= 3);
    } finally {
      await server.close({ timeoutMs: 0 });
    }
    const named = (name: string) => spans().find((span) => span.name === name) as SentSpan;
    const [outer, inner, broken] = [named("desk.outer"), named("desk.inner"), named("desk.broken")];
    expect(outer).toMatchObject({ kind: SERVER, traceId, parentSpanId: "b7ad6b7169203331" });
    expect(inner).toMatchObject({ kind: INTERNAL, traceId, parentSpanId: outer.spanId });
    expect(passedOn).toEqual([`00-${traceId}-${outer.spanId}-01`]);
    expect(broken).toMatchObject({ kind: SERVER, status: { code: 2 } });
    expect(broken.parentSpanId ?? "").toBe("");
    expect(attributesOf(broken)).toMatchObject({
      "waybill.operation": "desk.broken",
      "waybill.source": "desk",
      "waybill.outcome": "call_error",
      "waybill.entry": "http",
      "error.type": "UNAVAILABLE",
    });
  });

  it("RE-30 sends no secret, and no code that a tool made up", async () => {
    const secrets = new SecretMask();
    secrets.add("hunter2-hunter2");
    const log = await createLogger({ secrets, write: () => {}, config: { format: "text" } });
    const odd = query("desk.hunter2-hunter2", () => toolError("No.", { code: "made-up-hunter2" as never }));
    const registry = new OperationRegistry([odd]);
    registry.use(createObserver({ telemetry, log }));
    await registry.execute("desk.hunter2-hunter2", undefined, { requestId: "r-hunter2-hunter2" });
    await until(() => bodies.some((body) => body.includes('"r-***"')));
    await until(() => bodies.some((body) => body.includes("waybill.calls") && body.includes("desk.***")));
    expect(bodies.join("\n")).toContain('{"key":"error.type","value":{"stringValue":"other"}}');
    expect(bodies.join("\n")).not.toContain("hunter2");
    expect(bodies.join("\n")).not.toContain("made-up");
  });

  it("RE-30 sends metrics under its own name, and nothing of what calls hold or how the process was started", async () => {
    await until(() => bodies.some((body) => body.includes("waybill.call.duration")));
    const sent = bodies.join("\n");
    expect(sent).toContain('"waybill.calls"');
    expect(sent).toMatch(/"service\.name","value":\{"stringValue":"waybill"\}/);
    expect(sent).not.toContain("planted");
    expect(sent).not.toContain("process.command");
  });

  it("RE-17 sends what crosses a bus as metrics, by end and outcome", async () => {
    const bus = createMemoryBus();
    bus.onCall(createObserver({ telemetry }).busCall);
    await serveCalls(new OperationRegistry([query("desk.say", () => "planted-output")]), bus);
    const map = new PendingRequestMap(bus);
    await map.call("desk.say", "planted-input");
    await rejection(map.call("planted.operation"));
    telemetry?.busCall({ ...OBSERVED, end: "caller", sentBytes: 7 });
    telemetry?.busCall({ ...OBSERVED, end: "caller", receivedBytes: 8 });
    const names = ["waybill.bus.calls", "waybill.bus.call.duration", "waybill.bus.bytes", "NO_RESPONDER"];
    await until(() => bodies.some((body) => names.every((name) => body.includes(name))));
    expect(bodies.join("\n")).not.toContain("planted");
  });

  it("RE-17 RE-30 traces a call over the bus at both ends, by the conventions for RPC", async () => {
    if (telemetry === undefined) throw new Error("no telemetry");
    const bus = createMemoryBus();
    const far = handGateway([query("far.say.it", () => "x")], [createObserver({ telemetry })]);
    await serveCalls(withEntry(far.executor, "bus", telemetry), bus);
    const near = new OperationRegistry();
    near.use(createObserver({ telemetry }));
    near.registerAll(await createRemoteRegistry(bus, { propagate: telemetry.propagate }));
    near.register(query("near.ask", (_, context) => context.execute("far.say.it")));
    await near.execute("near.ask");
    const named = (name: string, kind: number) =>
      spans().find((span) => span.name === name && span.kind === kind) as SentSpan;
    await until(() => named("near.ask", INTERNAL) !== undefined && named("far.say.it", SERVER) !== undefined);
    const sent = named("far/say.it", CLIENT);
    const answered = named("far.say.it", SERVER);
    expect(answered).toMatchObject({
      traceId: named("near.ask", INTERNAL).traceId,
      parentSpanId: sent.spanId,
    });
    const conventional = { "rpc.system": "waybill", "rpc.service": "far", "rpc.method": "say.it" };
    for (const span of [sent, answered]) expect(attributesOf(span)).toMatchObject(conventional);
    await until(() =>
      ["rpc.client.duration", "rpc.server.duration"].every((name) => bodies.join().includes(name)),
    );
  });

  it("RE-17 RE-30 names tools and methods at both ends, by the conventions for MCP", async () => {
    if (telemetry === undefined) throw new Error("no telemetry");
    const passedOn = {
      ...query("shelf.find", () => {
        throw new CallError("UNAVAILABLE", "planted-message");
      }),
      source: "mcp",
    } as const;
    const gateway = handGateway([passedOn], [createObserver({ telemetry })]);
    await rejection(withEntry(gateway.executor, "mcp", telemetry).execute("shelf.find"));
    const named = (name: string) => spans().find((span) => span.name === name) as SentSpan;
    await until(() => named("tools/call find") !== undefined && named("shelf.find") !== undefined);
    const [sent, came] = [named("tools/call find"), named("shelf.find")];
    expect(sent).toMatchObject({ kind: CLIENT, parentSpanId: came.spanId, status: { code: 2 } });
    const conventional = { "mcp.method.name": "tools/call", "error.type": "UNAVAILABLE" };
    expect(attributesOf(sent)).toMatchObject({ ...conventional, "gen_ai.tool.name": "find" });
    expect(attributesOf(came)).toMatchObject({ ...conventional, "gen_ai.tool.name": "shelf.find" });
    const names = ["mcp.client.operation.duration", "mcp.server.operation.duration"];
    await until(() => names.every((name) => bodies.join().includes(name)));
    expect(bodies.join()).not.toContain("planted-message");
  });

  it("RE-30 uses what the process has registered itself", async () => {
    const second = await createTelemetry({
      env: {},
      load: () => {
        throw new Error("not to be loaded");
      },
    });
    expect(second).toBeDefined();
    await second?.close();
  });
});

describe("telemetry that is not there", () => {
  it.each<[boolean, NodeJS.ProcessEnv]>([
    [false, {}],
    [true, { OTEL_EXPORTER_OTLP_ENDPOINT: "http://localhost:4318" }],
    [true, { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://localhost:4318" }],
    [true, { OTEL_METRICS_EXPORTER: "console" }],
    [false, { OTEL_TRACES_EXPORTER: "none", OTEL_METRICS_EXPORTER: "none" }],
    [false, { OTEL_EXPORTER_OTLP_ENDPOINT: "" }],
    [false, { OTEL_EXPORTER_OTLP_ENDPOINT: "http://localhost:4318", OTEL_SDK_DISABLED: "true" }],
    [false, { OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: "http://localhost:4318" }],
  ])("RE-30 is wanted: %s, for %j", (isWanted, env) => {
    expect(wantsTelemetry(env)).toBe(isWanted);
  });

  it("RE-30 says once how to install what is missing", async () => {
    const key = Symbol.for("opentelemetry.js.api.1");
    const registered = Reflect.get(globalThis, key);
    Reflect.deleteProperty(globalThis, key);
    const warnings: string[] = [];
    try {
      const telemetry = await createTelemetry({
        env: { OTEL_TRACES_EXPORTER: "otlp" },
        load: () => Promise.reject(new Error("Cannot find package")),
        onWarning: (message) => warnings.push(message),
      });
      expect(telemetry).toBeUndefined();
    } finally {
      if (registered !== undefined) Reflect.set(globalThis, key, registered);
    }
    expect(warnings).toEqual([
      expect.stringContaining("npm install @opentelemetry/api @opentelemetry/sdk-node"),
    ]);
  });
});
