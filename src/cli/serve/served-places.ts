import { setTimeout as sleep } from "node:timers/promises";
import type { BusConfig } from "../../gateway/config/gateway-config.ts";
import type { LoadedConfig } from "../../gateway/config/loaded-config.ts";
import type { Gateway } from "../../gateway/gateway.ts";
import type { Metrics } from "../../gateway/serve/observe/metrics.ts";
import type { ReadRecord } from "../../gateway/serve/observe/read-record.ts";
import type { Telemetry } from "../../gateway/serve/observe/telemetry.ts";
import type { GatewayBus } from "../../gateway/serve/serve-bus.ts";
import type { GatewayServer } from "../../gateway/serve/serve-gateway.ts";
import type { GatewayStdio } from "../../gateway/serve/serve-gateway-stdio.ts";
import type { Io } from "../io.ts";
import { ownerOfAll } from "../owner-identity.ts";
import { DEFAULT_PORT, listenError, PORTS_TRIED } from "./listen-error.ts";

/** How long a client over stdio waits for sources before it hears anything. */
const FIRST_LIST_MS = 5_000;

/** What places are opened with. */
export interface PlacesOptions {
  readonly io: Io;
  readonly flags: { readonly port?: number; readonly host?: string; readonly stdio?: boolean };
  readonly metrics: Metrics;
  readonly telemetry: Telemetry | undefined;
  readonly onRead?: ((record: ReadRecord) => void) | undefined;
  readonly onWarning: (message: string, cause?: unknown) => void;
}

/** Everywhere a gateway is served: over HTTP, over stdio, on the bus. */
export class ServedPlaces {
  readonly #gateway: Gateway;
  readonly #options: PlacesOptions;
  #server: GatewayServer | undefined;
  #stdio: GatewayStdio | undefined;
  #bus: GatewayBus | undefined;
  #busConfig = "";
  #loaded: LoadedConfig | undefined;
  #joining: Promise<void> = Promise.resolve();
  #markStopping: () => void = () => {};
  #isStopping = false;
  /** Resolves once it begins to stop. */
  readonly stopping: Promise<void>;

  constructor(gateway: Gateway, options: PlacesOptions) {
    this.#gateway = gateway;
    this.#options = options;
    this.stopping = new Promise((resolve) => {
      this.#markStopping = resolve;
    });
  }

  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** Where it listens; nothing where it does not. */
  get url(): string | undefined {
    return this.#server?.url;
  }

  /** Resolves when a client over stdio has left; never without one. */
  get ended(): Promise<undefined> {
    return this.#stdio === undefined ? new Promise(() => {}) : this.#stdio.closed.then(() => undefined);
  }

  async open(loaded: LoadedConfig, kind: "config" | "target" | "embedded"): Promise<void> {
    const { io, flags, telemetry, onRead, onWarning } = this.#options;
    if (flags.stdio) {
      const { serveGatewayStdio } = await import("../../gateway/serve/serve-gateway-stdio.ts");
      const { stdin, stdout } = io;
      const identity = ownerOfAll(this.#owned(loaded));
      const options = { stdin, stdout, identity, telemetry, onRead, onWarning };
      // Hosts list once, and would miss what comes later.
      await Promise.race([this.#gateway.ready, sleep(FIRST_LIST_MS, undefined, { ref: false })]);
      this.#stdio = serveGatewayStdio(this.#gateway, loaded, options);
    }
    if (!flags.stdio || flags.port !== undefined) await this.#listen(loaded, kind);
    await this.#joinBus(loaded.config.bus);
  }

  /** What a client over stdio may do is what the config says by then. */
  #owned(loaded: LoadedConfig) {
    this.#loaded = loaded;
    const current = (): LoadedConfig => this.#loaded ?? loaded;
    return {
      gateway: this.#gateway,
      get loaded() {
        return current();
      },
    };
  }

  /** Without a config and a wish, the next port that is free will do. */
  async #listen(loaded: LoadedConfig, kind: "config" | "target" | "embedded"): Promise<void> {
    const { serveGateway } = await import("../../gateway/serve/serve-gateway.ts");
    const { flags, metrics, telemetry, onRead, onWarning } = this.#options;
    const { host } = flags;
    const wanted = flags.port ?? loaded.config.serve?.port ?? DEFAULT_PORT;
    const isFree = kind !== "config" && flags.port === undefined;
    for (let tried = 0; ; tried++) {
      // A port of the config is left to it, so that a change of it is followed.
      const port = flags.port ?? (isFree ? wanted + tried : undefined);
      try {
        this.#server = await serveGateway(this.#gateway, loaded, {
          host,
          port,
          metrics,
          telemetry,
          onRead,
          onWarning,
        });
        if (tried > 0) onWarning(`Port ${wanted} is in use; listening on ${this.#server.port} instead.`);
        return;
      } catch (thrown) {
        const error = listenError(thrown, host ?? loaded.config.serve?.host, port ?? wanted);
        if (!(isFree && error.isInUse && tried < PORTS_TRIED)) throw error.thrown;
      }
    }
  }

  /** A bus that is the same stays. */
  async #joinBus(bus: BusConfig | undefined): Promise<void> {
    const { telemetry, onWarning } = this.#options;
    const text = JSON.stringify(bus ?? null);
    if (text === this.#busConfig) return;
    this.#busConfig = text;
    await this.#bus?.close();
    if (bus?.serveAs === undefined) {
      this.#bus = undefined;
      return;
    }
    const { serveBus } = await import("../../gateway/serve/serve-bus.ts");
    this.#bus = serveBus(this.#gateway, bus, { telemetry, onWarning });
  }

  /** Serves as another config says; one after the other. Where it cannot, nothing has changed. */
  async reload(loaded: LoadedConfig): Promise<void> {
    await this.#server?.reload(loaded);
    await this.#stdio?.reload(loaded);
    this.#loaded = loaded;
    // A bus takes its time to be left and joined, which nobody has to wait for.
    this.#joining = this.#joining
      .then(() => (this.#isStopping ? undefined : this.#joinBus(loaded.config.bus)))
      .catch((thrown: unknown) => this.#options.onWarning("The bus cannot be joined.", thrown));
  }

  /** Stops listening, lets calls under way end for that time, and then ends them. */
  async close(timeoutMs: number): Promise<void> {
    this.#isStopping = true;
    this.#markStopping();
    await Promise.all([
      this.#server?.close({ timeoutMs }),
      this.#stdio?.close({ timeoutMs }),
      this.#joining.then(() => this.#bus?.close({ timeoutMs })),
    ]);
  }
}
