import type { NatsConnection } from "@nats-io/transport-node";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { until } from "../../../test/mcp-requests.ts";
import { type NatsServer, natsSuite, startNats } from "../../../test/nats-server.ts";
import { connect } from "../../call/nats/nats-packages.ts";
import { EventStream } from "../../http/event-stream.ts";
import type { HttpAnswer, HttpRequest } from "../../http/exchange.ts";
import { SealingKeys } from "../../mcp/server/sealing-keys.ts";
import { LED_LIMITS } from "./link-frames.ts";
import { type LedAsk, ReplicaLink } from "./replica-link.ts";

const MOST_LED = LED_LIMITS.requests;

const KEY = "the-key-of-all-replicas-00000000";
const here = new AbortController().signal;
const ask = (given: Partial<LedAsk> = {}): LedAsk => ({
  method: "POST",
  path: "/mcp",
  query: "a=1",
  origin: "http://localhost",
  headers: { authorization: "Bearer the-token-of-ann", "x-more": "more" },
  body: Buffer.from("what was posted"),
  owner: "ann",
  ...given,
});

natsSuite("the link between replicas", () => {
  let broker: NatsServer;
  const closing: (() => Promise<unknown>)[] = [];
  let spaces = 0;

  beforeAll(async () => {
    broker = await startNats();
  });
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });
  afterAll(() => broker.stop());

  const join = async (
    replica: string,
    handle: (request: HttpRequest) => Promise<HttpAnswer>,
    { space = `space ${spaces}`, key = KEY } = {},
  ) => {
    const connection: NatsConnection = await connect({ servers: broker.url });
    const keys = new SealingKeys(key);
    const warnings: string[] = [];
    const link = new ReplicaLink(
      { connection, space, inboxPrefix: undefined },
      { replica, keys: () => keys, handle, onWarning: (message) => void warnings.push(message) },
    );
    await link.start();
    closing.push(async () => {
      await link.close();
      await connection.close();
    });
    return { link, connection, warnings };
  };
  const nothing = async (): Promise<HttpAnswer> => ({ status: 204, headers: {}, body: undefined });
  const answered = async (link: ReplicaLink, replica: string, given?: Partial<LedAsk>) => {
    const led = await link.lead(replica, ask(given), here);
    if (led.state !== "answered") throw new Error(led.state);
    return led.answer;
  };

  it("X-4 brings a request with all it says to one replica, and its answer back, each sealed", async () => {
    spaces += 1;
    const seen: unknown[] = [];
    const one = await join("aaaaaaaa", nothing);
    await join("bbbbbbbb", async (request) => {
      const { method, path, query, origin, isLed } = request;
      const body = Buffer.from(await request.body(100)).toString();
      const headers = [request.header("authorization"), request.header("nothing")];
      seen.push({ method, path, query, origin, isLed, body, headers });
      return { status: 201, headers: { "x-said": ["a", "b"] }, body: "the answer" };
    });
    const overheard: string[] = [];
    const stranger = await connect({ servers: broker.url });
    closing.push(() => stranger.close());
    stranger.subscribe(">", {
      callback: (_, { data }) => void overheard.push(Buffer.from(data).toString("latin1")),
    });
    await stranger.flush();
    expect(await answered(one.link, "bbbbbbbb")).toEqual({
      status: 201,
      headers: { "x-said": ["a", "b"] },
      body: "the answer",
    });
    expect(seen).toEqual([
      {
        method: "POST",
        path: "/mcp",
        query: "a=1",
        origin: "http://localhost",
        isLed: true,
        body: "what was posted",
        headers: ["Bearer the-token-of-ann", undefined],
      },
    ]);
    await until(() => overheard.length >= 4);
    for (const text of overheard) expect(text).not.toMatch(/token-of-ann|posted|answer/);
    expect(one.link.running).toEqual({ out: 0, in: 0 });
  });

  it("X-4 carries bodies and answers that are larger than a message of the broker", async () => {
    spaces += 1;
    const large = Buffer.alloc(3_500_000, "é");
    const one = await join("aaaaaaaa", nothing);
    await join("bbbbbbbb", async (request) => {
      const body = Buffer.from(await request.body(1e8));
      return { status: 200, headers: {}, body: body.equals(large) ? large.toString() : "another" };
    });
    const { body } = await answered(one.link, "bbbbbbbb", { body: large });
    expect(body === large.toString()).toBe(true);
  });

  it("X-4 carries a stream no faster than it is read, and ends it where its reader leaves", async () => {
    spaces += 1;
    let given = 0;
    let left = false;
    const one = await join("aaaaaaaa", nothing);
    await join("bbbbbbbb", async () => ({
      status: 200,
      headers: { "content-type": "text/event-stream" },
      body: (async function* () {
        try {
          for (;;) {
            given += 1;
            yield `${given} ${"x".repeat(10_000)}\n`;
          }
        } finally {
          left = true;
        }
      })(),
    }));
    const { body } = await answered(one.link, "bbbbbbbb");
    const texts = (body as AsyncIterable<string>)[Symbol.asyncIterator]();
    await until(() => given > 20);
    let all = "";
    while (all.length < 3_000_000) all += (await texts.next()).value;
    const numbers = [...all.matchAll(/^(\d+) /gm)].map(([, number]) => Number(number));
    expect(numbers).toEqual(numbers.map((_, at) => at + 1));
    // What is on its way is bounded, however long nobody reads.
    expect(given * 10_000 - all.length).toBeLessThan(1_000_000);
    await texts.return?.();
    await until(() => left);
    expect(one.link.running.out).toBe(0);
  });

  it("X-4 ends what runs at the other replica where the client leaves before the answer", async () => {
    spaces += 1;
    const one = await join("aaaaaaaa", nothing);
    let aborted = false;
    let begun = false;
    await join("bbbbbbbb", async (request) => {
      begun = true;
      await new Promise<void>((resolve) => request.signal.addEventListener("abort", () => resolve()));
      aborted = true;
      return nothing();
    });
    const leaving = new AbortController();
    const led = one.link.lead("bbbbbbbb", ask(), leaving.signal);
    await until(() => begun);
    leaving.abort();
    expect(await led).toEqual({ state: "unreachable" });
    await until(() => aborted);
  });

  it("X-4 says at once that a replica is not there, and breaks off a stream whose replica goes", async () => {
    spaces += 1;
    const one = await join("aaaaaaaa", nothing);
    expect(await one.link.lead("cccccccc", ask(), here)).toEqual({ state: "unreachable" });
    const stream = new EventStream({ maxBytes: 1_000 });
    const two = await join("bbbbbbbb", async () => ({ status: 200, headers: {}, body: stream }));
    const { body } = await answered(one.link, "bbbbbbbb");
    const texts = (body as AsyncIterable<string>)[Symbol.asyncIterator]();
    stream.push("first");
    expect((await texts.next()).value).toBe("first");
    const broken = expect(texts.next()).rejects.toThrow("cannot be reached any more");
    await two.link.close();
    await broken;
  });

  it("X-4 hears nothing of who has another key, of another gateway, or of a copy of what was sent", async () => {
    spaces += 1;
    let heard = 0;
    const handle = async (): Promise<HttpAnswer> => {
      heard += 1;
      return nothing();
    };
    const one = await join("aaaaaaaa", nothing);
    await join("bbbbbbbb", handle);
    const forger = await join("dddddddd", nothing, { key: "another-key-of-all-replicas-0000" });
    const other = await join("eeeeeeee", nothing, { space: "another gateway" });
    expect(await other.link.lead("bbbbbbbb", ask(), here)).toEqual({ state: "unreachable" });
    expect(await forger.link.lead("bbbbbbbb", ask(), here)).toEqual({ state: "unreachable" });
    const sent: { subject: string; data: Uint8Array }[] = [];
    const stranger = await connect({ servers: broker.url });
    closing.push(() => stranger.close());
    stranger.subscribe("waybill.replica.>", {
      callback: (_, { subject, data }) => void sent.push({ subject, data }),
    });
    const replies: number[] = [];
    stranger.subscribe("stolen", { callback: (_, { data }) => void replies.push(data.length) });
    await stranger.flush();
    await answered(one.link, "bbbbbbbb");
    await until(() => sent.length > 0);
    for (const { subject, data } of sent) stranger.publish(subject, data, { reply: "stolen" });
    for (const { subject } of sent) stranger.publish(subject, Buffer.from("nonsense"), { reply: "stolen" });
    // A copy for another replica is none for this one.
    await answered(one.link, "bbbbbbbb");
    expect([heard, replies]).toEqual([2, []]);
  });

  it("X-4 leads as many requests as there is room for, a quarter for one caller, and no more", async () => {
    spaces += 1;
    const leaving = new AbortController();
    const one = await join("aaaaaaaa", nothing);
    await join("bbbbbbbb", (request) => {
      return new Promise((resolve) =>
        request.signal.addEventListener("abort", () =>
          resolve({ status: 204, headers: {}, body: undefined }),
        ),
      );
    });
    const share = MOST_LED / 4;
    const lead = (owner: string) => one.link.lead("bbbbbbbb", ask({ owner }), leaving.signal);
    const running = ["ann", "ben", "cat", "dan"].flatMap((owner) =>
      Array.from({ length: share }, () => lead(owner)),
    );
    await until(() => one.link.running.out === MOST_LED);
    expect(await lead("eve")).toEqual({ state: "full" });
    leaving.abort();
    await Promise.all(running);
    expect(one.link.running.out).toBe(0);
    const again = new AbortController();
    const own = Array.from({ length: share }, () => one.link.lead("bbbbbbbb", ask(), again.signal));
    await until(() => one.link.running.out === share);
    expect(await one.link.lead("bbbbbbbb", ask(), again.signal)).toEqual({ state: "full" });
    again.abort();
    await Promise.all(own);
  });
});
