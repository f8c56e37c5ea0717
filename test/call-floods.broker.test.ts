import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it, vi } from "vitest";
import { createRemoteRegistry } from "../src/call/index.ts";
import { answer, CAP, request, say, since, useAttackedBus } from "./attacked-bus.ts";
import { cpuMs } from "./cpu-ms.ts";
import { sleep } from "./make-operation.ts";
import { natsSuite } from "./nats-server.ts";

const DEEP = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;

const NOISE: Readonly<Record<string, string | Uint8Array>> = {
  "no JSON": "{",
  nothing: "",
  "a JSON value that is no object": "1",
  "text that is not UTF-8": Uint8Array.of(0x7b, 0xff, 0xfe, 0x7d),
  "binary noise": Uint8Array.from({ length: 5_000 }, (_, n) => (n * 7_919) % 256),
  "100,000 levels": `{"v":1,"event":${DEEP}}`,
  "an input of 100,000 levels": `{"v":1,"event":{"type":"call.requested","requestId":"r","operationId":"a.echo","input":${DEEP}}}`,
  "a request id of 900 kB": say({ event: request({ requestId: "x".repeat(900_000) }) }),
  "an operation id of 900 kB": say({ event: request({ operationId: "x".repeat(900_000) }) }),
  "an unknown event": say({ event: { type: "call.hacked", requestId: "r" } }),
  "an event of the other side": answer("r", 1),
  "another version": JSON.stringify({ v: 2, event: request() }),
  "a key called __proto__":
    '{"v":1,"__proto__":{"event":{}},"event":{"__proto__":{"type":"call.requested"},"requestId":"r"}}',
  "a marked value that is none": say({ event: request({ input: { $waybill: ["date", {}] } }) }),
  "a bigint of a million digits": say({
    event: request({ input: { $waybill: ["bigint", "9".repeat(900_000)] } }),
  }),
  "the first byte of a chunk": Uint8Array.of(1),
  "a chunk with a key that is longer than itself": Uint8Array.of(
    1,
    255,
    255,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
  ),
};

/** The chunks of a message as they cross the wire: a mark, the key and its length, the number of the chunk, the length of all, the bytes. */
function toChunks(key: string, bytes: Uint8Array, maxBytes: number): Uint8Array[] {
  const head = 11 + key.length;
  return Array.from({ length: Math.ceil(bytes.length / (maxBytes - head)) }, (_, index) => {
    const chunk = Buffer.alloc(head);
    chunk.writeUInt8(1, 0);
    chunk.writeUInt16BE(key.length, 1);
    chunk.write(key, 3);
    chunk.writeUInt32BE(index, 3 + key.length);
    chunk.writeUInt32BE(bytes.length, 7 + key.length);
    return Buffer.concat([chunk, bytes.subarray(index * (maxBytes - head), (index + 1) * (maxBytes - head))]);
  });
}

/** Bytes of buffers in use, once what nobody holds is gone. */
async function buffersInUse(): Promise<number> {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  for (let n = 0; n < 3; n++) {
    await sleep(5);
    collect();
  }
  return process.memoryUsage().arrayBuffers;
}

natsSuite("a flood on the broker", () => {
  const attacked = useAttackedBus();

  it.each(Object.keys(NOISE))(
    "Call: %s, on every subject of the protocol, is counted and nothing else",
    async (name) => {
      const { asking, answering, attacker } = attacked();
      const noise = NOISE[name] ?? "";
      const peer = await attacked().peerOfService();
      const [asked, answered] = [since(asking), since(answering)];
      const { inbox, finish } = await attacked().overhearSlow();
      const own = inbox.split(".").at(-1);
      for (const to of [
        "call._.a.echo",
        "stop._.a.echo",
        `peer.${peer}`,
        `peer.${own}`,
        "beat.x",
        "service.x",
        "who",
      ]) {
        attacker.publish(`waybill.${to}`, noise, { reply: "_INBOX.attacker.x" });
      }
      attacker.publish(`${inbox}.${crypto.randomUUID()}`, noise);
      expect((await finish()).data).toBe("true");
      await attacked().survives();
      const counted = Object.values(answered()).reduce((sum, count) => sum + count, 0);
      expect(counted).toBeGreaterThanOrEqual(3);
      expect(asked().forged).toBe(1);
      expect(({} as Record<string, unknown>)["event"]).toBeUndefined();
    },
  );

  it("Call: noise by the private path itself is counted, and the answer after it is the answer", async () => {
    const { asking, map } = attacked();
    const grown = since(asking);
    const small = Object.values(NOISE).filter(({ length }) => length > 0 && length < 500_000);
    await attacked().answerEvil((requestId) => [
      ...small,
      ...["a..b", ".", "x"].map((peer) => say({ taken: "running", peer })),
      say({ event: request() }),
      answer(requestId, "true"),
    ]);
    expect((await map.call("evil.x", 1)).data).toBe("true");
    expect((grown().malformed ?? 0) + (grown().unexpected ?? 0)).toBeGreaterThanOrEqual(small.length - 2);
    await attacked().survives();
  });

  it("Call: a flood of credit makes no stream run over the broker or the others", async () => {
    const { attacker, handler } = attacked();
    const reply = `_INBOX.${crypto.randomUUID()}.1`;
    let received = 0;
    attacker.subscribe(reply, { callback: () => void received++ });
    const event = request({ operationId: "a.count", credit: 2 ** 31 - 1 });
    attacker.publish("waybill.call._.a.count", say({ event }), { reply });
    const { requestId } = event;
    const credit = say({ event: { type: "call.credit", requestId, credit: 2 ** 31 - 1 }, line: reply });
    for (let n = 0; n < 5_000; n++) attacker.publish("waybill.stop._.a.count", credit);
    const start = cpuMs();
    await attacked().survives();
    expect(cpuMs() - start).toBeLessThan(2_000);
    attacker.publish(
      "waybill.stop._.a.count",
      say({ event: { type: "call.aborted", requestId }, line: reply }),
    );
    await vi.waitFor(() => expect(handler.running).toBe(0), 20_000);
    expect(received).toBeGreaterThan(10);
  });

  it("Call: inputs that are announced and never sent take room for a while, not for ever", async () => {
    const { answering, attacker, handler, map } = attacked();
    const grown = since(answering);
    let refused = 0;
    attacker.subscribe("_INBOX.attacker.*", {
      callback: (_, message) => void (message.string().includes("call.error") && refused++),
    });
    for (let n = 0; n < 2_000; n++) {
      const head = say({ event: request(), inputBytes: n % 2 === 0 ? 1 : CAP });
      attacker.publish("waybill.call._.a.echo", head, { reply: `_INBOX.attacker.${n}` });
    }
    await attacked().survives();
    expect(grown().overLimit).toBeGreaterThan(0);
    const large = "x".repeat(CAP - 10_000);
    await vi.waitFor(async () => expect((await map.call("a.echo", large)).data).toBe(large), 20_000);
    await vi.waitFor(() => expect(refused).toBe(2_000), 20_000);
    expect(handler.running).toBe(0);
  });

  it("Call: chunks in the wrong order are refused, and those that nobody waits for hold no memory", async () => {
    const { answering, attacker } = attacked();
    const grown = since(answering);
    const peer = await attacked().peerOfService();
    const replies: string[] = [];
    const reply = "_INBOX.attacker.chunks";
    attacker.subscribe(reply, { callback: (_, message) => void replies.push(message.string()) });
    attacker.publish("waybill.call._.a.echo", say({ event: request(), inputBytes: 5_000 }), { reply });
    await vi.waitFor(() => expect(replies).toHaveLength(1), 20_000);
    const [first, , third] = toChunks(reply, new Uint8Array(5_000), 1_000);
    for (const chunk of [first, third]) attacker.publish(`waybill.peer.${peer}`, chunk as Uint8Array);
    await vi.waitFor(() => expect(replies[1]).toContain("UNAVAILABLE"), 20_000);
    const before = await buffersInUse();
    for (let n = 0; n < 1_000; n++) {
      const [chunk] = toChunks(`_INBOX.none.${n}`, new Uint8Array(2 ** 17), 50_000);
      attacker.publish(`waybill.peer.${peer}`, chunk as Uint8Array);
    }
    await attacked().survives();
    expect((await buffersInUse()) - before).toBeLessThan(10_000_000);
    expect(grown().gaps).toBeGreaterThanOrEqual(1);
  });

  it("Call: floods of services and huge notices leave a directory that is bounded and works", async () => {
    const { asking, attacker } = attacked();
    const remote = await createRemoteRegistry(asking, { limits: { services: 500 } });
    const grown = since(asking);
    const notice = (serviceId: string, operations: unknown) =>
      say({ service: { serviceId, name: "evil", operations }, peer: "_.evil" });
    for (let n = 0; n < 10_000; n++) attacker.publish(`waybill.service._.s${n}`, notice(`s${n}`, []));
    const huge = new TextEncoder().encode(notice("huge", ["x".repeat(CAP)]));
    for (const chunk of toChunks("huge", huge, 500_000)) attacker.publish("waybill.service._.huge", chunk);
    const bad = [
      notice("", []),
      notice("x".repeat(101), []),
      notice("y", "no list"),
      say({ service: 1 }),
      say({}),
    ];
    for (const text of bad) attacker.publish("waybill.service._.bad", text);
    for (let n = 0; n < 500; n++) {
      const [first] = toChunks(`k${n}`, new Uint8Array(100_000), 10_000);
      attacker.publish("waybill.service._.parts", first as Uint8Array);
    }
    await attacked().survives();
    expect(remote.services.length).toBeLessThanOrEqual(500);
    expect(grown().malformed).toBeGreaterThanOrEqual(bad.length);
    expect(grown().oversized).toBeGreaterThanOrEqual(1);
    expect(grown().overLimit).toBeGreaterThan(1_000);
    expect((await remote.execute("a.echo", 1)).data).toBe(1);
    await vi.waitFor(() => expect(remote.services.length).toBeLessThanOrEqual(1), 20_000);
    await remote.close();
  });
});
