import { describe, expect, it, vi } from "vitest";
import { query, rejection } from "../../test/make-operation.ts";
import { CallError } from "../core/errors/errors.ts";
import { OperationRegistry } from "../core/registry/registry.ts";
import { type Authenticate, serveCalls } from "./call-handler.ts";
import { createMemoryBus } from "./memory-bus.ts";
import { PendingRequestMap } from "./pending-request-map.ts";
import { createMemoryTransport, MemoryBroker } from "./wire/transport.ts";
import { createWireBus } from "./wire/wire-bus.ts";

/** A service that wants to know who asks, and a caller who brings a credential. */
async function open(authenticate?: Authenticate) {
  const broker = new MemoryBroker();
  const [asking, answering] = [0, 1].map(() => createWireBus(createMemoryTransport({ broker })));
  if (asking === undefined || answering === undefined) throw new Error("There are two.");
  const ran = vi.fn(() => "ran");
  const registry = new OperationRegistry([
    query("a.known", ran, { access: { scopes: { allOf: ["read"] } } }),
    query("a.open", () => "open"),
  ]);
  const handler = await serveCalls(registry, answering, { authenticate });
  const map = new PendingRequestMap(asking, { credentials: () => "token" });
  const identity = { subject: "ada", scopes: ["read"] };
  return { handler, map, ran, call: (id: string) => map.call(id, 1, { identity }) };
}

describe("who sent a request", () => {
  it("Identity: a credential that nobody was told to read is refused by a message that says so", async () => {
    const { call, map, ran } = await open();
    const error = await rejection(call("a.known"));
    expect(error).toMatchObject({
      code: "UNAUTHENTICATED",
      message: expect.stringMatching(/credential.*"authenticate"/),
    });
    expect((await call("a.open")).data).toBe("open");
    const anonymous = (await rejection(map.call("a.known"))) as CallError;
    expect([anonymous.code, anonymous.message.includes("authenticate")]).toEqual(["UNAUTHENTICATED", false]);
    expect(ran).not.toHaveBeenCalled();
  });

  const broken: readonly (readonly [string, Authenticate])[] = [
    [
      "throws",
      () => {
        throw new Error("secret of the key store");
      },
    ],
    ["rejects", () => Promise.reject(new Error("secret of the key store"))],
  ];
  it.each(broken)(
    "Identity: an authenticate that %s is UNAUTHENTICATED, its text hidden, and counted",
    async (_, authenticate) => {
      const { call, handler, ran } = await open(authenticate);
      const error = (await rejection(call("a.open"))) as CallError;
      expect(error.code).toBe("UNAUTHENTICATED");
      expect(JSON.stringify(error)).not.toContain("secret");
      expect([handler.counters.unauthenticated, handler.running, ran.mock.calls.length]).toEqual([1, 0, 0]);
    },
  );

  it("Identity: whoever is not believed is counted, whoever may merely not call is not", async () => {
    let isBelieved = false;
    const { call, handler } = await open(() => {
      if (isBelieved) return { subject: "ada", scopes: [] };
      throw new CallError("UNAUTHENTICATED", "The token has expired.");
    });
    expect(await rejection(call("a.known"))).toMatchObject({ message: "The token has expired." });
    isBelieved = true;
    expect(await rejection(call("a.known"))).toMatchObject({ code: "ACCESS_DENIED" });
    expect(handler.counters.unauthenticated).toBe(1);
  });

  it("Call: reports of progress that cannot leave are dropped after the first 1,000", async () => {
    const bus = createMemoryBus();
    const noisy = query("a.noisy", (_, { progress }) => {
      for (let n = 0; n < 1_500; n++) progress(n);
    });
    await serveCalls(new OperationRegistry([noisy]), bus);
    const heard: unknown[] = [];
    await new PendingRequestMap(bus).call("a.noisy", 1, { onProgress: (value) => heard.push(value) });
    expect([heard.length, heard.at(-1)]).toEqual([1_000, 999]);
  });
});
