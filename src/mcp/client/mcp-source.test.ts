import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { closeImported, type Extra, imported, OBJECT, serverOf } from "../../../test/import-raw-server.ts";
import { createRawMcpServer } from "../../../test/raw-mcp-server.ts";
import { createToolLock } from "./lock/tool-lock.ts";
import { LISTING_WAITS, ListingScheduler } from "./mcp-source.ts";

afterEach(async () => {
  vi.useRealTimers();
  await closeImported();
  vi.restoreAllMocks();
});

const CHANGED = "notifications/tools/list_changed";

describe("McpSource", () => {
  it("X-6 lists rarely under a storm of changes, and a refresh of one's own is soon done", async () => {
    vi.useFakeTimers();
    let lists = 0;
    const server = createRawMcpServer({
      "tools/list": async () => {
        lists += 1;
        await new Promise((resolve) => setTimeout(resolve, 20));
        return { tools: [{ name: `t${lists}`, inputSchema: OBJECT }] };
      },
    });
    const importing = imported(server);
    await vi.advanceTimersByTimeAsync(200);
    const { source } = await importing;
    const storm = setInterval(() => server.notify(CHANGED), 2);
    await vi.advanceTimersByTimeAsync(1_500);
    expect(lists).toBeGreaterThanOrEqual(3);
    expect(lists).toBeLessThanOrEqual(7);
    let isDone = false;
    const refreshed = Promise.all([source.refresh(), source.refresh(), source.refresh()]).then(() => {
      isDone = true;
    });
    await vi.advanceTimersByTimeAsync(100);
    expect(isDone).toBe(true);
    await refreshed;
    clearInterval(storm);
    expect(source.operations.map(({ name }) => name)).toEqual([`t${lists}`]);
  });

  it("X-6 warns of noise once per kind and counts the rest", async () => {
    const [first, ...others] = ["t0", "t1", "t2"];
    const server = createRawMcpServer({
      "tools/list": () => ({ tools: [{ name: first, inputSchema: OBJECT }] }),
    });
    const transport = server.transport();
    const { source, warnings } = await imported({ transport: () => transport });
    const hear = (message: unknown) => transport.onmessage?.(message as never);
    for (let i = 0; i < 500; i++)
      hear({ jsonrpc: "2.0", id: `zz${i}`, error: { code: 1, message: `e${i}` } });
    for (const odd of others) hear(odd);
    expect(warnings).toEqual(["An answer belongs to no request: e0", "A message is no JSON object."]);
    expect(source.oddities).toBe(502);
  });

  it("X-4 loses no change to a listener that throws, and tells of it once", async () => {
    const said = vi.spyOn(console, "warn").mockImplementation(() => {});
    let name = "old";
    const server = serverOf(() => [{ name, inputSchema: OBJECT }, { broken: name }]);
    const throwing = (what: string) => () => {
      throw new Error(`${what} has a bug`);
    };
    const { source, registry } = await imported(server, {
      pin: { lock: createToolLock() },
      onDefinitionChange: throwing("onDefinitionChange"),
      onWarning: throwing("onWarning"),
    } as Extra);
    source.onChange(() => {
      throw new Error("so has this one");
    });
    await source.approve();
    expect(registry.list().map(({ id }) => id)).toEqual(["raw.old"]);
    name = "new";
    await source.refresh();
    expect(registry.list()).toEqual([]);
    name = "old";
    server.notify(CHANGED);
    await expect.poll(() => registry.list().map(({ id }) => id), { timeout: 20_000 }).toEqual(["raw.old"]);
    expect(said.mock.calls.flat()).toEqual([
      "[waybill] onWarning threw, which is told once: onWarning has a bug",
      "[waybill] onDefinitionChange threw, which is told once: onDefinitionChange has a bug",
    ]);
  });

  it("X-4 lists the tools that a pin refuses, as they are listed now", async () => {
    let tools = [{ name: "one", inputSchema: OBJECT, description: "First." }];
    const server = serverOf(() => tools);
    const { source } = await imported(server, { pin: { lock: createToolLock() } } as Extra);
    const refused = () => source.refused?.map(({ tool, kind }) => `${tool} ${kind}`);
    expect(refused()).toEqual(["one new"]);
    await source.approve();
    expect(refused()).toEqual([]);
    tools = [
      { name: "one", inputSchema: OBJECT, description: "Another." },
      { name: "two", inputSchema: OBJECT, description: "Second." },
    ];
    await source.refresh();
    expect(refused()).toEqual(["one changed", "two new"]);
    tools = [{ name: "one", inputSchema: OBJECT, description: "First." }];
    await source.refresh();
    expect(refused()).toEqual([]);
    const free = await imported(serverOf(() => tools));
    expect(free.source.refused).toBeUndefined();
  });

  it("X-6 names a tool that is too large without keeping it, and takes the others", async () => {
    const big = { name: "big", inputSchema: OBJECT, description: "x".repeat(2_000) };
    const server = serverOf(() => [
      big,
      { name: "small", inputSchema: OBJECT },
      { description: "y".repeat(2_000) },
    ]);
    const { source, warnings } = await imported(server, { limits: { definitionBytes: 1_000 } } as Extra);
    expect(source.operations.map(({ name }) => name)).toEqual(["small"]);
    const reason = "Its definition is larger than 1000 bytes.";
    expect(source.unusable).toEqual([
      { tool: "big", reason },
      { tool: "without a name", reason },
    ]);
    expect(warnings).toHaveLength(2);
  });

  it("X-6 warns of the first tools that are odd, and counts the rest", async () => {
    const odd = (from: number, count: number) =>
      Array.from({ length: count }, (_, at) => ({
        name: `t${from + at}`,
        inputSchema: OBJECT,
        description: "a\u200bb",
      }));
    let tools = odd(0, 500);
    const { source, warnings } = await imported(serverOf(() => tools));
    expect(source.notes).toHaveLength(500);
    expect(warnings).toHaveLength(21);
    expect(warnings.at(-1)).toMatch(/^480 more such warnings are left out/);
    tools = [...tools, ...odd(500, 2)];
    await source.refresh();
    expect(warnings).toHaveLength(23);
  });

  it("X-6 leaves the import of a list under way when it is closed", async () => {
    let length = 1;
    const server = serverOf(() =>
      Array.from({ length }, (_, at) => ({ name: `t${at}`, inputSchema: OBJECT })),
    );
    let isClosing: Promise<void> | undefined;
    const close = (name: string): boolean => {
      if (name === "t5") isClosing = source.close();
      return true;
    };
    const { source } = await imported(server, { filter: close } as Extra);
    length = 100;
    await expect(source.refresh()).rejects.toMatchObject({ code: "ABORTED" });
    await isClosing;
    expect(source.operations).toHaveLength(1);
  });
});

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Turns over a list that takes this long to read, and how often it was. */
function createTurns(takesMs: number, failure?: Error) {
  const failures: unknown[] = [];
  const seen = { begun: 0, ended: 0, most: 0, failures };
  const list = async () => {
    seen.begun += 1;
    seen.most = Math.max(seen.most, seen.begun - seen.ended);
    await new Promise((resolve) => setTimeout(resolve, takesMs));
    seen.ended += 1;
    if (failure !== undefined) throw failure;
  };
  return { scheduler: new ListingScheduler(list, (cause) => failures.push(cause)), seen };
}

describe("ListingScheduler", () => {
  it("RE-22 shares one waiting reading among all who ask while one is running", async () => {
    const { scheduler, seen } = createTurns(100);
    const first = scheduler.now();
    const [second, third] = [scheduler.now(), scheduler.now()];
    expect(second).toBe(third);
    await vi.advanceTimersByTimeAsync(100);
    await first;
    expect(seen).toMatchObject({ begun: 2, ended: 1 });
    const fourth = scheduler.now();
    expect(fourth).not.toBe(second);
    await vi.advanceTimersByTimeAsync(200);
    await Promise.all([second, fourth]);
    expect(seen).toMatchObject({ begun: 3, ended: 3, most: 1 });
  });

  it("X-6 reads ever more rarely where changes are told of without end, and asking still works", async () => {
    const { scheduler, seen } = createTurns(300);
    const storm = setInterval(() => scheduler.soon(), 10);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(seen.begun).toBeGreaterThan(8);
    expect(seen.begun).toBeLessThan(22);
    expect(seen.most).toBe(1);
    let isDone = false;
    void scheduler.now().then(() => {
      isDone = true;
    });
    await vi.advanceTimersByTimeAsync(601);
    expect(isDone).toBe(true);
    clearInterval(storm);
    scheduler.stop();
  });

  it("RE-22 reads soon again once it has been calm", async () => {
    const { scheduler, seen } = createTurns(1);
    for (let i = 0; i < 10; i++) {
      scheduler.soon();
      scheduler.soon();
      await vi.advanceTimersByTimeAsync(LISTING_WAITS.most + 1);
    }
    const before = seen.begun;
    expect(before).toBe(10);
    await vi.advanceTimersByTimeAsync(2 * LISTING_WAITS.most);
    scheduler.soon();
    await vi.advanceTimersByTimeAsync(LISTING_WAITS.first - 1);
    expect(seen.begun).toBe(before);
    await vi.advanceTimersByTimeAsync(1);
    expect(seen.begun).toBe(before + 1);
  });

  it("RE-22 goes on after a reading that failed, and tells of it where nobody waits", async () => {
    const failure = new Error("down");
    const { scheduler, seen } = createTurns(10, failure);
    const asked = [scheduler.now(), scheduler.now()].map((each) => each.catch((error: unknown) => error));
    await vi.advanceTimersByTimeAsync(20);
    expect(await Promise.all(asked)).toEqual([failure, failure]);
    expect(seen.failures).toEqual([]);
    scheduler.soon();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(seen.failures).toEqual([failure]);
    scheduler.soon();
    scheduler.stop();
    scheduler.soon();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(seen.begun).toBe(3);
  });
});
