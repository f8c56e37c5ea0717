import type { Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { ERROR_CODES } from "../../src/index.ts";
import {
  CLIENT_KINDS,
  callTool,
  childrenOf,
  connectForTest,
  eventually,
  type GatewayProcess,
  isRunning,
  type ServiceProcess,
  STDIO_SERVICE,
  service,
  startGateway,
  startService,
  type ToolAnswer,
} from "../gateway-process.ts";

async function start(...given: Parameters<typeof startGateway>): Promise<GatewayProcess> {
  const gateway = await startGateway(...given);
  onTestFinished(async () => void (await gateway.stop("SIGKILL")));
  return gateway;
}

type Settled = { readonly ok: boolean; readonly code?: string; readonly text: string };

const CODES = new Set(Object.keys(ERROR_CODES));

/** What a call over HTTP came to: a result, or a typed error. */
async function overHttp(gateway: GatewayProcess, operation: string, input: object): Promise<Settled> {
  const { status, body } = await gateway.post(operation, input);
  const text = JSON.stringify(body);
  return status === 200 ? { ok: true, text } : { ok: false, code: (body as { code: string }).code, text };
}

/** What a call over MCP came to, in the same words. */
async function overMcp(client: Client, operation: string, input: object): Promise<Settled> {
  const answer = (await callTool(client, operation, input)) as ToolAnswer & {
    readonly _meta?: Record<string, { readonly error?: { readonly code: string }; readonly code?: string }>;
  };
  const text = JSON.stringify(answer);
  if (answer.isError !== true) return { ok: true, text };
  const code = /"code":"([A-Z_]+)"/.exec(text)?.[1];
  return { ok: false, text, ...(code !== undefined && { code }) };
}

describe("sources that are killed under load", () => {
  let depot: ServiceProcess;
  let remote: ServiceProcess;
  beforeAll(async () => {
    [depot, remote] = await Promise.all([startService("http-service.js"), startService("mcp-service.js")]);
  });
  afterAll(async () => {
    await Promise.all([depot?.kill(), remote?.kill()]);
  });

  it("RE-30 settle every call exactly once, with a result or a typed error, and come back", async () => {
    const gateway = await start({
      mcpServers: { near: STDIO_SERVICE, far: { url: remote.url } },
      openapi: { depot: { document: `${depot.url}/openapi.json` } },
      operations: service("operations.js"),
    });
    const sources = ["near", "far", "depot", "local"];
    const clients = await Promise.all(CLIENT_KINDS.map((kind) => connectForTest(kind, gateway)));
    const settled: Settled[] = [];
    const begun: Promise<unknown>[] = [];
    const inFlight = (isSo: (found: number) => boolean) =>
      eventually(
        "calls in flight",
        () => gateway.metric("waybill_calls_in_flight"),
        (found) => isSo(found ?? 0),
      );
    const callAll = (called: readonly string[], round: number, ms: number): void => {
      for (const source of called) {
        for (let i = 0; i < 12; i++) {
          const client = clients[(round + i) % clients.length] as Client;
          const input = { ms: ms + i };
          const calls = [
            overMcp(client, `${source}.wait`, input),
            overHttp(gateway, `${source}.wait`, input),
          ];
          begun.push(...calls.map((call) => call.then((one) => settled.push(one))));
        }
      }
    };
    for (let round = 0; round < 3; round++) {
      // What will be killed takes so long that all of it is under way together, on a busy machine too.
      const hurt = sources.filter((source) => source !== "local");
      const all = hurt.length * 12 * 2;
      callAll(hurt, round, 8_000);
      await inFlight((found) => found === all);
      callAll(["local"], round, 2_000);
      await inFlight((found) => found > all);
      const children = childrenOf(gateway.pid);
      expect(children.length).toBeGreaterThan(0);
      for (const child of children) process.kill(child, "SIGKILL");
      await Promise.all([depot.kill(), remote.kill()]);
      // New calls while everything is down.
      callAll(sources, round, 50);
      await Promise.all([depot.restart(), remote.restart()]);
      for (const source of sources) {
        await eventually(
          `${source} again`,
          () => overHttp(gateway, `${source}.wait`, { ms: 1 }),
          ({ ok }) => ok,
        );
      }
      await inFlight((found) => found === 0);
    }
    const ended = await Promise.allSettled(begun);
    expect(ended.filter(({ status }) => status === "rejected")).toEqual([]);
    expect(settled).toHaveLength(3 * 2 * sources.length * 12 * 2);
    const failed = settled.filter(({ ok }) => !ok);
    expect(failed.length).toBeGreaterThan(0);
    expect(failed.filter(({ code }) => code === undefined || !CODES.has(code))).toEqual([]);
    expect(failed.filter(({ text }) => text.includes("INTERNAL") || /\n\s+at /.test(text))).toEqual([]);
    // What stands in this process was not hurt.
    const text = await (await fetch(`${gateway.url}/metrics`)).text();
    expect(text).not.toMatch(/waybill_calls_total\{operation="local\.wait",[^}]*outcome="(?!ok)/);
    await eventually(
      "nothing in flight",
      () => gateway.metric("waybill_calls_in_flight"),
      (found) => found === 0,
    );
    const counted = [...text.matchAll(/^waybill_calls_total\{.*\} (\d+)$/gm)];
    const audited = gateway.stderr().match(/"event":"call"/g)?.length;
    expect(counted.reduce((sum, [, value]) => sum + Number(value), 0)).toBe(audited);
    await Promise.all(clients.map((client) => client.close()));
    expect((await gateway.stop()).code).toBe(0);
    expect(gateway.stderr()).not.toMatch(/\\n\s+at |Unhandled|uncaught/i);
  });
});

describe("a gateway that is told to stop", () => {
  const config = {
    mcpServers: { near: STDIO_SERVICE },
    operations: service("operations.js"),
  };
  const running = (gateway: GatewayProcess, count: number) =>
    eventually(
      "calls in flight",
      () => gateway.metric("waybill_calls_in_flight"),
      (found) => found === count,
    );

  it("RE-30 lets calls in flight end, takes no more, leaves no process and exits with 0", async () => {
    const gateway = await start({ ...config, serve: { drainMs: 100_000 } });
    const client = await connectForTest("SDK 2, 2025", gateway);
    const answers = [
      overHttp(gateway, "near.wait", { ms: 6_000 }),
      overHttp(gateway, "local.wait", { ms: 6_000 }),
      overMcp(client, "near.wait", { ms: 6_000 }),
      overMcp(client, "local.wait", { ms: 6_000 }),
    ];
    await running(gateway, 4);
    const children = childrenOf(gateway.pid);
    expect(children).toHaveLength(1);
    gateway.child.kill("SIGTERM");
    await gateway.says(/"msg":"stopping"/);
    // What reaches it in the moment in which it stops is still answered.
    await eventually(
      "a late call is refused",
      () => overHttp(gateway, "local.add", { a: 1, b: 1 }).catch(() => undefined),
      (late) => late === undefined || late.code === "UNAVAILABLE",
    );
    expect((await Promise.all(answers)).map(({ ok }) => ok)).toEqual([true, true, true, true]);
    expect(await gateway.ended).toEqual({ code: 0, signal: null });
    expect(children.filter(isRunning)).toEqual([]);
    expect(gateway.stdout()).toBe("");
  });

  it("RE-30 ends calls that take longer than drainMs, with an error, and exits with 0", async () => {
    const gateway = await start({ ...config, serve: { drainMs: 300 } });
    const answers = ["near.wait", "local.wait"].map((id) => overHttp(gateway, id, { ms: 50_000 }));
    await running(gateway, 2);
    const children = childrenOf(gateway.pid);
    expect(await gateway.stop()).toEqual({ code: 0, signal: null });
    const ended = await Promise.all(answers);
    expect(ended.map(({ ok, code }) => [ok, CODES.has(code ?? "")])).toEqual([
      [false, true],
      [false, true],
    ]);
    expect(children.filter(isRunning)).toEqual([]);
  });

  it.each(CLIENT_KINDS)("RE-30 tells a client of %s that its call was ended", async (kind) => {
    const gateway = await start({ ...config, serve: { drainMs: 300 } });
    const client = await connectForTest(kind, gateway);
    const answer = overMcp(client, "local.wait", { ms: 50_000 }).then(
      ({ code }) => code,
      (thrown: unknown) => `rejected: ${String(thrown)}`,
    );
    await running(gateway, 1);
    expect(await gateway.stop()).toEqual({ code: 0, signal: null });
    // It is not left to wait for an answer that nobody will give: what the client says when it gives up is no such code.
    expect(CODES).toContain(await answer);
  });

  it("RE-30 lets calls over stdio end too", async () => {
    const gateway = await start({ ...config, serve: { drainMs: 100_000 } }, { flags: ["--stdio"] });
    const send = (message: object): void => {
      gateway.child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
    };
    const clientInfo = { name: "host", version: "1" };
    const begin = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo };
    send({ id: 1, method: "initialize", params: begin });
    await eventually("an answer", () => gateway.stdout().includes('"id":1'));
    send({ method: "notifications/initialized" });
    send({ id: 2, method: "tools/call", params: { name: "local_wait", arguments: { ms: 6_000 } } });
    await running(gateway, 1);
    expect(await gateway.stop()).toEqual({ code: 0, signal: null });
    expect(gateway.stdout()).toContain('"id":2');
  });

  it("RE-30 exits at once when it is told again, and leaves no process", async () => {
    // Whoever waits for the call, or for its time to end, does so longer than this test may take.
    const gateway = await start({ ...config, serve: { drainMs: 600_000 } });
    const answer = overHttp(gateway, "near.wait", { ms: 600_000 }).catch(() => "cut");
    await running(gateway, 1);
    const children = childrenOf(gateway.pid);
    gateway.child.kill("SIGTERM");
    await gateway.says(/"msg":"stopping"/);
    gateway.child.kill("SIGTERM");
    expect(await gateway.ended).toEqual({ code: 143, signal: null });
    expect(await answer).toBe("cut");
    await eventually("no process left", () => children.filter(isRunning).length === 0);
  });

  it("RE-30 leaves no process when it is killed", async () => {
    const gateway = await start(config);
    const children = childrenOf(gateway.pid);
    expect(children).toHaveLength(1);
    expect((await gateway.stop("SIGKILL")).signal).toBe("SIGKILL");
    await eventually("no process left", () => children.filter(isRunning).length === 0);
  });
});
