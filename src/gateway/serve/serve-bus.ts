import type { CallHandler, CallObserver } from "../../call/index.ts";
import type { NatsBus } from "../../call/nats/index.ts";
import type { BusConfig } from "../config/gateway-config.ts";
import type { Gateway } from "../gateway.ts";
import { connectBus, createBusVerifier } from "../sources/bus-connection.ts";
import type { CallTelemetry } from "./observe/call-telemetry.ts";
import { withEntry } from "./observe/entry.ts";

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
  /** Leaves the bus, calls under way first. */
  close(options?: { /** @default 10_000 */ readonly timeoutMs?: number | undefined }): Promise<void>;
}

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 30_000;

/** Serves the operations of a gateway on a bus; nothing where the config does not say so. A broker that is away is tried again. */
export function serveBus(
  gateway: Pick<Gateway, "executor">,
  bus: BusConfig | undefined,
  options: ServeBusOptions = {},
): GatewayBus | undefined {
  if (bus?.serveAs === undefined) return undefined;
  return new ServedBus(gateway, bus, options);
}

class ServedBus implements GatewayBus {
  readonly #gateway: Pick<Gateway, "executor">;
  readonly #config: BusConfig;
  readonly #options: ServeBusOptions;
  readonly #running: Promise<void>;
  readonly #stopping = new AbortController();
  #served: { readonly handler: CallHandler; readonly bus: NatsBus } | undefined;

  constructor(gateway: Pick<Gateway, "executor">, config: BusConfig, options: ServeBusOptions) {
    this.#gateway = gateway;
    this.#config = config;
    this.#options = options;
    this.#running = this.#run();
  }

  get state(): GatewayBus["state"] {
    if (this.#stopping.signal.aborted) return "closed";
    return this.#served === undefined ? "connecting" : "up";
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
    for (let delay = FIRST_DELAY_MS; !signal.aborted; delay = Math.min(delay * 2, LONGEST_DELAY_MS)) {
      try {
        this.#served = await this.#connect();
        return;
      } catch (cause) {
        if (signal.aborted) return;
        const why = cause instanceof Error ? cause.message : String(cause);
        this.#options.onWarning?.(`The bus is tried again: ${why}`, cause);
      }
      await pause(delay * (0.5 + Math.random() / 2), signal);
    }
  }

  async #connect(): Promise<{ readonly handler: CallHandler; readonly bus: NatsBus }> {
    const { serveCalls } = await import("../../call/index.ts");
    const trusted = await createBusVerifier(this.#config);
    const bus = await connectBus(this.#config, this.#stopping.signal);
    const { telemetry, onCall } = this.#options;
    if (onCall !== undefined) bus.onCall(onCall);
    try {
      const executor = withEntry(this.#gateway.executor, "bus", telemetry);
      return { bus, handler: await serveCalls(executor, bus, { name: this.#config.serveAs, ...trusted }) };
    } catch (thrown) {
      await bus.close();
      throw thrown;
    }
  }
}

/** Waits without keeping the process alive. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    timer.unref();
    signal.addEventListener("abort", end);
  });
}
