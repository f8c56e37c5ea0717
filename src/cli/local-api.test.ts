import { mkdtempSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createMemoryIo } from "../../test/memory-io.ts";
import { runWaybill } from "./run-waybill.ts";

const folder = mkdtempSync(join(tmpdir(), "waybill-local-api-"));
const env = { WAYBILL_STATE_DIR: join(folder, "state") };
const target = ["--openapi", "local.json"];
const server = createServer((_, response) => {
  response.writeHead(200, { "content-type": "application/json" }).end('{"ok":true}');
});
let base = "";

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const ok = { description: "Fine.", content: { "application/json": { schema: { type: "object" } } } };
  const paths = { "/up": { get: { operationId: "up", summary: "Is up.", responses: { 200: ok } } } };
  const document = { openapi: "3.1.0", info: { title: "A", version: "1" }, servers: [{ url: base }], paths };
  writeFileSync(join(folder, "local.json"), JSON.stringify(document));
});

afterAll(() => {
  server.close();
});

async function run(...args: string[]) {
  const io = createMemoryIo({ cwd: folder, env });
  const code = await runWaybill(io, args);
  return { code, out: io.out(), err: io.err() };
}

/** Calls the operation through an inspector of the document. */
async function callInspected(...flags: string[]): Promise<string> {
  const controller = new AbortController();
  const io = createMemoryIo({ cwd: folder, env, signal: controller.signal });
  const running = runWaybill(io, ["inspect", "local.json", "--port", "0", "--log-level", "silent", ...flags]);
  try {
    await expect.poll(() => io.out(), { timeout: 30_000 }).toContain("#token=");
    const [, url, token] = /^(http:\/\/\S+)\/inspect\/#token=(\S+)/.exec(io.out()) ?? [];
    const headers = { authorization: `Bearer ${token}` };
    const call = async () => (await fetch(`${url}/api/api/up`, { headers })).text();
    // Until the document has been read there is no such path, or its source is not up yet.
    await expect.poll(call, { timeout: 60_000 }).toMatch(/ACCESS_DENIED|"ok":true/);
    return await call();
  } finally {
    controller.abort();
    await running;
  }
}

describe("an API on one's own machine", () => {
  it("is refused unless a flag allows it, and the refusal names the flag", async () => {
    expect(await run("call", "api.up", ...target)).toMatchObject({
      code: 3,
      err: expect.stringContaining("give --allow-private to call it there."),
    });
    for (const flags of [["--allow-private"], ["--base-url", base]]) {
      const called = await run("call", "api.up", ...target, ...flags);
      expect(called).toMatchObject({ code: 0, out: '{"ok":true}\n' });
    }
  });

  it("is inspected as a bare target with the same flags", async () => {
    expect(await callInspected()).toContain("ACCESS_DENIED");
    expect(await callInspected("--allow-private")).toContain('"ok":true');
  });

  it("keeps its flags in the example of describe", async () => {
    const { out } = await run("describe", "api.up", ...target, "--base-url", base, "--allow-private");
    expect(out).toContain(`--openapi local.json --base-url ${base} --allow-private`);
  });

  it("has flags that say what they go with", async () => {
    expect(await run("list", "--allow-private")).toMatchObject({
      code: 2,
      err: expect.stringContaining("--allow-private goes with --openapi"),
    });
  });
});
