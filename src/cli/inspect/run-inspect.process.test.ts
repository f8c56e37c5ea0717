import { chmodSync, existsSync, mkdtempSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createMemoryIo, type MemoryIo } from "../../../test/memory-io.ts";
import { childScript } from "../../../test/stdio-child.ts";
import type { Hello, OperationsAnswer, SourcesAnswer } from "../../inspector/protocol.ts";
import { runWaybill } from "../run-waybill.ts";

const MODULE = `export const hello = { id: "shop.hello", namespace: "shop", name: "hello", version: "1.0.0", type: "query",
  description: "Says hello.", access: { scopes: { allOf: ["shop:read"] } }, handler: () => "hello" };\n`;
const CONFIGURED = "0123456789abcdef-configured";

function makeFolder(config?: object): string {
  const folder = mkdtempSync(join(tmpdir(), "waybill-inspect-"));
  writeFileSync(join(folder, "shop.mjs"), MODULE);
  if (config !== undefined) writeConfig(folder, config);
  return folder;
}

function writeConfig(folder: string, config: object): void {
  writeFileSync(join(folder, "new.tmp"), JSON.stringify(config));
  renameSync(join(folder, "new.tmp"), join(folder, "waybill.config.json"));
}

interface Inspected {
  readonly io: MemoryIo;
  readonly base: string;
  readonly token: string;
  /** Asks the inspector as whoever holds the token of the page. */
  ask<T>(path: string): Promise<T>;
  stop(): Promise<number>;
}

async function inspect(folder: string, args: string[] = [], env: NodeJS.ProcessEnv = {}): Promise<Inspected> {
  const controller = new AbortController();
  const io = createMemoryIo({
    cwd: folder,
    env: { WAYBILL_STATE_DIR: join(folder, "state"), PATH: process.env["PATH"], ...env },
    signal: controller.signal,
  });
  const running = runWaybill(io, ["inspect", "--port", "0", "--log-level", "silent", ...args]);
  const failed = running.then(() => true);
  await until(async () => io.out() !== "" || (await Promise.race([failed, false])) === true);
  const [, base = "", token = ""] = /^(http:\/\/\S+)\/inspect\/#token=(\S+)\n$/.exec(io.out()) ?? [];
  const headers = { authorization: `Bearer ${token}` };
  return {
    io,
    base,
    token,
    ask: async <T>(path: string) =>
      (await (await fetch(`${base}/inspect/api/${path}`, { headers })).json()) as T,
    stop: async () => {
      controller.abort();
      return running;
    },
  };
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 1_000; tries++) {
    if (await isSo().catch(() => false)) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("It took too long.");
}

const statusOf = async (url: string, token?: string): Promise<number> => {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch(url, { headers });
  await response.body?.cancel();
  return response.status;
};

describe("waybill inspect", () => {
  it("serves a config to whoever started it, with one line on stdout and the token nowhere else", async () => {
    const auth = { tokens: { ada: { token: CONFIGURED } } };
    const folder = makeFolder({ operations: "*.mjs", serve: { port: 1, auth } });
    const { io, base, token, ask, stop } = await inspect(folder);
    expect(token).toMatch(/^[\w-]{43}$/);
    await until(async () => io.err().includes("Try in another terminal"));
    for (const path of ["/", "/openapi.json", "/metrics", "/inspect/api/hello"]) {
      expect(await statusOf(`${base}${path}`)).toBe(401);
      expect(await statusOf(`${base}${path}`, token)).toBe(200);
      // Its holder has no scope for metrics; the owner has.
      expect(await statusOf(`${base}${path}`, CONFIGURED)).toBe(path === "/metrics" ? 403 : 200);
    }
    expect(await statusOf(`${base}/mcp`)).toBe(401);
    expect(await ask<Hello>("hello")).toMatchObject({ isAuthOn: true, isOperator: true });
    const called = await fetch(`${base}/call`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({ operation: "shop.hello", input: {} }),
    });
    expect(await called.json()).toBe("hello");
    expect(await stop()).toBe(0);
    expect(io.err()).toContain(`${base}/inspect`);
    expect(io.err()).toContain(
      `  # with WAYBILL_TOKEN set to what stands after "#token=" in the address of the inspector:\n  waybill list --url ${base}\n`,
    );
    expect(io.err()).not.toContain(token);
  });

  it("keeps its token, its address and its inspector while the config changes", async () => {
    const folder = makeFolder({ serve: { inspect: true } });
    const { base, token, ask, stop } = await inspect(folder);
    expect((await ask<OperationsAnswer>("operations")).operations).toEqual([]);
    writeConfig(folder, { operations: "*.mjs", serve: { port: 1, inspect: false } });
    await until(async () => (await ask<OperationsAnswer>("operations")).operations.length === 1);
    expect(await statusOf(`${base}/`, token)).toBe(200);
    expect(await statusOf(`${base}/`)).toBe(401);
    expect(await stop()).toBe(0);
  });

  it.each([
    ["an MCP server by a command line", [`${process.execPath} ${childScript("sdk-server.js")}`], "mcp"],
    ["the same by a flag", ["--mcp", `${process.execPath} ${childScript("sdk-server.js")}`], "mcp"],
    ["a document", ["./api.json"], "api"],
  ])("shows %s", async (_, args, name) => {
    const folder = makeFolder();
    const document = { openapi: "3.1.0", info: { title: "A", version: "1" }, paths: {} };
    writeFileSync(join(folder, "api.json"), JSON.stringify(document));
    const { ask, stop } = await inspect(folder, args);
    await until(async () => {
      const { sources } = await ask<SourcesAnswer>("sources");
      return sources[0]?.name === name && sources[0].state.status === "up";
    });
    expect(await stop()).toBe(0);
  });

  it("shows one source of the config alone, and also what cannot be reached", async () => {
    const gone = { url: "http://127.0.0.1:1/mcp" };
    const folder = makeFolder({ operations: "*.mjs", mcpServers: { gone, other: gone } });
    const { ask, stop } = await inspect(folder, ["gone"]);
    await until(async () => {
      const { sources } = await ask<SourcesAnswer>("sources");
      const [source, ...more] = sources;
      return more.length === 0 && source?.name === "gone" && source.state.status === "down";
    });
    expect(await stop()).toBe(0);
  });

  it("shows a document at an address that cannot be reached as down", async () => {
    const { ask, stop } = await inspect(makeFolder(), ["--openapi", "http://127.0.0.1:1/openapi.json"]);
    await until(async () => (await ask<SourcesAnswer>("sources")).sources[0]?.state.status === "down");
    expect(await stop()).toBe(0);
  });

  it("takes the next port that is free, and says nothing of it on stdout", async () => {
    const taken = createServer().listen(4_101, "127.0.0.1");
    await new Promise((resolve) => taken.once("listening", resolve).once("error", resolve));
    const controller = new AbortController();
    const folder = makeFolder({});
    const io = createMemoryIo({ cwd: folder, env: {}, signal: controller.signal });
    const running = runWaybill(io, ["inspect", "--log-level", "silent"]);
    await until(async () => io.out() !== "");
    const [, port] = /^http:\/\/127\.0\.0\.1:(\d+)\/inspect\/#token=\S+\n$/.exec(io.out()) ?? [];
    expect(Number(port)).toBeGreaterThan(4_101);
    controller.abort();
    expect(await running).toBe(0);
    taken.close();
  });

  it("opens the browser with the address alone, and goes on where there is none", async () => {
    const folder = makeFolder({});
    const opener = join(folder, "xdg-open");
    const args = join(folder, "args.txt");
    writeFileSync(
      opener,
      `#!/bin/sh\nprintf '%s\\n' "$#" "$1" > '${args}.tmp'\nmv '${args}.tmp' '${args}'\n`,
    );
    chmodSync(opener, 0o755);
    const first = await inspect(folder, ["--open"], { PATH: `${folder}:/bin:/usr/bin` });
    await until(async () => existsSync(args));
    expect(readFileSync(args, "utf8")).toBe(`1\n${first.io.out()}`);
    expect(await first.stop()).toBe(0);
    const second = await inspect(folder, ["--open"], { PATH: join(folder, "nothing") });
    await until(async () => second.io.err().includes("the browser did not open"));
    expect(second.io.err()).not.toContain(second.token);
    expect(await second.stop()).toBe(0);
  });

  it("gives a gateway that was merely found no token that nobody meant for it", async () => {
    const seen: unknown[] = [];
    const document = { openapi: "3.1.0", info: { title: "A", version: "1" }, paths: {} };
    const other = createServer((request, response) => {
      seen.push(request.headers.authorization);
      const isThere = request.url === "/openapi.json" || request.url === "/health";
      response.writeHead(isThere ? 200 : 404, { "content-type": "application/json" });
      response.end(JSON.stringify(document));
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => other.once("listening", resolve));
    const { port } = other.address() as AddressInfo;
    const env = { WAYBILL_TOKEN: "0123456789abcdef-secret" };
    const { ask, stop } = await inspect(makeFolder(), [`http://127.0.0.1:${port}/`], env);
    await until(async () => (await ask<SourcesAnswer>("sources")).sources[0]?.state.status === "up");
    expect(await stop()).toBe(0);
    expect(seen.every((authorization) => authorization === undefined)).toBe(true);
    other.close();
  });

  it.each([
    [["nowhere-to-be-found"], "There is no source, document or command"],
    [["a.json", "--mcp", "x"], "inspect takes one target"],
    [["--config", "gone.json"], "does not exist"],
    [["./gone.json"], 'The document "./gone.json" does not exist'],
    [["--openapi", "gone.yaml"], 'The document "gone.yaml" does not exist'],
    [["--allow-private"], "--allow-private goes with --openapi"],
    [["waybill.config.json", "--base-url", "http://127.0.0.1:1"], "--base-url goes with --openapi"],
    [["--no-token"], "--no-token"],
  ])("refuses %j with exit code 2", async (args, message) => {
    const io = createMemoryIo({ cwd: makeFolder() });
    expect(await runWaybill(io, ["inspect", ...args])).toBe(2);
    expect(io.err()).toContain(message);
    expect(io.out()).toBe("");
  });
});
