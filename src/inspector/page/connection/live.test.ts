import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { CallRow, LiveEvent } from "../../protocol.ts";
import { Api } from "./api.ts";
import { Live, MOST_ROWS } from "./live.ts";

const realFetch = globalThis.fetch;
let server: Server;
let pages: ServerResponse[];
let answer: (response: ServerResponse) => void;

/** The page asks relative to its own address, which Node does not have. */
beforeEach(async () => {
  pages = [];
  answer = (response) => void response.writeHead(200, { "content-type": "application/x-ndjson" });
  server = createServer((_, response) => {
    answer(response);
    response.flushHeaders();
    pages.push(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  vi.stubGlobal("fetch", (path: string, init: RequestInit) =>
    realFetch(new URL(path, `http://127.0.0.1:${port}/inspect/`), init),
  );
  vi.stubGlobal("requestAnimationFrame", (draw: () => void) => setTimeout(draw, 1));
});

afterEach(async () => {
  vi.unstubAllGlobals();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

function tell(event: LiveEvent): void {
  pages.at(-1)?.write(`${JSON.stringify(event)}\n`);
}

function row(seq: number, more: Partial<CallRow> = {}): CallRow {
  return { seq, requestId: `r${seq}`, operation: "a.b", startedAt: seq, ...more };
}

async function opened(): Promise<{ readonly live: Live; readonly stop: () => void }> {
  const live = new Live(new Api());
  const stop = live.start();
  await vi.waitFor(() => expect(pages).toHaveLength(1), 20_000);
  tell({ type: "begin", running: 0 });
  await vi.waitFor(() => expect(live.status).toBe("open"), 20_000);
  return { live, stop };
}

describe("what happens at the gateway", () => {
  it("is held by call: an end takes the place of its beginning", async () => {
    const { live, stop } = await opened();
    const ended: number[] = [];
    live.onEnd(({ seq }) => ended.push(seq));
    tell({ type: "calls", rows: [row(1), row(2)], running: 2, dropped: 0 });
    tell({ type: "calls", rows: [row(1, { outcome: "ok" })], running: 1, dropped: 3 });
    await vi.waitFor(() => expect(live.running).toBe(1), 20_000);
    expect(live.rows.map(({ seq, outcome }) => [seq, outcome])).toEqual([
      [1, "ok"],
      [2, undefined],
    ]);
    expect([ended, live.dropped]).toEqual([[1], 3]);
    stop();
  });

  it("is held up to a number of calls, and the oldest go", async () => {
    const { live, stop } = await opened();
    const rows = Array.from({ length: MOST_ROWS + 1 }, (_, at) => row(at));
    tell({ type: "calls", rows: rows.slice(0, MOST_ROWS), running: 0, dropped: 0 });
    await vi.waitFor(() => expect(live.rows).toHaveLength(MOST_ROWS), 20_000);
    expect(live.row(0)).toBeDefined();
    tell({ type: "calls", rows: rows.slice(MOST_ROWS), running: 0, dropped: 0 });
    await vi.waitFor(() => expect(live.row(MOST_ROWS)).toBeDefined(), 20_000);
    expect([live.rows.length, live.row(0)]).toEqual([MOST_ROWS, undefined]);
    stop();
  });

  it("is told to listeners once for many changes", async () => {
    const { live, stop } = await opened();
    await new Promise((resolve) => setTimeout(resolve, 20));
    let told = 0;
    live.onChange(() => {
      told += 1;
    });
    const many = Array.from({ length: 50 }, (_, at) => ({ type: "operations", revision: at }) as const);
    pages.at(-1)?.write(many.map((event) => `${JSON.stringify(event)}\n`).join(""));
    await vi.waitFor(() => expect(live.operations).toBe(51), 20_000);
    await vi.waitFor(() => expect(told).toBeGreaterThan(0), 20_000);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(told).toBeLessThan(10);
    stop();
  });

  it("is asked for again when the connection breaks", async () => {
    const { live, stop } = await opened();
    tell({ type: "calls", rows: [row(1)], running: 0, dropped: 0 });
    await vi.waitFor(() => expect(live.rows).toHaveLength(1), 20_000);
    pages[0]?.destroy();
    await vi.waitFor(() => expect(live.status).toBe("lost"), 20_000);
    await vi.waitFor(() => expect(pages).toHaveLength(2), 20_000);
    tell({ type: "begin", running: 0 });
    await vi.waitFor(() => expect([live.status, live.rows.length]).toEqual(["open", 0]), 20_000);
    stop();
  });

  it("is asked for again when the gateway ends it, and does not count as lost meanwhile", async () => {
    const { live, stop } = await opened();
    const seen = new Set<string>();
    live.onChange(() => seen.add(live.status));
    pages[0]?.end();
    await vi.waitFor(() => expect(pages).toHaveLength(2), 20_000);
    tell({ type: "begin", running: 3 });
    await vi.waitFor(() => expect(live.running).toBe(3), 20_000);
    await vi.waitFor(() => expect([...seen]).toEqual(["open"]), 20_000);
    stop();
  });

  it("is asked for no more by whoever may not look", async () => {
    answer = (response) =>
      void response.writeHead(401).end('{"error":{"code":"UNAUTHENTICATED","message":"Who?"}}');
    const live = new Live(new Api("wrong"));
    const stop = live.start();
    await vi.waitFor(() => expect(live.status).toBe("refused"), 20_000);
    expect(pages).toHaveLength(1);
    stop();
  });

  it("ends with the page", async () => {
    const { stop } = await opened();
    const closed = new Promise((resolve) => pages[0]?.on("close", resolve));
    stop();
    await closed;
    expect(pages).toHaveLength(1);
  });
});
