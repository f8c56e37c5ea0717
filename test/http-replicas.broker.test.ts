import { afterAll, beforeAll, expect, it } from "vitest";
import { type NatsServer, natsSuite, startNats } from "./nats-server.ts";
import { TOKENS } from "./replica-desk.ts";
import { type BrokerReplica, startReplica, startReplicaProcess, watchStored } from "./replicas.ts";

natsSuite("subscriptions over HTTP at replicas that share a broker", () => {
  let broker: NatsServer;
  let names = 0;

  beforeAll(async () => {
    broker = await startNats({ jetstream: true });
  });
  afterAll(() => broker.stop());

  const startTwo = async (): Promise<[BrokerReplica, BrokerReplica]> => {
    const config = { name: `desk ${++names}`, bus: { nats: broker.url } };
    return await Promise.all([startReplica("one", config), startReplica("two", config)]);
  };
  const read = (url: string, last?: string, who: keyof typeof TOKENS = "ann") =>
    fetch(`${url}/api/desk/count`, {
      method: "POST",
      body: "{}",
      headers: {
        "content-type": "application/json",
        accept: "text/event-stream",
        authorization: `Bearer ${TOKENS[who]}`,
        ...(last !== undefined && { "last-event-id": last }),
      },
    });
  const idsOf = (text: string): string[] => [...text.matchAll(/^id: (.*)$/gm)].map(([, id = ""]) => id);
  const valuesOf = (text: string): number[] => [...text.matchAll(/"n":(\d)/g)].map(([, n]) => Number(n));
  /** Reads until there are so many events, and leaves; gives their ids. */
  const readSome = async (answer: Response, count: number): Promise<string[]> => {
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    const decoder = new TextDecoder();
    let text = "";
    while (idsOf(text).length < count) {
      const { value, done } = await reader.read();
      if (done) throw new Error(`The stream ended: ${text}`);
      text += decoder.decode(value, { stream: true });
    }
    await reader.cancel();
    return idsOf(text);
  };

  it("RE-28 are led to the living replica that runs them, from any event on, for their caller alone", async () => {
    const [one, two] = await startTwo();
    const [first = "", second = ""] = await readSome(await read(one.url), 2);
    expect(first).toMatch(new RegExp(`^${one.name}-[\\w-]{24}:0$`));
    expect((await read(two.url, second, "ben")).status).toBe(410);
    expect(await readSome(await read(two.url, first), 1)).toEqual([second]);
    const rest = (await read(two.url, first)).text();
    one.release();
    const text = await rest;
    expect([valuesOf(text), text.match(/event: done/g)?.length]).toEqual([[2, 3], 1]);
    const last = idsOf(text).at(-1);
    expect([(await read(two.url, last)).status, (await read(one.url, last)).status]).toEqual([204, 204]);
    const call = await fetch(`${two.url}/call`, {
      method: "POST",
      headers: {
        accept: "text/event-stream",
        "content-type": "application/json",
        authorization: `Bearer ${TOKENS.ann}`,
        "last-event-id": second,
      },
      body: JSON.stringify({ operation: "desk.count" }),
    });
    expect(valuesOf(await call.text())).toEqual([3]);
  });

  it("RE-28 are given to their end where their replica has stopped, and no further", async () => {
    const [one, two] = await startTwo();
    const [first = ""] = await readSome(await read(one.url), 2);
    await one.close();
    const text = await (await read(two.url, first)).text();
    expect(valuesOf(text)[0]).toBe(2);
    expect(text).toMatch(/event: error\ndata: .*UNAVAILABLE/);
    expect((await read(two.url, idsOf(text).at(-1))).status).toBe(204);
    expect((await read(two.url, first, "ben")).status).toBe(410);
  });

  it("RE-28 give what is kept of a replica that was killed, and say that the rest is lost", async () => {
    const name = `desk ${++names}`;
    const [killed, two] = await Promise.all([
      startReplicaProcess(broker.url, name),
      startReplica("two", { name, bus: { nats: broker.url } }),
    ]);
    const stored = await watchStored(broker.url);
    const [first = "", second] = await readSome(await read(killed.url), 2);
    await stored(`${second}`);
    await killed.kill();
    const text = await (await read(two.url, first)).text();
    expect(valuesOf(text)).toEqual([2]);
    expect(text).toMatch(/event: error\ndata: .*replica_lost/);
  });
});
