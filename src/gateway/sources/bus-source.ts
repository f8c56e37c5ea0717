import type { CallHandlerOptions } from "../../call/call-handler.ts";
import type { CallCounters } from "../../call/call-observer.ts";
import type { CredentialSource } from "../../call/call-options.ts";
import type { KnownService } from "../../call/discovery/service-directory.ts";
import type { DurableCalls } from "../../call/nats/durable/durable-calls.ts";
import type { NatsBus } from "../../call/nats/nats-bus.ts";
import type { DurableCaller, RemoteRegistry } from "../../call/remote-registry.ts";
import type { ResponseEnvelope } from "../../core/envelope/response-meta.ts";
import { CallError } from "../../core/errors/errors.ts";
import { monotonicNow } from "../../core/execution/cancellation.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { BusConfig } from "../config/gateway-config.ts";
import { connectBus, describeBus } from "./bus-connection.ts";
import { RetriedSource } from "./retried-source.ts";
import {
  type Backing,
  type BackingFacts,
  type BackingWatcher,
  type FailedCalls,
  type Source,
  type SourceContext,
  unlessAborted,
} from "./source.ts";

/** Makes a source of the operations that others serve on a bus. */
export function createBusSource(name: string, bus: BusConfig, around: SourceContext): Source {
  const { loaded, reconnect, propagate, onBusCall } = around;
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
        const durable = new MountedDurable(connected, credentials, around.warnerOf(name));
        const finding = createRemoteRegistry(connected, { ...namespaces, credentials, durable, propagate });
        const registry = await unlessAborted(finding, signal, (late) => late.close());
        const failedCalls = durable.failedCalls(bus);
        return new BusBacking(connected, registry, { bus, target, around, watcher, failedCalls });
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
  readonly around: SourceContext;
  readonly watcher: BackingWatcher;
  readonly failedCalls: FailedCalls;
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

  get failedCalls(): FailedCalls {
    return this.#plan.failedCalls;
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
    const { unusable, conflicts, openCircuits } = this.#registry;
    const { leftOut } = this.#bus;
    const { shown } = this.#plan.around;
    const counters = addCounters(this.#registry.counters, this.#bus.counters);
    return {
      bus: {
        counters,
        membersLeftOut: leftOut.length,
        openCircuits: openCircuits.length,
      },
      unusable: unusable.map(({ id, serviceId, reason }) => ({
        name: shown(id ?? serviceId),
        reason: shown(reason),
      })),
      notes: [
        ...budgetNotes(counters),
        ...conflicts.map(({ operationId }) => ({
          name: shown(operationId),
          note: "Services offer it that do not mean the same; the highest version counts.",
        })),
        ...openCircuits.slice(0, MOST_SHOWN).map((id) => ({
          name: shown(id),
          note: "Nothing but UNAVAILABLE was answered; calls are refused until one that tries it succeeds.",
        })),
        ...leftOut.slice(0, MOST_SHOWN).map(({ operationId = "" }) => ({
          name: shown(operationId),
          note: "A member that failed, or had no room, is left out for a while.",
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

/** After how long a broker that could not keep durable calls is asked again, in milliseconds. */
const ASK_AGAIN_MS = 30_000;

/** Durable calls of mounted operations: those that a worker takes, where the broker keeps them; the others are called like any other. */
class MountedDurable implements DurableCaller {
  readonly #bus: NatsBus;
  readonly #credentials: CredentialSource;
  readonly #warn: (message: string, cause?: unknown) => void;
  #opening: Promise<DurableCalls | undefined> | undefined;
  #failedAt = Number.NEGATIVE_INFINITY;

  constructor(bus: NatsBus, credentials: CredentialSource, warn: (message: string, cause?: unknown) => void) {
    this.#bus = bus;
    this.#credentials = credentials;
    this.#warn = warn;
  }

  async serves(operationId: string): Promise<boolean> {
    const calls = await this.#open();
    return calls !== undefined && (await calls.serves(operationId));
  }

  async execute(...call: Parameters<DurableCaller["execute"]>): Promise<ResponseEnvelope> {
    const calls = await this.#open();
    if (calls !== undefined) return await calls.execute(...call);
    throw new CallError("UNAVAILABLE", "The broker keeps no durable calls at the moment.", { stack: false });
  }

  /** What an operator may see and do of calls that have failed. */
  failedCalls(bus: BusConfig): FailedCalls {
    const open = async (): Promise<DurableCalls> => {
      const calls = await this.#open();
      if (calls !== undefined) return calls;
      throw new CallError("UNAVAILABLE", "The broker keeps no durable calls at the moment.", {
        stack: false,
      });
    };
    return {
      list: async (options) => (await open()).failed(options),
      resend: async (requestId) => (await open()).resend(requestId, await createBusVerifier(bus)),
    };
  }

  #open(): Promise<DurableCalls | undefined> {
    if (monotonicNow() - this.#failedAt < ASK_AGAIN_MS) return Promise.resolve(undefined);
    this.#opening ??= this.#tryToOpen();
    return this.#opening;
  }

  async #tryToOpen(): Promise<DurableCalls | undefined> {
    try {
      const { openDurableCalls } = await import("../../call/nats/durable/durable-calls.ts");
      return await openDurableCalls(this.#bus.connection, { credentials: this.#credentials });
    } catch (thrown) {
      this.#failedAt = monotonicNow();
      this.#opening = undefined;
      this.#warn("Durable operations are called like any other: the broker keeps no durable calls.", thrown);
      return undefined;
    }
  }
}

/** Members left out, and open circuits, that are told. */
const MOST_SHOWN = 100;

/** Adds up what the two parts of one end have counted. */
export function addCounters(one: CallCounters, other: CallCounters): CallCounters {
  const reasons = Object.keys(one) as (keyof CallCounters)[];
  return Object.fromEntries(reasons.map((reason) => [reason, one[reason] + other[reason]])) as never;
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

/** Who vouches for identities that were signed with `bus.secret`. */
const BUS_ISSUER = "waybill";

/** What signs who is asking; without a secret nobody's word is taken on, and nobody is made anonymous by the way. */
async function createBusSigner({ secret }: BusConfig): Promise<CredentialSource> {
  if (secret === undefined) return refuseUnproven;
  const { createTokenSigner } = await import("../../call/credentials/token-signer.ts");
  return createTokenSigner({ key: Buffer.from(secret), issuer: BUS_ISSUER });
}

/** What reads who is asking; without a secret everybody on the bus is anonymous. */
export async function createBusVerifier({
  secret,
}: BusConfig): Promise<Pick<CallHandlerOptions, "authenticate">> {
  if (secret === undefined) return {};
  const { createTokenVerifier } = await import("../../call/credentials/token-verifier.ts");
  return { authenticate: createTokenVerifier({ keys: Buffer.from(secret), issuer: BUS_ISSUER }) };
}

const refuseUnproven: CredentialSource = (_, operationId) => {
  const message = `The caller of "${operationId}" cannot be told to the bus: set bus.secret, here and at the service that serves it.`;
  throw new CallError("UNAUTHENTICATED", message, { stack: false });
};

/** Says how many calls were not tried again for want of budget; nothing while all were. */
export function budgetNotes({ overBudget }: CallCounters): BackingFacts["notes"] {
  if (overBudget === 0) return [];
  const note = `${counted(overBudget, "call")} not tried again, since the retry budget was spent: members fail too often.`;
  return [{ name: "retries", note }];
}

function counted(count: number, what: string): string {
  return count === 1 ? `1 ${what} was` : `${count} ${what}s were`;
}
