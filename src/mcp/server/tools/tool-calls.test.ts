import { describe, expect, it, vi } from "vitest";
import { query, stream } from "../../../../test/make-operation.ts";
import { call, type HeaderFields, initialize, modern, post } from "../../../../test/mcp-requests.ts";
import { createSmallMcpServer } from "../../../../test/small-mcp-server.ts";
import { CallError, OperationRegistry } from "../../../index.ts";
import { createMcpHandler } from "../http/mcp-endpoint.ts";
import { toMcpServer } from "../to-mcp-server.ts";

async function route(args: object, headers: HeaderFields): Promise<number> {
  const handler = createMcpHandler(createSmallMcpServer());
  const response = await handler.fetch(modern("tools/call", { name: "route", arguments: args }, headers));
  const { error } = (await response.json()) as { error?: { code: number } };
  await handler.close();
  if (error !== undefined) expect([response.status, error.code]).toEqual([400, -32_020]);
  return response.status;
}

describe("checkParamHeaders", () => {
  it("Mcp: runs what its headers repeat, plainly or encoded, at any depth", async () => {
    const args = { region: "eu", count: 42, deep: { flag: true }, plain: "x" };
    const headers = { "mcp-param-region": "eu", "mcp-param-count": "42.0", "mcp-param-flag": "true" };
    expect(await route(args, headers)).toBe(200);
    const text = "zürich 👋";
    const encoded = `=?base64?${Buffer.from(text).toString("base64")}?=`;
    expect(await route({ region: text }, { "mcp-param-region": encoded })).toBe(200);
  });

  it("Mcp: refuses headers that say something else, or nothing", async () => {
    expect(await route({ region: "eu" }, { "mcp-param-region": "us" })).toBe(400);
    expect(await route({ region: "eu" }, {})).toBe(400);
    expect(await route({ region: "eu" }, { "mcp-param-region": "=?base64?%%%?=" })).toBe(400);
    expect(await route({ region: "eu" }, { "mcp-param-region": "=?base64?/w==?=" })).toBe(400);
    expect(await route({ count: 42 }, { "mcp-param-count": "43" })).toBe(400);
    expect(await route({ count: 42 }, { "mcp-param-count": "0x2a" })).toBe(400);
    expect(await route({ deep: { flag: false } }, { "mcp-param-flag": "true" })).toBe(400);
  });

  it("Mcp: expects no header for what is not there or cannot be written in one", async () => {
    for (const args of [{}, { region: null }, { count: 2 ** 60 }, { deep: 1 }, { region: ["eu"] }]) {
      expect(await route(args, {})).toBe(200);
    }
  });

  it("X-4 refuses a header that repeats what is not there", async () => {
    for (const args of [{}, { region: null }, { region: ["eu"] }, { region: { eu: 1 } }, { plain: "eu" }]) {
      for (const region of ["eu", "", "null"]) {
        expect(await route(args, { "mcp-param-region": region })).toBe(400);
      }
    }
    expect(await route({ deep: {} }, { "mcp-param-flag": "true" })).toBe(400);
    expect(await route({}, { "mcp-param-other": "eu" })).toBe(200);
  });

  it("Mcp: asks nothing of 2025 clients, which know no such headers", async () => {
    const handler = createMcpHandler(createSmallMcpServer());
    const session = { "mcp-session-id": await initialize(handler) };
    const response = await handler.fetch(post(call(2, "route", { region: "eu" }), session));
    expect(await response.text()).toContain('"result"');
    await handler.close();
  });
});

describe("what a handler throws", () => {
  const broken = new RangeError("No shelf 7.");
  const fail = (thrown: unknown) => () => {
    throw thrown;
  };
  const registry = new OperationRegistry([
    query("shelf.break", fail(broken)),
    query("shelf.full", fail(new CallError("RESOURCE_EXHAUSTED", "Full."))),
    stream("shelf.watch", fail(broken)),
  ]);
  const calling = async (handler: ReturnType<typeof createMcpHandler>, name: string) =>
    (await handler.fetch(modern("tools/call", { name, arguments: {} }))).text();

  it("is told to onWarning, and to no client", async () => {
    const told: unknown[][] = [];
    const handler = createMcpHandler(toMcpServer(registry, { onWarning: (...words) => told.push(words) }));
    for (const name of ["shelf_break", "shelf_break", "shelf_watch", "shelf_full"])
      expect(await calling(handler, name)).not.toContain("No shelf 7.");
    await handler.close();
    const sentence = (id: string) =>
      expect.stringMatching(`^"shelf\\.${id}" failed unexpectedly \\(request [0-9a-f]{32}\\)\\.$`);
    expect(told).toEqual([
      [sentence("break"), broken],
      [sentence("break"), broken],
      [sentence("watch"), broken],
    ]);
  });

  it("is written to the console without onWarning, and answered where onWarning throws too", async () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
    const handler = createMcpHandler(toMcpServer(registry));
    await calling(handler, "shelf_break");
    await handler.close();
    expect(warn.mock.calls.map(([, cause]) => cause)).toEqual([broken]);
    warn.mockRestore();
    const onWarning = (): void => {
      throw new Error("Nobody listens.");
    };
    const deaf = createMcpHandler(toMcpServer(registry, { onWarning }));
    expect(await calling(deaf, "shelf_break")).toContain("EXECUTION_ERROR");
    await deaf.close();
  });
});
