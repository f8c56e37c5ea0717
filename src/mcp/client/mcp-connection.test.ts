import { afterEach, describe, expect, it } from "vitest";
import { type Listening, listen, readBody } from "../../../test/mcp-servers/http-servers.ts";
import { until } from "../../../test/mcp-servers/scripted-connection.ts";
import { checkRequestOptions, type McpRequestOptions, openMcpConnection } from "./mcp-connection.ts";

const opened: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each.close();
});

interface Forgetful extends Listening {
  sessions: number;
  deleted: number;
  streams: number;
  /** While set, the handshake does not end. */
  hold: Promise<void> | undefined;
}

/** A 2025 server with sessions that answers 404 to calls of "gone", nothing to "slow", and everything else well. */
async function serveForgetful(): Promise<Forgetful> {
  const seen = { sessions: 0, deleted: 0, streams: 0, hold: undefined as Promise<void> | undefined };
  const listening = await listen(async (request, response) => {
    if (request.method === "DELETE") {
      seen.deleted += 1;
      return response.end();
    }
    if (request.method === "GET") {
      seen.streams += 1;
      response.on("close", () => {
        seen.streams -= 1;
      });
      return response.writeHead(200, { "content-type": "text/event-stream" }).write(": hi\n\n");
    }
    const { id, method, params } = JSON.parse(await readBody(request));
    const send = (result: unknown, headers = {}) =>
      response
        .writeHead(200, { "content-type": "application/json", ...headers })
        .end(JSON.stringify({ jsonrpc: "2.0", id, result }));
    if (id === undefined) return response.writeHead(202).end();
    if (method === "initialize") {
      seen.sessions += 1;
      const session = `s${seen.sessions}`;
      await seen.hold;
      const serverInfo = { name: "forgetful", version: "1.0.0" };
      const result = { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo };
      return send(result, { "mcp-session-id": session });
    }
    if (params.name === "gone") return response.writeHead(404).end();
    return params.name === "slow" ? undefined : send({ content: [] });
  });
  const server = Object.assign(seen, listening);
  opened.push(server);
  return server;
}

async function connect({ url }: Listening) {
  const reconnect = { delayMs: 60_000, maxDelayMs: 60_000 };
  const connection = await openMcpConnection({ url, protocol: "2025", timeoutMs: 60_000, reconnect });
  opened.push(connection);
  const call = (name: string, signal?: AbortSignal) =>
    connection.request("tools/call", { name }, { ...(signal && { signal }) });
  return { connection, call };
}

describe("a server that forgets its sessions", () => {
  it("X-6 is not given a new one with every call, and calls it does answer still work", async () => {
    const server = await serveForgetful();
    const { connection, call } = await connect(server);
    for (let i = 0; i < 50; i++) {
      await expect(call("gone")).rejects.toMatchObject({
        code: "UNAVAILABLE",
        message: expect.stringContaining("forgets its sessions"),
      });
    }
    expect(server.sessions).toBe(2);
    expect(await call("fine")).toEqual({ content: [] });
    await until(() => server.streams <= 1 && server.deleted === server.sessions - 1);
    await connection.close();
    await until(() => server.streams === 0);
    expect(server.deleted).toBe(server.sessions);
  });

  it("X-6 has an old session closed only when nothing runs over it", async () => {
    const server = await serveForgetful();
    const { call } = await connect(server);
    const stop = new AbortController();
    const slow = call("slow", stop.signal).catch((error: { code: string }) => error.code);
    await call("gone").catch(() => {});
    expect([server.sessions, server.deleted]).toEqual([2, 0]);
    stop.abort();
    expect(await slow).toBe("ABORTED");
    await until(() => server.deleted === 1);
  });

  it("X-6 leaves nothing open where the connection is closed during a renewal", async () => {
    const server = await serveForgetful();
    const { connection, call } = await connect(server);
    await until(() => server.streams === 1);
    let go = () => {};
    server.hold = new Promise((resolve) => {
      go = resolve;
    });
    const gone = call("gone").catch((error: { code: string }) => error.code);
    await until(() => server.sessions === 2);
    await connection.close();
    expect(await gone).toBe("UNAVAILABLE");
    go();
    await until(() => server.streams === 0);
    expect(server.deleted).toBeGreaterThanOrEqual(1);
  });
});

describe("the options of a request", () => {
  it.each([
    [{ signal: {} }, "signal must be an AbortSignal; it is of type object."],
    [
      { signal: new AbortController() },
      "signal must be an AbortSignal (the signal of the controller); it is of type object.",
    ],
    [{ signal: null }, "signal must be an AbortSignal; it is null."],
    [{ timeoutMs: "3" }, "timeoutMs must be a number of milliseconds; it is of type string."],
    [{ timeoutMs: -1 }, "timeoutMs must be a number of milliseconds, 0 or more; it is -1."],
    [{ timeoutMs: Number.NaN }, "timeoutMs must be a number of milliseconds, 0 or more; it is NaN."],
    [{ onProgress: "x" }, "onProgress must be a function; it is of type string."],
    [
      new AbortController().signal,
      "The options of a request must be an object, such as { signal, timeoutMs }.",
    ],
    [7, "The options of a request must be an object, such as { signal, timeoutMs }."],
  ])("X-4 are refused where they cannot work (%#)", (options, message) => {
    expect(() => checkRequestOptions(options as unknown as McpRequestOptions)).toThrow(
      new TypeError(message),
    );
  });

  it("X-4 are taken where they can", () => {
    const { signal } = new AbortController();
    for (const options of [
      undefined,
      {},
      { signal },
      { timeoutMs: 0 },
      { timeoutMs: Number.POSITIVE_INFINITY },
    ]) {
      expect(() => checkRequestOptions(options)).not.toThrow();
    }
  });
});
