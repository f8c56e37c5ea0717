import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { as, type InspectedGateway, inspectGateway, TOKENS } from "../../../../test/inspected-gateway.ts";
import { query, sleep, stream, until } from "../../../../test/make-operation.ts";
import { createObserver } from "../../../gateway/serve/observe/observer.ts";
import type { CallRow, LiveEvent } from "../../protocol.ts";
import type { Viewer } from "../viewer.ts";
import { CallLog } from "./call-log.ts";
import { LiveFeeds } from "./live-feeds.ts";

let finish: () => void = () => {};
const OPERATIONS = [
  query("desk.echo", (input) => input ?? null),
  query("desk.wait", () => new Promise<string>((resolve) => (finish = () => resolve("done")))),
  stream("desk.count", async function* () {
    for (let at = 0; ; at++) yield at;
  }),
];

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of open.splice(0).reverse()) await end();
});

async function start(...given: Parameters<typeof inspectGateway>): Promise<InspectedGateway> {
  const inspected = await inspectGateway(...given);
  open.push(() => inspected.close());
  return inspected;
}

function rowsOf(events: readonly LiveEvent[]): readonly CallRow[] {
  return events.flatMap((event) => (event.type === "calls" ? event.rows : []));
}

describe("the live feed", () => {
  it("tells what is remembered, then calls from anywhere as they begin and end", async () => {
    const inspected = await start(OPERATIONS);
    await inspected.gateway.executor.execute("desk.echo", 1);
    const feed = await inspected.live();
    expect(feed.events[0]).toEqual({ type: "begin", running: 0 });
    await until(() => rowsOf(feed.events).length === 1);
    await fetch(`${inspected.url}/api/desk/echo`, {
      method: "POST",
      body: "1",
      headers: { "content-type": "application/json" },
    });
    await until(() => rowsOf(feed.events).length === 2);
    expect(rowsOf(feed.events)).toMatchObject([
      { seq: 1, operation: "desk.echo", outcome: "ok" },
      { seq: 2, operation: "desk.echo", outcome: "ok", entry: "http" },
    ]);
    const waiting = inspected.gateway.executor.execute("desk.wait");
    await until(() => rowsOf(feed.events).length === 3);
    expect(rowsOf(feed.events)[2]).not.toHaveProperty("outcome");
    expect(feed.events.at(-1)).toMatchObject({ type: "calls", running: 1, dropped: 0 });
    finish();
    await waiting;
    await until(() => rowsOf(feed.events).length === 4);
    expect(rowsOf(feed.events)[3]).toMatchObject({ seq: 3, outcome: "ok" });
    feed.close();
  });

  it("tells each viewer of the calls that are theirs to see", async () => {
    const inspected = await start(OPERATIONS, { serve: { auth: { tokens: TOKENS } } });
    const [olga, ann, bob] = await Promise.all([
      inspected.live(as("olga")),
      inspected.live(as("ann")),
      inspected.live(as("bob")),
    ]);
    await inspected.run({ operation: "desk.echo" }, { headers: as("ann") });
    await inspected.gateway.executor.execute("desk.echo", 1);
    await until(() => rowsOf(olga.events).length === 2 && rowsOf(ann.events).length > 0);
    await sleep(250);
    expect(rowsOf(ann.events)).toMatchObject([{ subject: "ann" }]);
    expect(rowsOf(bob.events)).toEqual([]);
    expect(bob.events.every((event) => event.type !== "calls" || event.running === 0)).toBe(true);
    const late = await inspected.live(as("bob"));
    await sleep(50);
    expect(rowsOf(late.events)).toEqual([]);
    for (const feed of [olga, ann, bob, late]) feed.close();
  });

  it("tells what is remembered in events of at most five hundred", async () => {
    const inspected = await start(OPERATIONS);
    for (let at = 0; at < 1_200; at++) await inspected.gateway.executor.execute("desk.echo", at);
    const feed = await inspected.live();
    await until(() => rowsOf(feed.events).length === 1_200);
    const sizes = feed.events.flatMap((event) => (event.type === "calls" ? [event.rows.length] : []));
    expect(sizes).toEqual([500, 500, 200]);
    expect(rowsOf(feed.events).map(({ seq }) => seq)).toEqual(
      Array.from({ length: 1_200 }, (_, at) => at + 1),
    );
    feed.close();
  });

  it("says that operations and sources changed, together and not each time", async () => {
    const inspected = await start(OPERATIONS);
    const feed = await inspected.live();
    const registry = inspected.gateway.executor as unknown as { register(operation: unknown): void };
    for (let at = 0; at < 20; at++) registry.register(query(`more.n${at}`, () => at));
    for (const wanted of ["operations", "sources"])
      await until(() => feed.events.some(({ type }) => type === wanted));
    await sleep(250);
    expect(feed.events.filter(({ type }) => type === "operations")).toHaveLength(1);
    expect(feed.events.filter(({ type }) => type === "sources")).toHaveLength(1);
    feed.close();
  });

  it("lets fifty pages follow, and takes another when one has left", async () => {
    const inspected = await start(OPERATIONS);
    const feeds = await Promise.all(Array.from({ length: 50 }, () => inspected.live()));
    const refused = await inspected.ask("live");
    expect(refused.status).toBe(503);
    expect(await refused.text()).toContain("50 pages");
    feeds[0]?.close();
    const again = await letIn(inspected);
    for (const feed of [...feeds, again]) feed.close();
  });

  it("lets ten pages of one subject follow, and leaves the others to others", async () => {
    const inspected = await start(OPERATIONS, { serve: { auth: { tokens: TOKENS } } });
    const feeds = await Promise.all(Array.from({ length: 10 }, () => inspected.live(as("ann"))));
    const refused = await inspected.ask("live", { headers: as("ann") });
    expect(refused.status).toBe(503);
    expect(await refused.text()).toContain("10 pages of yours");
    feeds.push(await inspected.live(as("bob")));
    feeds[0]?.close();
    const again = await letIn(inspected, as("ann"));
    for (const feed of [...feeds, again]) feed.close();
  });

  it("gives no place to a page that has left before it was let in", async () => {
    const inspected = await start(OPERATIONS);
    const { log, feeds } = feedsOf(inspected);
    for (let at = 0; at < 50; at++) {
      const isTried = new Promise<void>((resolve) => {
        void answered((response) => {
          response.on("close", () => {
            feeds.open(response, OPERATOR);
            resolve();
          });
          response.destroy();
        }).catch(() => {});
      });
      await isTried;
    }
    const told = await answered((response) => {
      feeds.open(response, OPERATOR);
      feeds.close();
    });
    expect(told).toContain('"begin"');
    log.close();
  });

  it("ends after a while, and at once for whoever is no longer let in", async () => {
    const inspected = await start(OPERATIONS);
    const { log, feeds } = feedsOf(inspected, 300);
    const startedAt = performance.now();
    await answered((response) => feeds.open(response, OPERATOR));
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(300);
    const { feeds: patient, log: other } = feedsOf(inspected);
    let isCurrent = true;
    const ended = answered((response) => patient.open(response, { ...OPERATOR, isCurrent: () => isCurrent }));
    isCurrent = false;
    expect(await ended).toContain('"begin"');
    for (const one of [log, other]) one.close();
    for (const one of [feeds, patient]) one.close();
  });

  it("tells how many values a subscription gave so far, together and not each time", async () => {
    const inspected = await start(OPERATIONS);
    const feed = await inspected.live();
    const values = inspected.gateway.executor.subscribe("desk.count")[Symbol.asyncIterator]();
    for (let at = 0; at < 50; at++) await values.next();
    await until(() => rowsOf(feed.events).at(-1)?.values === 50);
    for (let at = 0; at < 50; at++) await values.next();
    await until(() => rowsOf(feed.events).at(-1)?.values === 100);
    expect(rowsOf(feed.events).length).toBeLessThan(8);
    expect(rowsOf(feed.events).at(-1)).not.toHaveProperty("outcome");
    await values.return?.();
    await until(() => rowsOf(feed.events).at(-1)?.outcome === "ok");
    feed.close();
  });

  it("shows nothing as running for ever on a page that did not keep up", async () => {
    const inspected = await start(OPERATIONS);
    const { executor } = inspected.gateway;
    const waiting = executor.execute("desk.wait");
    const socket = await slowPage(inspected.port);
    await flood(inspected, 20);
    finish();
    await waiting;
    await flood(inspected, 5);
    const told = readOn(socket);
    await until(() => told.rows + told.dropped >= 25_001);
    expect(told.dropped).toBeGreaterThan(0);
    expect([...told.running]).toEqual([]);
    socket.destroy();
  });

  it("ends when another config is in use, and when the inspector closes", async () => {
    const inspected = await start(OPERATIONS);
    const ended = await inspected.ask("live");
    inspected.loaded = { ...inspected.loaded };
    expect(await ended.text()).toContain('"begin"');
    const closed = await inspected.ask("live");
    inspected.inspector.close();
    expect(await closed.text()).toContain('"begin"');
  });

  it("holds back two thousand calls for a page that does not read, counts the rest, and catches up", async () => {
    const inspected = await start(OPERATIONS);
    const socket = await slowPage(inspected.port);
    await flood(inspected, 40);
    const told = readOn(socket);
    await until(() => told.rows + told.dropped >= 40_000);
    expect(told.dropped).toBeGreaterThan(10_000);
    // A call that began in one event and ended in the next is told twice.
    expect(told.rows + told.dropped).toBeLessThanOrEqual(40_000 + told.events);
    socket.destroy();
  });
});

/** Follows as soon as there is a place. */
async function letIn(inspected: InspectedGateway, headers: Record<string, string> = {}) {
  const leaving = new AbortController();
  await vi.waitFor(
    async () => {
      const response = await inspected.ask("live", { headers, signal: leaving.signal });
      expect(response.status).toBe(200);
    },
    { timeout: 20_000 },
  );
  return { close: () => leaving.abort() };
}

/** Makes a thousand calls at a time, which fill what the connection itself holds. */
async function flood({ gateway: { executor } }: InspectedGateway, thousands: number): Promise<void> {
  const wide = "x".repeat(150);
  for (let round = 0; round < thousands; round++) {
    for (let at = 0; at < 1_000; at++)
      await executor.execute("desk.echo", 1, { requestId: `${wide}${round}.${at}` });
    await sleep(60);
  }
}

const OPERATOR: Viewer = { identity: undefined, isOperator: true, isAuthOn: false, isCurrent: () => true };

function feedsOf({ gateway, loaded }: InspectedGateway, longestMs?: number) {
  const log = new CallLog(createObserver());
  const write = (event: LiveEvent): string => `${JSON.stringify(event)}\n`;
  return { log, feeds: new LiveFeeds({ log, gateway, loaded: () => loaded, write, longestMs }) };
}

/** What a server sends that answers one request. */
async function answered(answer: (response: ServerResponse) => void): Promise<string> {
  const server = createServer((_, response) => answer(response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    return await (await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)).text();
  } finally {
    server.close();
  }
}

async function slowPage(port: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  await new Promise((resolve) => socket.once("connect", resolve));
  socket.write("GET /inspect/api/live HTTP/1.1\r\nhost: localhost\r\n\r\n");
  // It is let in by the time that something comes; what that is stays unread.
  await new Promise((resolve) => socket.once("readable", resolve));
  socket.pause();
  return socket;
}

/** Counts what a page is told from now on. */
function readOn(socket: Socket) {
  const told = { rows: 0, dropped: 0, events: 0, running: new Set<number>() };
  let rest = "";
  socket.setEncoding("utf8");
  socket.on("data", (chunk: string) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines.filter((one) => one.startsWith('{"type":"calls"'))) {
      const event = JSON.parse(line) as Extract<LiveEvent, { readonly type: "calls" }>;
      told.events += 1;
      told.rows += event.rows.length;
      told.dropped = event.dropped;
      for (const { seq, outcome } of event.rows) {
        if (outcome === undefined) told.running.add(seq);
        else told.running.delete(seq);
      }
    }
  });
  socket.resume();
  return told;
}
