import { expect, it, vi } from "vitest";
import { atEnd, loadedConfig, makeSource, reasonOf } from "../../../test/gateway-sources.ts";
import { query, rejection } from "../../../test/make-operation.ts";
import { natsSuite, startNats } from "../../../test/nats-server.ts";
import { handGateway } from "../../../test/served-gateway.ts";
import { serveCalls } from "../../call/call-handler.ts";
import { type CallObservation, createCounters } from "../../call/call-observer.ts";
import { connectNatsBus } from "../../call/nats/nats-bus.ts";
import type { Identity } from "../../core/access/identity.ts";
import { CallError } from "../../core/errors/errors.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { SecretMask } from "../../core/secrets/secret-mask.ts";
import { serveBus } from "../serve/serve-bus.ts";
import { budgetNotes } from "./bus-source.ts";

async function serve(url: string, name: string, ...operations: AnyOperation[]) {
  const bus = await connectNatsBus({ servers: url, reconnectTimeWait: 20, reconnectJitter: 0 });
  atEnd(() => bus.close());
  const registry = new OperationRegistry(operations);
  const handler = await serveCalls(registry, bus, { name });
  return Object.assign(registry, { leave: () => handler.drain({ timeoutMs: 0 }), bus });
}

natsSuite("operations on a bus as a source", () => {
  it("RE-30 mounts what others serve, follows what comes, and leaves out what is our own", async () => {
    const broker = await startNats();
    atEnd(() => broker.stop());
    const registry = await serve(
      broker.url,
      "other",
      query("a.x", () => "x"),
      query("b.x", () => "b"),
    );
    await serve(
      broker.url,
      "us",
      query("a.ours", () => "ours"),
      query("a.x", () => "x"),
    );
    const bus = { nats: broker.url, mount: ["a"], serveAs: "us" };
    const observed: CallObservation[] = [];
    const onBusCall = (call: CallObservation) => void observed.push(call);
    const { source } = makeSource(loadedConfig({ bus }), { onBusCall });
    await source.start();
    expect(source.state.status).toBe("up");
    expect(source.operations.map(({ id }) => id)).toEqual(["a.x"]);
    const here = new OperationRegistry();
    here.registerAll(source);
    expect((await here.execute("a.x")).data).toBe("x");
    expect(observed).toMatchObject([
      { end: "caller", type: "requested", operationId: "a.x", sentBytes: expect.any(Number) },
      { end: "caller", type: "responded", outcome: "ok", receivedBytes: expect.any(Number) },
    ]);
    registry.register(query("a.late", () => "late"));
    await vi.waitFor(() => expect(source.operations.map(({ id }) => id)).toEqual(["a.late", "a.x"]), 20_000);
    expect((await here.execute("a.late")).data).toBe("late");
    expect(source.report()).toMatchObject({ name: "bus", kind: "bus", target: broker.url, unusable: [] });
  });

  it("RE-29 notes which circuit is open, and that members are left out", async () => {
    const broker = await startNats();
    atEnd(() => broker.stop());
    const sick = query("a.sick", () => Promise.reject(new CallError("UNAVAILABLE", "Sick.")));
    const full = query("a.full", () => Promise.reject(new CallError("RESOURCE_EXHAUSTED", "Full.")));
    await serve(broker.url, "other", sick, full);
    const { source } = makeSource(loadedConfig({ bus: { nats: broker.url, mount: true } }));
    await source.start();
    await vi.waitFor(() => expect(source.operations).toHaveLength(2), 20_000);
    const here = new OperationRegistry();
    here.registerAll(source);
    const notesOf = (id: string) =>
      source.report().notes.flatMap(({ name, note }) => (name === id ? [note] : []));
    expect(source.report().notes).toEqual([]);
    await rejection(here.execute("a.full"));
    expect(notesOf("a.full")).toEqual(["A member that failed, or had no room, is left out for a while."]);
    await vi.waitFor(async () => {
      await Promise.all(Array.from({ length: 20 }, () => rejection(here.execute("a.sick"))));
      expect(notesOf("a.sick")).toContain(
        "Nothing but UNAVAILABLE was answered; calls are refused until one that tries it succeeds.",
      );
    }, 30_000);
    expect(source.report().bus).toMatchObject({ openCircuits: 1 });
  });

  it("RE-29 notes calls that were not tried again for want of budget, and nothing while all were", () => {
    const counters = createCounters();
    expect(budgetNotes(counters)).toEqual([]);
    expect(budgetNotes({ ...counters, overBudget: 2 })).toEqual([
      {
        name: "retries",
        note: "2 calls were not tried again, since the retry budget was spent: members fail too often.",
      },
    ]);
  });

  it.each([
    [undefined, { status: 403, said: "the shelf is empty" }],
    [false, { status: 403 }],
  ])("X-11 passes on what sources of others said, unless said is %s", async (said, details) => {
    const broker = await startNats();
    atEnd(() => broker.stop());
    const failing = query("a.x", () => {
      throw new CallError("ACCESS_DENIED", "It answered 403.", {
        details: { status: 403, said: "the shelf is empty" },
      });
    });
    await serve(broker.url, "other", failing);
    const bus = { nats: broker.url, mount: true, ...(said !== undefined && { said }) };
    const { source } = makeSource(loadedConfig({ bus }));
    await source.start();
    const here = new OperationRegistry();
    here.registerAll(source);
    const error = await rejection(here.execute("a.x"));
    expect(error).toMatchObject({ code: "ACCESS_DENIED", message: "It answered 403." });
    expect((error as CallError).details).toEqual(details);
  });

  it("RE-30 is down until the broker is there, and again while it is away", async () => {
    const first = await startNats();
    const { port } = first;
    await first.stop();
    const bus = { nats: `nats://127.0.0.1:${port}`, mount: true };
    const { source, states } = makeSource(loadedConfig({ bus }));
    await source.start();
    expect(reasonOf(source)).toContain("nothing listens there; check that the broker runs");
    const broker = await startNats({ port });
    atEnd(() => broker.stop());
    await vi.waitFor(() => expect(source.state.status).toBe("up"), 20_000);
    await serve(
      broker.url,
      "other",
      query("a.x", () => "x"),
    );
    await vi.waitFor(() => expect(source.operations).toHaveLength(1), 20_000);
    const here = new OperationRegistry();
    here.registerAll(source);
    await broker.kill();
    await vi.waitFor(() => expect(source.state.status).toBe("down"), 20_000);
    expect(reasonOf(source)).toContain("is lost; it is made again.");
    expect(await rejection(here.execute("a.x", undefined, { timeoutMs: 60_000 }))).toMatchObject({
      code: "UNAVAILABLE",
    });
    await broker.restart();
    await vi.waitFor(() => expect(source.state.status).toBe("up"), 20_000);
    await vi.waitFor(async () => expect((await here.execute("a.x")).data).toBe("x"), 20_000);
    expect(states.map(({ status }) => status).filter((status, n, all) => status !== all[n - 1])).toEqual([
      "down",
      "up",
      "down",
      "up",
    ]);
  });

  it("RE-30 an operation whose last member stopped stays known, answers 503, and the source is down since then", async () => {
    const broker = await startNats();
    atEnd(() => broker.stop());
    const x = query("a.x", () => "x");
    const [first, second] = [await serve(broker.url, "one", x), await serve(broker.url, "one", x)];
    const other = await serve(
      broker.url,
      "two",
      query("b.y", () => "y"),
    );
    const { source, states } = makeSource(loadedConfig({ bus: { nats: broker.url, mount: true } }));
    await source.start();
    await vi.waitFor(() => expect(source.operations).toHaveLength(2), 20_000);
    const here = new OperationRegistry();
    here.registerAll(source);
    const removed: string[] = [];
    here.onChange((changes) => {
      for (const { type, operation } of changes) if (type === "removed") removed.push(operation.id);
    });
    await first.leave();
    expect((await here.execute("a.x")).data).toBe("x");
    await second.leave();
    await vi.waitFor(() => expect(source.report().notes).toMatchObject([{ name: "a" }]), 20_000);
    const away = { code: "NO_RESPONDER", httpStatus: 503, retryable: true };
    expect(await rejection(here.execute("a.x"))).toMatchObject(away);
    expect([source.state.status, (await here.execute("b.y")).data]).toEqual(["up", "y"]);
    const before = Date.now();
    // Without a word, as a process that is killed.
    await other.bus.close();
    await vi.waitFor(() => expect(source.state.status).toBe("down"), 20_000);
    expect(reasonOf(source)).toContain("No service on the bus offers its operations any more");
    expect(source.state).toMatchObject({ since: expect.any(Number) });
    expect((source.state as { since: number }).since).toBeGreaterThanOrEqual(before);
    expect(await rejection(here.execute("b.y"))).toMatchObject(away);
    expect(source.report()).toMatchObject({ operations: 2, state: { status: "down" } });
    expect(removed).toEqual([]);
    await serve(
      broker.url,
      "two",
      query("b.z", () => "z"),
    );
    await vi.waitFor(() => expect(source.state.status).toBe("up"), 20_000);
    await vi.waitFor(() => expect(source.operations.map(({ id }) => id)).toEqual(["a.x", "b.z"]), 20_000);
    expect(removed).toEqual(["b.y"]);
    expect(states.filter(({ status }) => status === "down")).not.toEqual([]);
  });

  it("RE-30 says who is asking, signed with the secret of the bus, and refuses where there is none", async () => {
    const broker = await startNats();
    atEnd(() => broker.stop());
    const secret = "0123456789abcdef0123456789abcdef";
    const bus = { nats: broker.url, mount: true };
    const whoami = query("a.who", (_: unknown, { identity }) => identity?.subject ?? "nobody");
    const served = serveBus(handGateway([whoami]), { nats: broker.url, serveAs: "desk", secret });
    atEnd(() => served?.close());
    const mount = async (config: typeof bus & { secret?: string }) => {
      const { source } = makeSource(loadedConfig({ bus: config }));
      await source.start();
      await vi.waitFor(() => expect(source.operations).toHaveLength(1), 20_000);
      const here = new OperationRegistry();
      here.registerAll(source);
      return (identity?: Identity) => here.execute("a.who", undefined, { identity });
    };
    const identity = { subject: "ada", scopes: ["x"] };
    const knowing = await mount({ ...bus, secret });
    expect([(await knowing(identity)).data, (await knowing()).data]).toEqual(["ada", "nobody"]);
    const plain = await mount(bus);
    expect((await plain()).data).toBe("nobody");
    expect(await rejection(plain(identity))).toMatchObject({
      code: "UNAUTHENTICATED",
      message: expect.stringContaining("set bus.secret"),
    });
    const liar = await mount({ ...bus, secret: secret.toUpperCase() });
    expect(await rejection(liar(identity))).toMatchObject({ code: "UNAUTHENTICATED" });
  });

  it("RE-30 says that credentials are refused, without showing them, and closes at once", async () => {
    const config = "authorization { user: me, password: right }";
    const broker = await startNats({ config });
    atEnd(() => broker.stop());
    const secrets = new SecretMask();
    secrets.add("wrong-password");
    const bus = { nats: broker.url, user: "me", password: "wrong-password", mount: true };
    const { source } = makeSource(loadedConfig({ bus }, { secrets }));
    await source.start();
    expect(reasonOf(source)).toMatch(
      /refused the credentials; set user and password, token, credentials or nkey\.$/,
    );
    await source.close();
    const right = makeSource(loadedConfig({ bus: { ...bus, password: "right" } }));
    await right.source.start();
    expect(right.source.state.status).toBe("up");
  });
});
