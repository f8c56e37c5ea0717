import type { NatsBus } from "../../call/nats/nats-bus.ts";
import type { RemoteRegistry } from "../../call/remote-registry.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { BusConfig } from "../config/gateway-config.ts";
import type { Backing, BackingFacts, BackingWatcher } from "./backing.ts";
import { connectBus, createBusSigner, describeBus } from "./bus-connection.ts";
import { RetriedSource } from "./retried-source.ts";
import type { Source } from "./source.ts";
import type { Surroundings } from "./surroundings.ts";
import { unlessAborted } from "./unless-aborted.ts";

/** Makes a source of the operations that others serve on a bus. */
export function createBusSource(name: string, bus: BusConfig, around: Surroundings): Source {
  const { loaded, reconnect } = around;
  const target = around.shown(describeBus(bus));
  return new RetriedSource({
    name,
    kind: "bus",
    target,
    secrets: loaded.secrets,
    reconnect,
    warn: around.warnerOf(name),
    open: async (signal, watcher) => {
      const { createRemoteRegistry } = await import("../../call/remote-registry.ts");
      const credentials = await createBusSigner(bus);
      const connected = await connectBus(bus, signal);
      try {
        const namespaces = Array.isArray(bus.mount) ? { namespaces: bus.mount as readonly string[] } : {};
        const finding = createRemoteRegistry(connected, { ...namespaces, credentials });
        const registry = await unlessAborted(finding, signal, (late) => late.close());
        return new BusBacking(connected, registry, { bus, target, around, watcher });
      } catch (thrown) {
        await connected.close();
        throw thrown;
      }
    },
  });
}

interface BusPlan {
  readonly bus: BusConfig;
  readonly target: string;
  readonly around: Surroundings;
  readonly watcher: BackingWatcher;
}

/** A bus that is connected; it reconnects by itself. */
class BusBacking implements Backing {
  readonly #bus: NatsBus;
  readonly #registry: RemoteRegistry;
  readonly #plan: BusPlan;
  readonly #status: AsyncIterable<{ readonly type: string }> & { stop?(): void };

  constructor(bus: NatsBus, registry: RemoteRegistry, plan: BusPlan) {
    this.#bus = bus;
    this.#registry = registry;
    this.#plan = plan;
    this.#status = bus.connection.status();
    void this.#follow();
  }

  /** What only gateways of our own name offer is ours already. */
  get operations(): readonly AnyOperation[] {
    const { serveAs } = this.#plan.bus;
    if (serveAs === undefined) return this.#registry.operations;
    const others = this.#registry.services.filter(({ name }) => name !== serveAs);
    const offered = new Set(others.flatMap(({ operationIds }) => operationIds));
    return this.#registry.operations.filter(({ id }) => offered.has(id));
  }

  facts(): BackingFacts {
    const { unusable, conflicts } = this.#registry;
    const { shown } = this.#plan.around;
    return {
      unusable: unusable.map(({ id, serviceId, reason }) => ({
        name: shown(id ?? serviceId),
        reason: shown(reason),
      })),
      notes: conflicts.map(({ operationId }) => ({
        name: shown(operationId),
        note: "Services offer it that do not mean the same; the highest version counts.",
      })),
    };
  }

  onChange(listener: () => void): void {
    this.#registry.onChange(() => listener());
    this.#registry.onServicesChange(() => listener());
  }

  /** Services tell of changes themselves. */
  async refresh(): Promise<void> {}

  async close(): Promise<void> {
    this.#status.stop?.();
    await this.#registry.close();
    await this.#bus.close();
  }

  async #follow(): Promise<void> {
    const { watcher, target } = this.#plan;
    for await (const { type } of this.#status) {
      if (type === "reconnect") watcher.up();
      else if (type === "disconnect") {
        watcher.down(new Error(`The connection to ${target} is lost; it is made again.`));
      }
    }
  }
}
