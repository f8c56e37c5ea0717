import { afterEach, describe, expect, it } from "vitest";
import { query, rejection } from "../../test/make-operation.ts";
import { localEnvelope } from "../core/envelope/envelope.ts";
import { CallError } from "../core/errors/errors.ts";
import type { AnyOperation } from "../core/operation/operation-types.ts";
import { OperationRegistry } from "../core/registry/registry.ts";
import type { Bus } from "./bus.ts";
import { serveCalls } from "./call-handler.ts";
import type { CallOptions } from "./call-options.ts";
import { createMemoryBus } from "./memory-bus.ts";
import { createRemoteRegistry, type RemoteRegistryOptions } from "./remote-registry.ts";

const closing: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** A way to call durably that keeps what it was told. */
function keeper() {
  const kept: { readonly id: string; readonly input: unknown; readonly options: CallOptions }[] = [];
  const durable = {
    execute: async (id: string, input: unknown, options: CallOptions) => {
      kept.push({ id, input, options });
      return localEnvelope("kept", id);
    },
  };
  return { kept, durable };
}

async function connect(bus: Bus, options: RemoteRegistryOptions) {
  const remote = await createRemoteRegistry(bus, options);
  closing.push(() => remote.close());
  return remote;
}

const DURABLE: AnyOperation = query("a.kept", () => "live", { durable: true });

describe("RemoteRegistry and durable operations", () => {
  it("Durable: an operation that says it is durable goes that way, though no service offers it", async () => {
    const { kept, durable } = keeper();
    const remote = await connect(createMemoryBus(), { durable });
    expect((await remote.execute(DURABLE, { n: 1 })).data).toBe("kept");
    expect(kept).toMatchObject([{ id: "a.kept", input: { n: 1 } }]);
    const live = query("a.live", () => 1);
    expect(await rejection(remote.execute(live))).toMatchObject({ code: "NO_RESPONDER" });
    expect(kept).toHaveLength(1);
  });

  it("Durable: an option that there is not is refused before anything is kept", async () => {
    const { kept, durable } = keeper();
    const remote = await connect(createMemoryBus(), { durable });
    const error = await rejection(remote.execute(DURABLE, {}, { idempotencykey: "k" } as never));
    expect(error).toEqual(
      new TypeError('There is no option "idempotencykey"; did you mean "idempotencyKey"?'),
    );
    await remote.execute(DURABLE, {}, { idempotencyKey: "k" });
    expect(kept).toMatchObject([{ options: { idempotencyKey: "k" } }]);
  });

  it("Durable: an operation once seen to be durable stays so after its service has left", async () => {
    const { kept, durable } = keeper();
    const bus = createMemoryBus();
    const service = await serveCalls(new OperationRegistry([DURABLE]), bus);
    const remote = await connect(bus, { durable });
    expect((await remote.execute("a.kept")).data).toBe("kept");
    await service.drain();
    expect(remote.get("a.kept")).toBeUndefined();
    expect((await remote.execute("a.kept")).data).toBe("kept");
    expect(kept).toHaveLength(2);
  });

  it("Durable: an idempotency key reaches whoever calls durably", async () => {
    const { kept, durable } = keeper();
    const remote = await connect(createMemoryBus(), { durable });
    await remote.execute(DURABLE, {}, { idempotencyKey: "order-7", metadata: { m: 1 } });
    expect(kept[0]?.options).toMatchObject({ idempotencyKey: "order-7", metadata: { m: 1 } });
  });
});

describe("RemoteRegistry and retries", () => {
  it("Call: tries as often as the registry was told, unless a call says otherwise", async () => {
    const bus = createMemoryBus();
    let runs = 0;
    const flaky = query(
      "a.flaky",
      () => {
        if (++runs < 3) throw new CallError("UNAVAILABLE");
        return runs;
      },
      { annotations: { idempotent: true } },
    );
    const service = await serveCalls(new OperationRegistry([flaky]), bus);
    closing.push(() => service.drain());
    const remote = await connect(bus, { retry: { attempts: 3 } });
    expect((await remote.execute("a.flaky")).data).toBe(3);
    runs = 0;
    const once = remote.execute("a.flaky", 1, { retry: { attempts: 1 } });
    expect(await rejection(once)).toMatchObject({ code: "UNAVAILABLE" });
    expect(runs).toBe(1);
  });
});
