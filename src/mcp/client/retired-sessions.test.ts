import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { type Listening, listen, readBody } from "../../../test/mcp-servers/http-servers.ts";
import { isAlive, until } from "../../../test/mcp-servers/scripted-connection.ts";
import { openMcpConnection } from "./connect.ts";

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

async function connect({ url }: Listening, timeoutMs = 60_000) {
  const connection = await openMcpConnection({ url, protocol: "2025", timeoutMs });
  opened.push(connection);
  const call = (name: string) => connection.request("tools/call", { name });
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
    expect(server.sessions).toBeLessThanOrEqual(4);
    expect(await call("fine")).toEqual({ content: [] });
    await until(() => server.streams <= 1 && server.deleted === server.sessions - 1);
    await connection.close();
    await until(() => server.streams === 0);
    expect(server.deleted).toBe(server.sessions);
  });

  it("X-6 has an old session closed only when nothing runs over it", async () => {
    const server = await serveForgetful();
    const { call } = await connect(server, 400);
    const slow = call("slow").catch((error: { code: string }) => error.code);
    await call("gone").catch(() => {});
    expect([server.sessions, server.deleted]).toEqual([2, 0]);
    expect(await slow).toBe("TIMEOUT");
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

const CRASHES = `
import { createInterface } from "node:readline";
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
const child = spawn(process.execPath, ["-e", "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000); console.log(1)"], { stdio: ["ignore", "pipe", "ignore"] });
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize") {
    const result = { protocolVersion: params.protocolVersion, capabilities: {}, serverInfo: { name: "c", version: "1" } };
    child.stdout.once("data", () => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\\n"));
  }
  if (method === "tools/call") {
    writeFileSync(process.env.CHILD, String(child.pid));
    process.exit(1);
  }
});`;

describe("a process that crashed", () => {
  it("X-6 is gone with its children when close() resolves, called right after", async () => {
    const folder = await mkdtemp(join(tmpdir(), "waybill-crash-"));
    const file = join(folder, "child");
    const connection = await openMcpConnection({
      command: process.execPath,
      args: ["--input-type=module", "-e", CRASHES],
      env: { CHILD: file },
      protocol: "2025",
    });
    await expect(connection.request("tools/call", { name: "t" })).rejects.toMatchObject({
      code: "UNAVAILABLE",
    });
    await connection.close();
    expect(await isRunning(Number(await readFile(file, "utf8")))).toBe(false);
    await rm(folder, { recursive: true });
  });
});

/** One that is dead but not yet collected by whoever adopted it does not run. */
async function isRunning(pid: number): Promise<boolean> {
  const text = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => undefined);
  if (text === undefined) return process.platform !== "linux" && isAlive(pid);
  return text.slice(text.lastIndexOf(")")).split(" ")[1] !== "Z";
}
