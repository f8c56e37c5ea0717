import { InMemoryTransport, type JSONRPCMessage } from "@modelcontextprotocol/client";
import { afterEach, describe, expect, it, vi } from "vitest";
import { until } from "../../../test/mcp-servers/scripted-connection.ts";
import { type McpConnection, type McpConnectionEvent, openMcpConnection } from "./mcp-connection.ts";

const DISCOVERED = {
  resultType: "complete",
  supportedVersions: ["2026-07-28"],
  capabilities: { tools: { listChanged: true }, resources: { subscribe: true } },
  ttlMs: 0,
  cacheScope: "private",
};

type Asked = { readonly id: string | number; readonly notifications: Readonly<Record<string, unknown>> };

const open: McpConnection[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const connection of open.splice(0)) await connection.close();
});

/** Connects, in no more than that time, to a server that acknowledges a subscription when it is told to, and never before. */
async function connect(connectTimeoutMs?: number, mostMs = 100) {
  const asked: Asked[] = [];
  const cancelled: unknown[] = [];
  const [here, there] = InMemoryTransport.createLinkedPair();
  const send = (message: object) => void there.send({ jsonrpc: "2.0", ...message } as JSONRPCMessage);
  there.onmessage = (message) => {
    const { id, method, params } = message as { id: string; method: string; params: Record<string, unknown> };
    if (method === "server/discover") send({ id, result: DISCOVERED });
    if (method === "subscriptions/listen")
      asked.push({ id, notifications: params["notifications"] as never });
    if (method === "notifications/cancelled") cancelled.push(params["requestId"]);
  };
  const acknowledge = ({ id, notifications }: Asked) =>
    send({
      method: "notifications/subscriptions/acknowledged",
      params: { _meta: { "io.modelcontextprotocol/subscriptionId": id }, notifications },
    });
  vi.useFakeTimers();
  let connection: McpConnection | undefined;
  const connecting = openMcpConnection({
    transport: () => here,
    protocol: "2026",
    reconnect: false,
    ...(connectTimeoutMs !== undefined && { connectTimeoutMs }),
  });
  connecting.then(
    (made) => {
      connection = made;
    },
    () => {},
  );
  await vi.advanceTimersByTimeAsync(mostMs);
  vi.useRealTimers();
  if (connection === undefined) throw new Error(`There was no connection after ${mostMs} ms.`);
  open.push(connection);
  const events: McpConnectionEvent[] = [];
  connection.onEvent((event) => events.push(event));
  const changes = () => events.flatMap((event) => (event.type === "notification" ? [event.method] : []));
  const last = () => asked.at(-1) as Asked;
  return { connection, asked, cancelled, acknowledge, changes, last };
}

describe("listening for changes", () => {
  it.each([
    [undefined, 1_000],
    [200, 200],
  ])("X-4 does not hold up a connection made within %s ms", async (connectTimeoutMs, mostMs) => {
    const { connection, asked } = await connect(connectTimeoutMs, mostMs);
    expect(connection.state).toEqual({ status: "ready" });
    expect(asked).toHaveLength(1);
  });

  it("Mcp: tells that lists may have changed once a late subscription is acknowledged, and once only", async () => {
    const { acknowledge, changes, last } = await connect(100);
    expect(changes()).toEqual([]);
    acknowledge(last());
    await until(() => changes().length > 0);
    acknowledge(last());
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(changes()).toEqual(["notifications/tools/list_changed"]);
  });

  it("Mcp: drops a late subscription for one that somebody waits for, and tells of the gap then", async () => {
    const { connection, asked, cancelled, acknowledge, changes, last } = await connect(100);
    const subscribed = connection.request("resources/subscribe", { uri: "x://1" });
    await until(() => asked.length === 2);
    expect(cancelled).toEqual([asked[0]?.id]);
    expect(last().notifications).toEqual({ toolsListChanged: true, resourceSubscriptions: ["x://1"] });
    acknowledge(last());
    expect(await subscribed).toEqual({});
    expect(changes()).toEqual(["notifications/tools/list_changed"]);
  });

  it("Mcp: stops waiting for a subscription when the connection is closed", async () => {
    const { connection, asked, cancelled } = await connect(100);
    await connection.close();
    await until(() => cancelled.length === 1);
    expect(cancelled).toEqual([asked[0]?.id]);
  });
});
