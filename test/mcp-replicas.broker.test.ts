import { connect } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startBalancer } from "./balancer.ts";
import { atEnd } from "./gateway-sources.ts";
import { call, type HeaderFields, INITIALIZE } from "./mcp-requests.ts";
import { type NatsServer, natsSuite, startNats } from "./nats-server.ts";
import { TOKENS } from "./replica-desk.ts";
import {
  ANSWER,
  type BrokerReplica,
  connectFirst,
  connectSecond,
  type SdkCaller,
  startReplica,
  startReplicaProcess,
  watchStored,
} from "./replicas.ts";

const CLIENTS = {
  "SDK 1.32": connectFirst,
  "SDK 2.4, 2025": (url: string) => connectSecond(url, "legacy"),
  "SDK 2.4, 2026-07-28": (url: string) => connectSecond(url, "auto"),
} satisfies Record<string, (url: string) => Promise<SdkCaller>>;

natsSuite("MCP at replicas that share nothing but a broker", () => {
  let broker: NatsServer;
  let names = 0;

  beforeAll(async () => {
    broker = await startNats({ jetstream: true });
  });
  afterAll(() => broker.stop());

  /** Starts replicas of a gateway of its own, with no key in their config. */
  const startReplicas = async (count: number): Promise<readonly BrokerReplica[]> => {
    const config = { name: `desk ${++names}`, bus: { nats: broker.url } };
    return await Promise.all(Array.from({ length: count }, (_, at) => startReplica(`r${at}`, config)));
  };

  describe.each(Object.entries(CLIENTS))("%s", (_, begin) => {
    it("Mcp: begins at one of them and calls at all, through a balancer without retries", async () => {
      const balancer = await startBalancer(await startReplicas(3), { retries: false });
      const client = await begin(balancer.url);
      for (let i = 0; i < 20; i++) expect(await client.call("desk_who")).toMatchObject({ who: "ann" });
      for (const count of balancer.answered) expect(count).toBeGreaterThan(0);
    });

    it("Mcp: has its questions answered wherever the answer arrives, each handler run once", async () => {
      const replicas = await startReplicas(3);
      const balancer = await startBalancer(replicas, { retries: false });
      const client = await begin(balancer.url);
      for (let i = 0; i < 20; i++) expect(await client.call("desk_ask")).toMatchObject({ colour: "green" });
      const asked = replicas.map((replica) => replica.asked);
      expect(asked.reduce((sum, count) => sum + count, 0)).toBe(20);
      for (const count of asked) expect(count).toBeGreaterThan(0);
    });
  });

  const HEADERS = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    authorization: `Bearer ${TOKENS.ann}`,
  };
  const send = (url: string, body: object | undefined, headers: HeaderFields = {}, method = "POST") =>
    fetch(`${url}/mcp`, {
      method,
      headers: { ...HEADERS, ...headers },
      ...(body && { body: JSON.stringify(body) }),
    });
  /** Calls a tool as a 2026-07-28 client that can be asked. */
  const callModern = async (url: string, name: string, given: object = {}, headers: HeaderFields = {}) => {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} } },
    };
    const message = { ...call(3, name), params: { name, arguments: {}, ...given, _meta } };
    const own = { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": name };
    const answer = await send(url, message, { ...own, ...headers });
    return { status: answer.status, body: (await answer.json()) as ModernAnswer };
  };
  interface ModernAnswer {
    readonly result?: { readonly requestState?: string; readonly structuredContent?: unknown };
    readonly error?: { readonly code: number; readonly data?: { readonly reason?: string } };
  }
  const answers = { colour: ANSWER };

  it("X-4 checks at the replica that holds a waiting call whose answer is brought there", async () => {
    const [one, two] = (await startReplicas(2)) as [BrokerReplica, BrokerReplica];
    const asked = await callModern(one.url, "desk_ask");
    const requestState = asked.body.result?.requestState ?? "";
    const given = { requestState, inputResponses: answers };
    const bens = await callModern(two.url, "desk_ask", given, { authorization: `Bearer ${TOKENS.ben}` });
    expect(bens.body.error).toMatchObject({ code: -32_602, data: { reason: "invalid_request_state" } });
    const nobody = await send(two.url, call(3, "desk_ask"), { authorization: "Bearer none-of-them-0001" });
    expect([nobody.status, one.asked]).toEqual([401, 0]);
    const anns = await callModern(two.url, "desk_ask", given);
    expect(anns.body.result?.structuredContent).toEqual({ colour: "green", at: "r0" });
    // What was answered once is not answered again.
    const again = await callModern(two.url, "desk_ask", given);
    expect([again.body.error?.data?.reason, one.asked, two.asked]).toEqual(["invalid_request_state", 1, 0]);
  });

  it("Mcp: says that nobody knows what a waiting call has done whose replica has gone", async () => {
    const [one, two] = (await startReplicas(2)) as [BrokerReplica, BrokerReplica];
    const asked = await callModern(one.url, "desk_ask");
    await one.close();
    const given = { requestState: asked.body.result?.requestState, inputResponses: answers };
    const answer = await callModern(two.url, "desk_ask", given);
    expect([answer.status, answer.body.error]).toMatchObject([
      200,
      { code: -32_603, data: { reason: "replica_lost" } },
    ]);
  });

  /** Opens a session of 2025-11-25 at a replica. */
  const open = async (url: string): Promise<HeaderFields> => {
    const opened = await send(url, INITIALIZE);
    await opened.text();
    const id = opened.headers.get("mcp-session-id") ?? "";
    return { "mcp-session-id": id, "mcp-protocol-version": "2025-11-25" };
  };
  /** Begins a call that reports and waits, reads the first event of its stream, and loses the stream; gives that event's id. */
  const loseStream = async (url: string, session: HeaderFields): Promise<string> => {
    const wait = call(2, "desk_wait");
    const params = { ...wait.params, _meta: { progressToken: 2 } };
    const stream = await send(url, { ...wait, params }, session);
    const reader = (stream.body as ReadableStream<Uint8Array>).getReader();
    const text = new TextDecoder().decode((await reader.read()).value);
    await reader.cancel();
    return /^id: (.*)$/m.exec(text)?.[1] ?? "";
  };
  const resume = (url: string, session: HeaderFields, last: string) =>
    send(url, undefined, { ...session, accept: "text/event-stream", "last-event-id": last }, "GET");

  it("Mcp: leads a client that comes back for a stream to the replica where its call runs", async () => {
    const [one, two] = (await startReplicas(2)) as [BrokerReplica, BrokerReplica];
    const session = await open(two.url);
    const last = await loseStream(one.url, session);
    const resumed = await resume(two.url, session, last);
    expect(resumed.status).toBe(200);
    one.release();
    const text = await resumed.text();
    expect(text).toContain('"waited":"r0"');
    // Each event once, at whichever replica.
    expect(text.match(/notifications\/progress/g)).toHaveLength(2);
    const bens = { ...session, authorization: `Bearer ${TOKENS.ben}` };
    expect((await resume(two.url, bens, last)).status).toBe(404);
  });

  it("Mcp: gives the rest of a stream whose replica has stopped, with how its calls ended", async () => {
    const [one, two] = (await startReplicas(2)) as [BrokerReplica, BrokerReplica];
    const session = await open(two.url);
    const last = await loseStream(one.url, session);
    const closing = one.close(20_000);
    one.release();
    await closing;
    const text = await (await resume(two.url, session, last)).text();
    expect(text).toContain('"waited":"r0"');
    expect(text.match(/notifications\/progress/g)).toHaveLength(2);
    // Each replica has it from then on.
    expect(await (await resume(two.url, session, last)).text()).toBe(text);
    const other = await open(two.url);
    expect((await resume(two.url, other, last)).status).toBe(410);
  });

  it("Mcp: tells what is kept of a replica that was killed, and of each call there that nobody knows what it has done", async () => {
    const name = `desk ${++names}`;
    const [killed, two] = await Promise.all([
      startReplicaProcess(broker.url, name),
      startReplica("two", { name, bus: { nats: broker.url } }),
    ]);
    const session = await open(two.url);
    const stored = await watchStored(broker.url);
    const last = await loseStream(killed.url, session);
    await stored("notifications/progress");
    const asked = await callModern(killed.url, "desk_ask");
    await killed.kill();
    const rest = await resume(two.url, session, last);
    expect(rest.status).toBe(200);
    const text = await rest.text();
    expect(text).toContain("notifications/progress");
    const answer = JSON.parse(/^data: (.*)$/m.exec(text.slice(text.lastIndexOf("event:")))?.[1] ?? "");
    expect(answer).toMatchObject({ id: 2, error: { code: -32_603, data: { reason: "replica_lost" } } });
    const given = { requestState: asked.body.result?.requestState, inputResponses: answers };
    const answered = await callModern(two.url, "desk_ask", given);
    expect(answered.body.error?.data?.reason).toBe("replica_lost");
  });

  it("X-4 ends a session at every replica, those included that have not seen it, and for its caller alone", async () => {
    const replicas = await startReplicas(3);
    const [one, two, three] = replicas as [BrokerReplica, BrokerReplica, BrokerReplica];
    const session = await open(one.url);
    const other = await open(one.url);
    const statusAt = async ({ url }: BrokerReplica, headers: HeaderFields): Promise<number> => {
      const answer = await send(url, call(2, "desk_who"), headers);
      await answer.text();
      return answer.status;
    };
    expect([await statusAt(one, session), await statusAt(two, session)]).toEqual([200, 200]);
    const bens = { ...session, authorization: `Bearer ${TOKENS.ben}` };
    expect((await send(two.url, undefined, bens, "DELETE")).status).toBe(404);
    expect((await send(two.url, undefined, session, "DELETE")).status).toBe(200);
    for (const replica of replicas) await expect.poll(() => statusAt(replica, session)).toBe(404);
    expect([await statusAt(three, other), await statusAt(three, session)]).toEqual([200, 404]);
  });

  it("Mcp: goes on with the stream for what belongs to no request where its replica has gone, and says that all may have changed", async () => {
    const [one, two] = (await startReplicas(2)) as [BrokerReplica, BrokerReplica];
    const session = await open(one.url);
    await one.close();
    const resumed = await resume(two.url, session, `1:${one.name}-_GET_stream`);
    expect(resumed.status).toBe(200);
    const reader = (resumed.body as ReadableStream<Uint8Array>).getReader();
    const text = new TextDecoder().decode((await reader.read()).value);
    expect(text).toContain("notifications/tools/list_changed");
    expect(text).toContain(`:${two.name}-_GET_stream`);
    await reader.cancel();
  });

  it("Mcp: asks the store nothing for an ordinary call of a session, at the replica that opened it and at another", async () => {
    const [one, two] = (await startReplicas(2)) as [BrokerReplica, BrokerReplica];
    const session = await open(one.url);
    const callAt = async (url: string, meta: object = {}) => {
      const who = call(2, "desk_who");
      const answer = await send(url, { ...who, params: { ...who.params, _meta: meta } }, session);
      expect(await answer.text()).toContain('"ann"');
    };
    const connection = await connect({ servers: broker.url });
    atEnd(() => connection.close());
    let messages = 0;
    connection.subscribe(">", { callback: () => void messages++ });
    await connection.flush();
    const countOf = async (run: () => Promise<void>): Promise<number> => {
      const before = messages;
      await run();
      await connection.flush();
      return messages - before;
    };
    const calls = async (): Promise<void> => {
      for (let i = 0; i < 200; i++) await callAt(i % 2 === 0 ? one.url : two.url);
    };
    // What is heard meanwhile are signs of life, and looks whether the store is there.
    expect(await countOf(calls)).toBeLessThan(150);
    const waiting = async (): Promise<void> => {
      const { body } = await callModern(one.url, "desk_ask");
      await callModern(two.url, "desk_ask", {
        requestState: body.result?.requestState,
        inputResponses: answers,
      });
    };
    expect(
      await countOf(async () => {
        for (let i = 0; i < 20; i++) await waiting();
      }),
    ).toBeGreaterThan(60);
  });
});
