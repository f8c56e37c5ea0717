import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { type NatsServer, natsSuite, startNats } from "../../../test/nats-server.ts";
import { startReplica } from "../../../test/replica-gateway.ts";
import { CallError, defineOperation } from "../../index.ts";
import type { GatewayConfig } from "../config/gateway-config.ts";

natsSuite("results and runs that replicas share at a broker", () => {
  let broker: NatsServer;
  let names = 0;
  const closing: (() => Promise<unknown>)[] = [];
  beforeAll(async () => {
    broker = await startNats({ jetstream: true });
  });
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });
  afterAll(() => broker.stop());

  /** A query that tells, in all replicas, how often it ran; with `hold` it runs until it is let go. */
  const createLibrary = () => {
    let ran = 0;
    const waiting: (() => void)[] = [];
    const shared = { namespace: "library", type: "query" } as const;
    const operations = [
      defineOperation({
        ...shared,
        name: "find",
        handler: async ({ hold = false }: { hold?: boolean }, { signal }) => {
          const run = ++ran;
          if (hold)
            await new Promise<void>((resolve) => {
              waiting.push(resolve);
              signal.addEventListener("abort", () => resolve());
            });
          signal.throwIfAborted();
          return { run };
        },
      }),
      defineOperation({
        ...shared,
        name: "fail",
        handler: () => {
          ran++;
          throw new CallError("CONFLICT", "No.");
        },
      }),
    ];
    return { name: `library ${++names}`, operations, ran: () => ran, letGo: () => waiting.shift()?.() };
  };
  type Library = ReturnType<typeof createLibrary>;
  const start = async ({ name, operations }: Library, config: GatewayConfig) => {
    const replica = await startReplica(operations, { name, bus: { nats: broker.url }, ...config });
    closing.push(() => replica.close());
    return replica;
  };
  type Replica = Awaited<ReturnType<typeof start>>;
  /** An input for which one replica uses what the other has kept; that is told it some time soon. */
  const keptAtBoth = async (one: Replica, two: Replica): Promise<{ readonly round: number }> => {
    let round = 0;
    await expect
      .poll(
        async () => {
          round++;
          const [first, second] = [
            await one.call("library/find", { round }),
            await two.call("library/find", { round }),
          ];
          expect(first.status).toBe(200);
          return JSON.stringify(second) === JSON.stringify(first);
        },
        { timeout: 20_000 },
      )
      .toBe(true);
    return { round };
  };
  const waitingIn = (replicas: readonly Replica[]): number =>
    replicas.reduce((sum, { gateway }) => sum + (gateway.state.reuse?.waiting ?? 0), 0);
  const caching = { policies: { "library.*": { cacheMs: 60_000 } } };
  const sharing = { policies: { "library.*": { singleFlight: true } } };

  it("use what was kept for the same caller and input at another one, and nothing else", async () => {
    const library = createLibrary();
    const [one, two] = [await start(library, caching), await start(library, caching)];
    const input = await keptAtBoth(one, two);
    const kept = await one.call("library/find", input);
    const ran = library.ran();
    expect(await two.call("library/find", input, "bob")).toMatchObject({ body: { run: ran + 1 } });
    expect(await two.call("library/find", { ...input, other: 1 })).toMatchObject({ body: { run: ran + 2 } });
    // From now on it is kept here too: nobody is asked.
    await one.close();
    await broker.kill();
    expect(await two.call("library/find", input)).toEqual(kept);
    await broker.restart();
  });

  it("do not use what another config would not have answered", async () => {
    const library = createLibrary();
    const [one, two] = [await start(library, caching), await start(library, caching)];
    const input = await keptAtBoth(one, two);
    const ran = library.ran();
    const guard = { credentials: "withhold" } as const;
    const guarded = await start(library, { policies: { "library.*": { cacheMs: 60_000, guard } } });
    expect(await guarded.call("library/find", input)).toMatchObject({ body: { run: ran + 1 } });
    const without = await start(library, {});
    expect(await without.call("library/find", input)).toMatchObject({ body: { run: ran + 2 } });
  });

  it("run a call once that is made at several of them at the same time, for each caller", async () => {
    const library = createLibrary();
    const replicas = await Promise.all([1, 2, 3].map(() => start(library, sharing)));
    const calls = replicas.flatMap(({ call }) => [1, 2].map(() => call("library/find", { hold: true })));
    await expect.poll(library.ran).toBe(1);
    const others = replicas.map(({ call }) => call("library/find", { hold: true }, "bob"));
    await expect.poll(library.ran).toBe(2);
    await expect.poll(() => replicas.reduce((sum, { running }) => sum + running, 0)).toBe(9);
    await expect.poll(() => waitingIn(replicas)).toBe(4);
    library.letGo();
    library.letGo();
    expect((await Promise.all(calls)).map(({ body }) => body)).toEqual(Array(6).fill({ run: 1 }));
    expect((await Promise.all(others)).map(({ body }) => body)).toEqual(Array(3).fill({ run: 2 }));
    // What ended before is not used again.
    const later = replicas[0]?.call("library/find", { hold: true });
    await expect.poll(library.ran).toBe(3);
    library.letGo();
    expect(await later).toMatchObject({ body: { run: 3 } });
  });

  it("run a call again whose replica leaves, and each error is its own", { timeout: 60_000 }, async () => {
    const library = createLibrary();
    const [one, two] = [await start(library, sharing), await start(library, sharing)];
    const cut = one.call("library/find", { hold: true }).catch(() => undefined);
    await expect.poll(library.ran).toBe(1);
    const waiting = two.call("library/find", { hold: true });
    await expect.poll(() => waitingIn([two])).toBe(1);
    await one.close();
    await cut;
    await expect.poll(library.ran).toBe(2);
    library.letGo();
    library.letGo();
    expect(await waiting).toMatchObject({ body: { run: 2 } });
    expect(await two.call("library/fail")).toMatchObject({ status: 409 });
    expect(await two.call("library/fail")).toMatchObject({ status: 409 });
    expect(library.ran()).toBe(4);
  });

  it("go their own ways while the broker is away, and say so", { timeout: 60_000 }, async () => {
    const library = createLibrary();
    const policies = { "library.*": { cacheMs: 60_000, singleFlight: true } };
    const [one, two] = [await start(library, { policies }), await start(library, { policies })];
    expect(await one.call("library/find")).toMatchObject({ body: { run: 1 } });
    await broker.kill();
    try {
      for (const { gateway } of [one, two])
        await expect.poll(() => gateway.state.report().status).toBe("lost");
      expect(await one.call("library/find")).toMatchObject({ body: { run: 1 } });
      expect(await two.call("library/find")).toMatchObject({ body: { run: 2 } });
      expect(await two.ready()).toMatchObject({ status: "ok", state: { cache: "alone" } });
    } finally {
      await broker.restart();
    }
    await expect.poll(() => two.gateway.state.report().status, { timeout: 20_000 }).toBe("up");
    await keptAtBoth(one, two);
  });
});
