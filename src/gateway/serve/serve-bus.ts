import { setTimeout as pause } from "node:timers/promises";
import type { CallCounters, CallHandler, CallObserver } from "../../call/index.ts";
import type { NatsBus } from "../../call/nats/index.ts";
import { backoffMs } from "../../core/limits/backoff.ts";
import type { BusConfig } from "../config/gateway-config.ts";
import type { Gateway } from "../gateway.ts";
import { StateReplays } from "../replicas/state-replays.ts";
import { connectBus } from "../sources/bus-connection.ts";
import { addCounters, createBusVerifier } from "../sources/bus-source.ts";
import type { SharedState } from "../state/gateway-state.ts";
import { type CallTelemetry, withEntry } from "./observe/observer.ts";

/** How a gateway is served on a bus. */
export interface ServeBusOptions {
  /** Begins the spans of calls. @default nobody does */
  readonly telemetry?: CallTelemetry | undefined;
  /** Observes the calls that come in over the bus. @default nobody does */
  readonly onCall?: CallObserver | undefined;
  /** Hears that the broker is away, and why; it must mask secrets. @default nobody does */
  readonly onWarning?: ((message: string, cause?: unknown) => void) | undefined;
}

/** A gateway on a bus, or on its way there. */
export interface GatewayBus {
  readonly state: "connecting" | "up" | "closed";
  /** What was dropped or refused of what came in; nothing while it is not up. */
  readonly counters: CallCounters | undefined;
  /** Leaves the bus, calls under way first. */
  close(options?: { /** @default 10_000 */ readonly timeoutMs?: number | undefined }): Promise<void>;
}

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 30_000;

/** Serves the operations of a gateway on a bus; nothing where the config does not say so. A broker that is away is tried again. */
export function serveBus(
  gateway: Pick<Gateway, "executor" | "state">,
  bus: BusConfig | undefined,
  options: ServeBusOptions = {},
): GatewayBus | undefined {
  if (bus?.serveAs === undefined) return undefined;
  return new ServedBus(gateway, bus, options);
}

class ServedBus implements GatewayBus {
  readonly #gateway: Pick<Gateway, "executor" | "state">;
  readonly #config: BusConfig;
  readonly #options: ServeBusOptions;
  readonly #running: Promise<void>;
  readonly #stopping = new AbortController();
  #served: { readonly handler: CallHandler; readonly bus: NatsBus } | undefined;

  constructor(gateway: Pick<Gateway, "executor" | "state">, config: BusConfig, options: ServeBusOptions) {
    this.#gateway = gateway;
    this.#config = config;
    this.#options = options;
    this.#running = this.#run();
  }

  get state(): GatewayBus["state"] {
    if (this.#stopping.signal.aborted) return "closed";
    return this.#served === undefined ? "connecting" : "up";
  }

  get counters(): CallCounters | undefined {
    const served = this.#served;
    return served && addCounters(served.handler.counters, served.bus.counters);
  }

  async close({ timeoutMs = 10_000 }: { readonly timeoutMs?: number | undefined } = {}): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    const served = this.#served;
    this.#served = undefined;
    await served?.handler.drain({ timeoutMs });
    await served?.bus.close();
  }

  /** Once connected, the connection comes back by itself. */
  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    for (let attempt = 1; !signal.aborted; attempt++) {
      try {
        this.#served = await this.#connect();
        return;
      } catch (cause) {
        if (signal.aborted) return;
        const why = cause instanceof Error ? cause.message : String(cause);
        this.#options.onWarning?.(`The bus is tried again: ${why}`, cause);
      }
      const ms = backoffMs(attempt, FIRST_DELAY_MS, LONGEST_DELAY_MS);
      await pause(ms, undefined, { signal, ref: false }).catch(() => {});
    }
  }

  /** What replicas remember together of calls with a token. */
  #replays(): StateReplays {
    const { executor, state } = this.#gateway;
    let shared: SharedState | undefined;
    void state.replicas().then((opened) => {
      shared = opened;
    });
    return new StateReplays({
      shared: () => shared,
      isHarmless: (id) => executor.get(id)?.type !== "mutation",
      onAlone: (cause) =>
        this.#options.onWarning?.("A call over the bus is remembered by this replica alone.", cause),
    });
  }

  async #connect(): Promise<{ readonly handler: CallHandler; readonly bus: NatsBus }> {
    const { serveCalls } = await import("../../call/index.ts");
    const trusted = await createBusVerifier(this.#config);
    const bus = await connectBus(this.#config, this.#stopping.signal);
    const { telemetry, onCall } = this.#options;
    if (onCall !== undefined) bus.onCall(onCall);
    try {
      const executor = withEntry(this.#gateway.executor, "bus", telemetry);
      const replays = trusted.authenticate === undefined ? undefined : this.#replays();
      const options = { name: this.#config.serveAs, ...trusted, replays };
      return { bus, handler: await serveCalls(executor, bus, options) };
    } catch (thrown) {
      await bus.close();
      throw thrown;
    }
  }
}
