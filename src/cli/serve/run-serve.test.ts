import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { createMemoryIo } from "../../../test/memory-io.ts";
import {
  FOR_EVER_MS,
  makeFolder,
  operation,
  serve,
  until,
  writeConfig,
} from "../../../test/served-folder.ts";
import { setGlobal } from "../../../test/set-global.ts";
import { runWaybill } from "../run-waybill.ts";

const SLOW = `export const slow = { id: "shop.slow", namespace: "shop", name: "slow", version: "1.0.0", type: "query", description: "Sleeps.",
  handler: (_, { signal }) => new Promise((resolve, reject) => {
    waybillTestSleepers.push(() => resolve("slept"));
    signal.addEventListener("abort", () => reject(signal.reason));
  }) };\n`;

const call = async (url: string, id: string): Promise<unknown> => {
  const body = JSON.stringify({ operation: id, input: {} });
  const headers = { "content-type": "application/json" };
  return (await fetch(`${url}/call`, { method: "POST", headers, body })).json();
};

describe("waybill serve", () => {
  it("RE-30 says what it mounted and where, with commands that work, and ends with 0", async () => {
    const folder = makeFolder();
    const { io, url, stop } = await serve(folder);
    expect(io.out()).toBe("");
    expect(io.err()).toMatch(/local +up +local +1 /);
    for (const path of ["/mcp", "/api", "/openapi.json", "/docs", "/metrics"])
      expect(io.err()).toContain(`${url}${path}`);
    const [list, once, curl] = io.err().split("Try in another terminal\n")[1]?.trim().split("\n") ?? [];
    for (const [line = "", found] of [
      [list, "shop.hello"],
      [once, '"hello"\n'],
    ] as const) {
      const again = createMemoryIo({ cwd: folder, env: { WAYBILL_STATE_DIR: join(folder, "state") } });
      expect(await runWaybill(again, line.slice(line.search(/\b(list|call) /)).split(" "))).toBe(0);
      await until(async () => again.out().includes(found));
    }
    expect(curl).toContain(`curl -s ${url}/call`);
    expect(await call(url, "shop.hello")).toBe("hello");
    expect(await stop()).toBe(0);
    await expect(fetch(`${url}/health`)).rejects.toThrow();
  });

  it("RE-30 gives whoever starts it over stdio all rights that are asked for, and asks them for no token", async () => {
    const auth = { tokens: { ann: { token: "the-token-of-ann-1" } } };
    const folder = makeFolder({ serve: { port: 0, auth }, policies: { "shop.*": { scopes: ["staff"] } } });
    const params = {
      protocolVersion: "2025-06-18",
      capabilities: {},
      clientInfo: { name: "t", version: "1" },
    };
    const said = [
      { id: 1, method: "initialize", params },
      { method: "notifications/initialized" },
      { id: 2, method: "tools/call", params: { name: "shop_hello", arguments: {} } },
    ];
    const stdin = said.map((message) => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`).join("");
    const io = createMemoryIo({ cwd: folder, env: { WAYBILL_STATE_DIR: join(folder, "state") }, stdin });
    expect(await runWaybill(io, ["serve", "--stdio", "--log-level", "silent"])).toBe(0);
    const answer = io
      .out()
      .split("\n")
      .find((line) => line.includes('"id":2'));
    expect(JSON.parse(answer ?? "{}").result).toMatchObject({ content: [{ type: "text", text: "hello" }] });
  });

  it("RE-30 follows changes of modules and config, and keeps the old one while a new one is broken", async () => {
    const folder = makeFolder();
    const { url, stop } = await serve(folder);
    writeFileSync(join(folder, "more.mjs"), operation("more"));
    await until(async () => (await call(url, "shop.more")) === "more");
    writeConfig(folder, '{ "operations": 7 }');
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(await call(url, "shop.more")).toBe("more");
    writeConfig(folder, { operations: "shop.mjs", serve: { port: 0 } });
    await until(async () => (await call(url, "shop.more")) !== "more");
    expect(await call(url, "shop.hello")).toBe("hello");
    expect(await stop()).toBe(0);
  });

  it("RE-30 tells of a call that was answered as the first one of its idempotency key was", async () => {
    const folder = makeFolder();
    writeFileSync(join(folder, "book.mjs"), operation("book").replace('"query"', '"mutation"'));
    const { url, stop } = await serve(folder);
    const headers = { "content-type": "application/json", "idempotency-key": "one" };
    const body = JSON.stringify({ operation: "shop.book", input: {} });
    for (let i = 0; i < 2; i++) await (await fetch(`${url}/call`, { method: "POST", headers, body })).text();
    expect(await (await fetch(`${url}/metrics`)).text()).toMatch(
      /calls_total\{operation="shop\.book".*\} 2\n/,
    );
    expect(await stop()).toBe(0);
  });

  it("RE-30 keeps a module that writes files of its own as it is", async () => {
    const folder = makeFolder();
    const counting = `import { writeFileSync } from "node:fs";
let count = 0;
export const count_up = { id: "shop.count", namespace: "shop", name: "count", version: "1.0.0", type: "mutation", description: "Counts.",
  handler: () => { count += 1; writeFileSync(new URL("./state.json", import.meta.url), String(count)); return count; } };\n`;
    writeFileSync(join(folder, "shop.mjs"), counting);
    const { url, stop } = await serve(folder);
    for (const count of [1, 2, 3]) {
      expect(await call(url, "shop.count")).toBe(count);
      await new Promise((resolve) => setTimeout(resolve, 400));
    }
    expect(await stop()).toBe(0);
  });

  it("RE-30 follows what TypeScript modules import", async () => {
    const folder = makeFolder({ operations: "*.ts" });
    writeFileSync(join(folder, "words.ts"), 'export const word: string = "old";\n');
    writeFileSync(
      join(folder, "shop.ts"),
      `import { word } from "./words.js";\n${operation("say").replace('=> "say"', "=> word")}`,
    );
    writeConfig(folder, { operations: "shop.ts", serve: { port: 0 } });
    const { url, stop } = await serve(folder);
    expect(await call(url, "shop.say")).toBe("old");
    writeFileSync(join(folder, "words.ts"), 'export const word: string = "new";\n');
    await until(async () => (await call(url, "shop.say")) === "new");
    expect(await stop()).toBe(0);
  });

  it("serves the inspector as the config says, follows that, and ends open feeds", async () => {
    const folder = makeFolder({ serve: { port: 0, inspect: true } });
    const { io, url, stop } = await serve(folder);
    expect(io.err()).toMatch(/\n {2}inspector http:\S+\/inspect\n {2}MCP /);
    expect(await (await fetch(url)).json()).toMatchObject({ inspect: "/inspect" });
    const feed = await fetch(`${url}/inspect/api/live`);
    const ended = feed.text().then(
      () => true,
      () => true,
    );
    writeConfig(folder, { operations: "*.mjs", serve: { port: 0 } });
    await until(async () => (await fetch(`${url}/inspect/api/hello`)).status === 404);
    expect(await ended).toBe(true);
    const serving = { port: 0, inspect: true, drainMs: FOR_EVER_MS };
    writeConfig(folder, { operations: "*.mjs", serve: serving });
    await until(async () => (await fetch(`${url}/inspect/api/hello`)).status === 200);
    const another = await fetch(`${url}/inspect/api/live`);
    expect(await stop()).toBe(0);
    await another.text().catch(() => "");
  });

  it("lets calls of the inspector's page end when it is turned off, and when the gateway stops", async () => {
    const sleepers: (() => void)[] = [];
    setGlobal("waybillTestSleepers", sleepers);
    const serving = { port: 0, drainMs: FOR_EVER_MS };
    const folder = makeFolder({ serve: { ...serving, inspect: true } });
    writeFileSync(join(folder, "slow.mjs"), SLOW);
    const { url, stop } = await serve(folder);
    const run = async (): Promise<string> => {
      const body = JSON.stringify({ operation: "shop.slow", input: {} });
      const headers = { "content-type": "application/json" };
      return (await fetch(`${url}/inspect/api/run`, { method: "POST", headers, body })).text();
    };
    const first = run();
    await until(async () => sleepers.length === 1);
    writeConfig(folder, { operations: "*.mjs", serve: serving });
    await until(async () => (await fetch(`${url}/inspect/api/hello`)).status === 404);
    sleepers[0]?.();
    expect(await first).toContain('"data":"slept"');
    writeConfig(folder, { operations: "*.mjs", serve: { ...serving, inspect: true } });
    await until(async () => (await fetch(`${url}/inspect/api/hello`)).status === 200);
    const second = run();
    await until(async () => sleepers.length === 2);
    const stopped = stop();
    await sleep(200);
    sleepers[1]?.();
    expect(await stopped).toBe(0);
    expect(await second).toContain('"data":"slept"');
  });

  it.each([
    [["--inspect"], false, 200],
    [["--no-inspect"], true, 404],
    [[], false, 404],
  ])("serves the inspector with %j where the config says %j: %i", async (args, inspect, status) => {
    const { io, url, stop } = await serve(makeFolder({ serve: { port: 0, inspect } }), [...args]);
    expect((await fetch(`${url}/inspect/api/hello`)).status).toBe(status);
    expect(io.err().includes("/inspect\n")).toBe(status === 200);
    expect(await stop()).toBe(0);
  });

  it("says that a port is in use, with exit code 2", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => other.once("listening", resolve));
    const { port } = other.address() as AddressInfo;
    const io = createMemoryIo({ cwd: makeFolder({ serve: { port } }) });
    expect(await runWaybill(io, ["serve", "--log-level", "silent"])).toBe(2);
    expect(io.err()).toContain(`waybill: Port ${port} is in use; give another one with --port`);
    other.close();
  });

  it("refuses a config with a source that is the gateway itself, at its address", async () => {
    const config = { serve: { port: 4_997 }, mcpServers: { me: { url: "http://localhost:4997/mcp" } } };
    const io = createMemoryIo({ cwd: makeFolder(config) });
    expect(await runWaybill(io, ["serve", "--log-level", "silent"])).toBe(2);
    expect(io.err()).toContain("mcpServers.me.url is the address at which this gateway listens");
  });

  it("refuses to let others in without a token, and points at the fix", async () => {
    const io = createMemoryIo({ cwd: makeFolder() });
    expect(await runWaybill(io, ["serve", "--host", "0.0.0.0", "--log-level", "silent"])).toBe(2);
    expect(io.err()).toContain("serve.auth.tokens");
  });

  it("shows no command that needs a token it cannot show", async () => {
    const folder = makeFolder({
      serve: { port: 0, auth: { tokens: { ada: { token: "0123456789abcdef-secret" } } } },
    });
    const { io, stop } = await serve(folder);
    expect(io.err()).not.toContain("0123456789abcdef");
    expect(io.err()).toMatch(/curl -s http:\S+\/health\n/);
    expect(io.err()).toMatch(
      /\n {2}# with WAYBILL_TOKEN set to a token of serve\.auth\.tokens:\n {2}waybill list --url http:\S+\n/,
    );
    expect(await stop()).toBe(0);
  });
});
