import type { KnownService } from "../../call/discovery/operation-directory.ts";
import type { NatsBus } from "../../call/nats/nats-bus.ts";
import type { RemoteRegistry } from "../../call/remote-registry.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { BusConfig } from "../config/gateway-config.ts";
import { connectBus, createBusSigner, describeBus } from "./bus-connection.ts";
import { RetriedSource } from "./retried-source.ts";
import type { Source } from "./source.ts";
import type { Backing, BackingFacts, BackingWatcher } from "./source-plan.ts";
import type { Surroundings } from "./surroundings.ts";
import { unlessAborted } from "./unless-aborted.ts";

/** Makes a source of the operations that others serve on a bus. */
export function createBusSource(name: string, bus: BusConfig, around: Surroundings): Source {
  const { loaded, reconnect, onBusCall } = around;
  const target = around.shown(describeBus(bus));
  return new RetriedSource({
    name,
    kind: "bus",
    target,
    secrets: loaded.secrets,
    reconnect,
    said: bus.said,
    warn: around.warnerOf(name),
    open: async (signal, watcher) => {
      const { createRemoteRegistry } = await import("../../call/remote-registry.ts");
      const credentials = await createBusSigner(bus);
      const connected = await connectBus(bus, signal);
      if (onBusCall !== undefined) connected.onCall(onBusCall);
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
  readonly #offers = new KnownOffers();
  readonly #stopHearing: (() => void)[] = [];
  #listener: () => void = () => {};
  #isConnected = true;

  constructor(bus: NatsBus, registry: RemoteRegistry, plan: BusPlan) {
    this.#bus = bus;
    this.#registry = registry;
    this.#plan = plan;
    this.#status = bus.connection.status();
    this.#hearOffers();
    const changed = () => {
      this.#hearOffers();
      this.#tellState();
      this.#listener();
    };
    this.#stopHearing.push(registry.onChange(changed), registry.onServicesChange(changed));
    void this.#follow();
  }

  /** What is offered, and what was until its last member left; what only gateways of our own name offer is ours already. */
  get operations(): readonly AnyOperation[] {
    return this.#offers.operations;
  }

  #hearOffers(): void {
    const { serveAs } = this.#plan.bus;
    const { services, operations } = this.#registry;
    this.#offers.hear(
      services.filter(({ name }) => serveAs === undefined || name !== serveAs),
      operations,
    );
  }

  /** Down without a connection, and while nobody offers anything of what is known. */
  #tellState(): void {
    const { watcher, target } = this.#plan;
    if (!this.#isConnected) watcher.down(new Error(`The connection to ${target} is lost; it is made again.`));
    else if (this.#offers.isDeserted) {
      watcher.down(new Error("No service on the bus offers its operations any more; is one running?"));
    } else watcher.up();
  }

  facts(): BackingFacts {
    const { unusable, conflicts } = this.#registry;
    const { shown } = this.#plan.around;
    return {
      unusable: unusable.map(({ id, serviceId, reason }) => ({
        name: shown(id ?? serviceId),
        reason: shown(reason),
      })),
      notes: [
        ...conflicts.map(({ operationId }) => ({
          name: shown(operationId),
          note: "Services offer it that do not mean the same; the highest version counts.",
        })),
        ...this.#offers.deserted.map(({ namespace, since }) => ({
          name: shown(namespace),
          note: `No service has offered its operations since ${new Date(since).toISOString()}; calls answer NO_RESPONDER.`,
        })),
      ],
    };
  }

  onChange(listener: () => void): void {
    this.#listener = listener;
  }

  /** Services tell of changes themselves. */
  async refresh(): Promise<void> {}

  async close(): Promise<void> {
    this.#status.stop?.();
    for (const stop of this.#stopHearing) stop();
    await this.#registry.close();
    await this.#bus.close();
  }

  async #follow(): Promise<void> {
    for await (const { type } of this.#status) {
      if (type !== "reconnect" && type !== "disconnect") continue;
      this.#isConnected = type === "reconnect";
      this.#tellState();
    }
  }
}

/** An operation that is known, and the names of the services that offered it last. */
interface KnownOffer {
  readonly operation: AnyOperation;
  readonly names: ReadonlySet<string>;
  /** Unix epoch milliseconds when the last member left; absent while there is one. */
  readonly since?: number;
}

/** Operations whose members have left that are kept. */
const MOST_KEPT = 10_000;

/**
 * What services offer, and what they offered before the last of them left: such an operation is away, which is not the same as not
 * there. It is forgotten once a service of the same name offers its namespace without it.
 */
class KnownOffers {
  #known: ReadonlyMap<string, KnownOffer> = new Map();
  #operations: readonly AnyOperation[] = [];

  /** Sorted by id; the same list until something is heard. */
  get operations(): readonly AnyOperation[] {
    return this.#operations;
  }

  /** Something is known, and nobody offers any of it. */
  get isDeserted(): boolean {
    return this.#known.size > 0 && [...this.#known.values()].every(({ since }) => since !== undefined);
  }

  /** Namespaces that have operations nobody offers any more, and since when. */
  get deserted(): readonly { readonly namespace: string; readonly since: number }[] {
    const since = new Map<string, number>();
    for (const { operation, since: left } of this.#known.values()) {
      if (left === undefined) continue;
      since.set(operation.namespace, Math.min(left, since.get(operation.namespace) ?? left));
    }
    return [...since].map(([namespace, left]) => ({ namespace, since: left }));
  }

  /** Takes notice of the services there are now, and of the operations that count. */
  hear(services: readonly KnownService[], operations: readonly AnyOperation[]): void {
    const names = new Map<string, Set<string>>();
    /** Each name with each namespace it offers something of. */
    const present = new Set<string>();
    for (const { name, operationIds } of services) {
      for (const id of operationIds) {
        names.set(id, (names.get(id) ?? new Set()).add(name));
        present.add(placeOf(name, id));
      }
    }
    const known = new Map<string, KnownOffer>();
    for (const operation of operations) {
      const offering = names.get(operation.id);
      if (offering !== undefined) known.set(operation.id, { operation, names: offering });
    }
    let kept = 0;
    for (const [id, offer] of this.#known) {
      if (known.has(id) || [...offer.names].some((name) => present.has(placeOf(name, id)))) continue;
      if (++kept > MOST_KEPT) break;
      known.set(id, { ...offer, since: offer.since ?? Date.now() });
    }
    this.#known = known;
    this.#operations = [...known.values()]
      .map(({ operation }) => operation)
      .sort((a, b) => (a.id < b.id ? -1 : 1));
  }
}

/** A namespace holds no dot and no line break. */
function placeOf(name: string, operationId: string): string {
  return `${operationId.slice(0, operationId.indexOf("."))}\n${name}`;
}
