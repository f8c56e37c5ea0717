import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { type CommandProject, openProject, type ServedProject } from "../../../test/command-project.ts";
import { cpuMs } from "../../../test/cpu-ms.ts";

let project: CommandProject;
let served: ServedProject | undefined;
afterEach(async () => {
  await served?.stop();
  served = undefined;
  project.remove();
});

const SHOP = `
const shared = { namespace: "shop", version: "1.0.0", description: "Does it.\\n\\nAt length." };
export const add = { ...shared, id: "shop.add", name: "add", type: "query",
  inputSchema: { type: "object", properties: { a: { type: "integer" } }, required: ["a"] },
  async handler({ a }, context) {
    for (let n = 1; n <= 3; n++) context.progress({ progress: n, total: 3, message: "step" });
    return { sum: a + 1 };
  } };
export const lines = { ...shared, id: "shop.lines", name: "lines", type: "query", handler: (_, { progress }) => { progress("a\\u2028b"); return "a\\u2028b\\u2029c\\n\\nd"; } };
export const eager = { ...shared, id: "shop.eager", name: "eager", type: "query",
  handler: (_, { progress }) => { for (let n = 0; n < 200; n++) progress("x".repeat(15_000)); return "done"; } };
export const large = { ...shared, id: "shop.large", name: "large", type: "query", handler: () => "y".repeat(4_000_000) };
export const larger = { ...shared, id: "shop.larger", name: "larger", type: "query", handler: () => "y".repeat(16_000_000) };
export const bytes = { ...shared, id: "shop.bytes", name: "bytes", type: "query", handler: () => new Uint8Array([0, 255]) };
export const count = { ...shared, id: "shop.count", name: "count", type: "subscription",
  async *handler() { for (let n = 1; ; n++) yield n; } };
export const slow = { ...shared, id: "shop.slow", name: "slow", type: "query",
  handler: (_, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))) };
export const hidden = { ...shared, id: "shop.hidden", name: "hidden", type: "query", visibility: "internal", handler: () => 1 };
export const guarded = { ...shared, id: "shop.guarded", name: "guarded", type: "query", access: { scopes: { allOf: ["x"] } }, handler: () => 1 };
`;
const CONFIG = { operations: "shop.mjs", serve: { port: 0 } };

async function serving(config: object = CONFIG): Promise<string> {
  project = openProject({ "shop.mjs": SHOP, "waybill.config.json": config });
  served = await project.serve();
  return served.url;
}

describe("a gateway that was named", () => {
  it("is asked for one operation and one call, and for no document", async () => {
    project = openProject({});
    const asked: string[] = [];
    const stub = createServer((request, response) => {
      asked.push(`${request.method} ${request.url}`);
      const isCall = request.url === "/call";
      const envelope = { data: { sum: 2 }, meta: { source: "local", operationId: "shop.add", timestamp: 1 } };
      const type = isCall ? "application/vnd.waybill.envelope+json" : "application/json";
      response.writeHead(200, { "content-type": type });
      response.end(JSON.stringify(isCall ? envelope : { id: "shop.add", type: "query", source: "shop" }));
    });
    await new Promise<void>((done) => stub.listen(0, "127.0.0.1", done));
    const url = `http://127.0.0.1:${(stub.address() as AddressInfo).port}`;
    const ended = await project.run(["call", "shop.add", "a=1", "--url", url]);
    stub.close();
    expect(ended).toEqual({ code: 0, out: '{"sum":2}\n', err: "" });
    expect(asked).toEqual(["GET /operations/shop.add", "POST /call"]);
  });

  it("gives the envelope as it is, bytes, progress, values and errors", async () => {
    const url = await serving();
    const run = (...words: string[]) => project.run([...words, "--url", url]);
    const { meta } = JSON.parse((await run("call", "shop.add", "a=1", "--envelope")).out);
    expect(meta).toMatchObject({
      source: "local",
      operationId: "shop.add",
      waybill: { durationMs: expect.any(Number) },
    });
    const told = await run("call", "shop.add", "a=1", "--progress");
    expect(told).toEqual({ code: 0, out: '{"sum":2}\n', err: "1 of 3  step\n2 of 3  step\n3 of 3  step\n" });
    expect(JSON.parse((await run("call", "shop.lines", "--progress")).out)).toBe("a\u2028b\u2029c\n\nd");
    expect((await run("call", "shop.bytes", "-o", "b", "-q")).code).toBe(0);
    expect((await run("call", "shop.count", "--take", "2")).out).toBe("1\n2\n");
    expect(JSON.parse((await run("call", "shop.count", "--take", "1", "--envelope")).out)).toMatchObject({
      data: 1,
      meta: { source: "local", operationId: "shop.count" },
    });
    const wrong = await run("call", "shop.add", "a=x");
    expect([wrong.code, wrong.err]).toEqual([
      3,
      expect.stringContaining("  a must be integer; it is string of 1"),
    ]);
    const late = await run("call", "shop.slow", "--timeout", "50ms");
    expect([late.code, late.err]).toEqual([3, expect.stringContaining("(TIMEOUT)")]);
  });

  it("answers though progress was told faster than it can be sent: what is too much of it is left out", async () => {
    const url = await serving();
    const { code, out } = await project.run(["call", "shop.eager", "--progress", "--raw", "--url", url]);
    expect([code, out]).toEqual([0, "done\n"]);
  });

  it("reads a large answer once, however many pieces it comes in", async () => {
    const url = await serving();
    const cost = async (id: string): Promise<number> => {
      const before = cpuMs();
      const { code } = await project.run(["call", id, "--progress", "--raw", "-o", "out", "--url", url]);
      expect(code).toBe(0);
      return cpuMs() - before;
    };
    const least = async (id: string): Promise<number> =>
      Math.min(await cost(id), await cost(id), await cost(id));
    // Four times the pieces; work that grew with their square would be sixteen times as much.
    expect(await least("shop.larger")).toBeLessThan(8 * (await least("shop.large")));
  });

  it("lists the real sources and operations, and says all of one", async () => {
    const url = await serving();
    const { out } = await project.run(["list", "--url", url]);
    expect(out).toMatch(/\nshop\.add +query +local +Does it\.\n/);
    expect(out).not.toContain("hidden");
    // Over the public address nobody holds the scope.
    expect(out).not.toContain("guarded");
    expect((await project.run(["list", "--sources", "--url", url])).out).toMatch(/\nlocal +up +local +8 /);
    const { operations } = JSON.parse((await project.run(["list", "shop.add", "--json", "--url", url])).out);
    expect(operations).toMatchObject([{ id: "shop.add", inputSchema: { required: ["a"] } }]);
    expect((await project.run(["describe", "shop.add", "--url", url])).out).toMatch(
      /At length\.[\s\S]*\n {2}source +local\n/,
    );
    expect(await project.run(["describe", "shop.ad", "--url", url])).toMatchObject({
      code: 3,
      err: 'waybill: There is no operation "shop.ad"; did you mean "shop.add"?\n',
    });
    expect((await project.run(["call", "shop.guarded", "--url", url])).code).toBe(3);
    expect((await project.run(["list", "--source", "elsewhere", "--url", url])).out).toBe("");
  });

  it("answers to others by the rules of its HTTP API", async () => {
    const url = await serving();
    const index = await fetch(`${url}/operations`);
    expect([index.status, index.headers.get("etag")]).toEqual([200, expect.any(String)]);
    const again = await fetch(`${url}/operations`, {
      headers: { "if-none-match": index.headers.get("etag") ?? "" },
    });
    expect(again.status).toBe(304);
    const status = async (path: string, init?: RequestInit) => (await fetch(url + path, init)).status;
    expect(await status("/operations", { method: "POST" })).toBe(405);
    expect(await status("/operations", { headers: { origin: "https://evil.example" } })).toBe(403);
    expect(await status("/operations/shop.hidden")).toBe(404);
    expect(await status("/operations/shop.guarded")).toBe(404);
    expect(await status("/operations/%E0%A4%A")).toBe(404);
    const text = await (await fetch(`${url}/operations`)).text();
    expect(text).not.toContain(project.folder);
  });

  it("asks for a token where callers must say who they are", async () => {
    const token = "a-token-of-some-length-1";
    const url = await serving({
      ...CONFIG,
      serve: { port: 0, auth: { tokens: { ann: { token, scopes: ["x"] } } } },
    });
    const env = { WAYBILL_TOKEN: token };
    expect((await project.run(["list", "--url", url])).err).toContain("answered 401.");
    expect((await project.run(["list", "--url", url], { env })).out).toContain("shop.guarded");
    expect((await project.run(["call", "shop.guarded", "--url", url], { env })).out).toBe("1\n");
    for (const odd of [`${token}\n`, "a b", "\u0100"])
      expect(await project.run(["list", "--url", url], { env: { WAYBILL_TOKEN: odd } })).toMatchObject({
        code: 2,
        err: "waybill: The token in WAYBILL_TOKEN holds a space, a line break or another character that no header can carry; set it without.\n",
      });
  });
});
