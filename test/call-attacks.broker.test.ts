import { expect, it, vi } from "vitest";
import { answer, request, say, since, useAttackedBus } from "./attacked-bus.ts";
import { endsAtOnce } from "./lateness.ts";
import { rejection, sleep, until } from "./make-operation.ts";
import { natsSuite } from "./nats-server.ts";

natsSuite("an attacker on the broker", () => {
  const attacked = useAttackedBus();

  it("RE-29 an answer with the right request id on any other subject settles nothing", async () => {
    const { asking, attacker } = attacked();
    const grown = since(asking);
    const { requestId, inbox, subject, finish } = await attacked().overhearSlow();
    const guesses = Array.from({ length: 20 }, () => `${inbox}.${crypto.randomUUID()}`);
    const peer = `waybill.peer._.${inbox.split(".").at(-1)}`;
    for (const to of [...guesses, `${inbox}.*`, "_INBOX.x.y", subject, peer]) {
      attacker.publish(to, answer(requestId, "forged"));
    }
    expect((await finish()).data).toBe("true");
    expect(grown().forged).toBeGreaterThanOrEqual(20);
    await attacked().survives();
  });

  it("RE-29 whoever holds the path of one call cannot settle another with it", async () => {
    const { map } = attacked();
    const { requestId, finish } = await attacked().overhearSlow();
    await attacked().answerEvil(() => [answer(requestId, "forged")]);
    const controller = new AbortController();
    const evil = rejection(map.call("evil.x", 1, { signal: controller.signal }));
    await until(() => map.counters.forged > 0);
    expect(await endsAtOnce(evil)).toBe(false);
    controller.abort();
    expect(await evil).toMatchObject({ code: "ABORTED" });
    expect((await finish()).data).toBe("true");
    expect(map.counters.forged).toBe(1);
    await attacked().survives();
  });

  it("Call: a second answer, a late one and an error after the answer change nothing and are counted", async () => {
    const { asking, map } = attacked();
    const grown = since(asking);
    const error = { code: "X", message: "", retryable: false, correctable: false };
    await attacked().answerEvil((requestId) => [
      answer(requestId, "first"),
      answer(requestId, "second"),
      say({ event: { type: "call.error", requestId, error } }),
    ]);
    expect((await map.call("evil.x", 1)).data).toBe("first");
    await attacked().survives();
    expect(grown()).toEqual({ late: 2 });
  });

  it("Call: a request that is replayed runs once, by the same reply path and by another", async () => {
    const { answering, attacker, handler, ran } = attacked();
    const grown = since(answering);
    const { data, replyTo, subject, finish } = await attacked().overhearSlow();
    attacker.publish(subject, data, { reply: replyTo });
    const replay = await attacker.request(subject, data, { timeout: 60_000 });
    expect(replay.json()).toMatchObject({ event: { type: "call.error", error: { code: "CONFLICT" } } });
    expect((await finish()).data).toBe("true");
    attacker.publish(subject, data, { reply: replyTo });
    await attacked().survives();
    expect([ran.slow, grown().duplicate, handler.counters.duplicate]).toEqual([1, 1, 2]);
  });

  it("Call: a replay that says it is a retry does not run what is not idempotent", async () => {
    const { attacker, ran } = attacked();
    const event = request({ operationId: "a.slow", attempt: 2 });
    const reply = await attacker.request("waybill.call._.a.slow", say({ event }), { timeout: 60_000 });
    expect(reply.json()).toMatchObject({ event: { error: { code: "CONFLICT" } } });
    expect(ran.slow).toBe(0);
    await attacked().survives();
  });

  it.each([
    "waybill.call._.a.echo",
    "waybill.who",
    "waybill.beat.x",
    "waybill.service.x",
    "waybill.peer.x",
    "$JS.API.STREAM.DELETE.x",
    "$SYS.REQ.SERVER.PING",
  ])("Call: an answer is never sent to %s", async (reply) => {
    const { answering, attacker } = attacked();
    const grown = since(answering);
    const heard: string[] = [];
    if (!reply.startsWith("$SYS")) {
      attacker.subscribe(reply, { callback: (_, message) => void heard.push(message.string()) });
    }
    await attacker.flush();
    const sent = [say({ event: request() }), say({ event: { ...request(), operationId: 1 } })];
    for (const text of sent) attacker.publish("waybill.call._.a.echo", text, { reply });
    attacker.publish("waybill.who", "", { reply });
    await attacker.flush();
    await answering.connection.flush();
    await sleep(20);
    expect(heard.filter((text) => text.length > 1 && !sent.includes(text))).toEqual([]);
    expect(grown().malformed).toBeGreaterThanOrEqual(2);
    await attacked().survives();
  });

  it("Call: reply paths that are no subjects crash nobody", async () => {
    const { attacker } = attacked();
    for (const reply of ["a..b", "a.", ".a", "x.*", ">", "*", "x".repeat(500), "é"]) {
      const heads = [
        { event: request() },
        { event: request(), inputBytes: 10, beats: true },
        { event: { requestId: "r" } },
      ];
      for (const head of heads) attacker.publish("waybill.call._.a.echo", say(head), { reply });
    }
    await attacked().survives();
  });

  it("Call: a call cannot be given up by somebody who knows its request id alone", async () => {
    const { answering, attacker, ran } = attacked();
    const grown = since(answering);
    const { requestId, finish } = await attacked().overhearSlow();
    const event = { type: "call.aborted", requestId, reason: "aborted" };
    for (const line of [undefined, requestId, "_INBOX.x.y", `_INBOX.${crypto.randomUUID()}.${requestId}`]) {
      attacker.publish("waybill.stop._.a.slow", say({ event, line }));
    }
    attacker.publish("waybill.stop._.a.slow", say({ event: { ...event, type: "call.credit", credit: 1 } }));
    expect((await finish()).data).toBe("true");
    expect([ran.aborted, ran.slow, grown().malformed]).toEqual([0, 1, 2]);
    await attacked().survives();
  });

  it.each([
    "a.>",
    "a.b c",
    "a.*",
    "*.*",
    ">",
    "a.b\r\nPUB x 1\r\nx",
    "a",
    "",
    ".",
    "a..",
    "a.\u0000",
    "a.é",
    "$SYS.x",
  ])("Call: %j is no operation, and nothing is sent for it", async (operationId) => {
    const { asking, answering, attacker, map } = attacked();
    const heard = vi.fn();
    const tap = attacker.subscribe("waybill.call.>", { callback: heard });
    await attacker.flush();
    expect(await rejection(map.call(operationId, 1))).toMatchObject({ code: "OPERATION_NOT_FOUND" });
    await asking.connection.flush();
    await attacker.flush();
    expect(heard).not.toHaveBeenCalled();
    tap.unsubscribe();
    const grown = since(answering);
    attacker.publish("waybill.call._.a.echo", say({ event: request({ operationId }) }), {
      reply: "_INBOX.attacker.y",
    });
    await attacked().survives();
    expect(grown()).toEqual({ forged: 1 });
  });
});
