// @ts-check
import { spawn } from "node:child_process";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { createInterface } from "node:readline";

/** @typedef {(input: { a: number, b: number }) => Promise<any>} Call */

/**
 * The least client there can be over stdio, so that the server is what is measured.
 * @param {string} file
 * @param {readonly string[]} args
 */
export async function openStdio(file, args) {
  const path = new URL(file, import.meta.url).pathname;
  const child = spawn(process.execPath, [path, ...args], { stdio: ["pipe", "pipe", "inherit", "ipc"] });
  process.once("exit", () => child.kill());
  const { stdin, stdout } = child;
  if (stdin === null || stdout === null) throw new Error("There are no pipes.");
  /** @type {Map<number, (message: any) => void>} */
  const waiting = new Map();
  let last = 0;
  createInterface({ input: stdout }).on("line", (line) => {
    const message = JSON.parse(line);
    waiting.get(message.id)?.(message);
    waiting.delete(message.id);
  });
  /** @param {string} method @param {unknown} params */
  const ask = (method, params) =>
    new Promise((resolve) => {
      last += 1;
      waiting.set(last, resolve);
      stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: last, method, params })}\n`);
    });
  await ask("initialize", {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "bench", version: "1.0.0" },
  });
  stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
  const { result } = /** @type {any} */ (await ask("tools/list", {}));
  const tool = result.tools.find((/** @type {any} */ { name }) => /add$/.test(name)) ?? { name: "bench_add" };
  return {
    /** @type {Call} */
    call: async (input) => (await ask("tools/call", { name: tool.name, arguments: input })).result,
    /** CPU of the server so far, in microseconds. */
    cpu: async () => {
      child.send("cpu");
      const [{ cpu }] = await once(child, "message");
      return cpu;
    },
    close: () => child.kill(),
  };
}

const REVISION = "2026-07-28";

/**
 * The same over HTTP, in the revision 2026-07-28 (no session) or in that of 2025 (after `initialize`, with its session, if any).
 * @param {number} port
 * @param {"2025" | "2026"} revision
 */
export async function openHttp(port, revision) {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  const isModern = revision === "2026";
  let id = 0;
  /** @type {Record<string, string>} */
  const session = {};
  /** @param {string} method @param {any} params @param {string} [name] */
  const ask = (method, params, name) =>
    new Promise((resolve, reject) => {
      id += 1;
      const envelope = {
        "io.modelcontextprotocol/protocolVersion": REVISION,
        "io.modelcontextprotocol/clientInfo": { name: "bench", version: "1.0.0" },
        "io.modelcontextprotocol/clientCapabilities": {},
      };
      const isNote = method.startsWith("notifications/");
      const message = {
        jsonrpc: "2.0",
        ...(!isNote && { id }),
        method,
        params: isModern ? { ...params, _meta: envelope } : params,
      };
      const body = JSON.stringify(message);
      const headers = {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "content-length": String(Buffer.byteLength(body)),
        "mcp-protocol-version": isModern ? REVISION : "2025-11-25",
        ...(isModern && { "mcp-method": method, ...(name !== undefined && { "mcp-name": name }) }),
        ...session,
      };
      const sent = request(
        { host: "127.0.0.1", port, path: "/mcp", method: "POST", agent, headers },
        (response) => {
          let text = "";
          response.setEncoding("utf8");
          response.on("data", (part) => {
            text += part;
          });
          response.on("end", () => {
            const known = response.headers["mcp-session-id"];
            if (typeof known === "string") session["mcp-session-id"] = known;
            const data = /^data: (\{.*)$/m.exec(text)?.[1] ?? text;
            resolve(data === "" ? undefined : JSON.parse(data));
          });
        },
      );
      sent.on("error", reject);
      sent.end(body);
    });
  if (!isModern) {
    await ask("initialize", {
      protocolVersion: "2025-11-25",
      capabilities: {},
      clientInfo: { name: "bench", version: "1.0.0" },
    });
    await ask("notifications/initialized", {});
  }
  return {
    /** @type {Call} */
    call: async (input) =>
      /** @type {any} */ (await ask("tools/call", { name: "bench_add", arguments: input }, "bench_add"))
        .result,
    close: () => agent.destroy(),
  };
}
