import { setTimeout as sleep } from "node:timers/promises";
import type { BusConfig } from "../../gateway/config/gateway-config.ts";
import type { LoadedConfig } from "../../gateway/config/loaded-config.ts";
import type { Gateway } from "../../gateway/gateway.ts";
import type { TokenHolders } from "../../gateway/serve/gateway-auth.ts";
import type { Metrics } from "../../gateway/serve/observe/metrics.ts";
import type { Observer } from "../../gateway/serve/observe/observer.ts";
import type { ReadRecord } from "../../gateway/serve/observe/read-record.ts";
import type { Telemetry } from "../../gateway/serve/observe/telemetry.ts";
import type { GatewayBus } from "../../gateway/serve/serve-bus.ts";
import type { GatewayServer } from "../../gateway/serve/serve-gateway.ts";
import type { GatewayStdio } from "../../gateway/serve/serve-gateway-stdio.ts";
import type { ReplayedCall } from "../../openapi/server/http-handler-options.ts";
import type { Io } from "../io.ts";
import { type Owned, ownerOfAll } from "../owner-identity.ts";
import { DEFAULT_PORT, listenError, PORTS_TRIED } from "./listen-error.ts";
import { ServedInspector, type ServedInspectorOptions } from "./served-inspector.ts";

/** How long a client over stdio waits for sources before it hears anything. */
const FIRST_LIST_MS = 5_000;

/** Flags that say where a gateway is served. */
type ServedFlags = ServedInspectorOptions["flags"] & {
  readonly port?: number;
  readonly host?: string;
  readonly stdio?: boolean;
};

/** A gateway that one person starts to look at it: it takes nothing away from others that serve the same config. */
export interface PersonalPlace {
  /** Where it listens, or at the next port that is free. */
  readonly firstPort: number;
  /** Tells who holds which token, by its name in the config. */
  holders(owned: Owned): TokenHolders;
  /** Hears at which address it listens, as soon as it does. */
  onListening(url: string): void;
}

/** What places are opened with. */
export interface PlacesOptions {
  readonly io: Io;
  readonly flags: ServedFlags;
  readonly metrics: Metrics;
  readonly observer: Observer;
  readonly telemetry: Telemetry | undefined;
  /** @default it is served to all whom the config lets in, on the bus as well */
  readonly personal?: PersonalPlace | undefined;
  readonly onRead?: ((record: ReadRecord) => void) | undefined;
  readonly onReplay?: ((call: ReplayedCall) => void) | undefined;
  readonly onWarning: (message: string, cause?: unknown) => void;
}

/** Everywhere a gateway is served: over HTTP, over stdio, on the bus. */
export class ServedPlaces {
  readonly #gateway: Gateway;
  readonly #options: PlacesOptions;
  #server: GatewayServer | undefined;
  #stdio: GatewayStdio | undefined;
  readonly #inspector: ServedInspector;
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
    const { io, flags, observer, telemetry, onWarning } = options;
    const loaded = (): LoadedConfig => this.#loaded as LoadedConfig;
    this.#inspector = new ServedInspector({ io, flags, gateway, observer, telemetry, loaded, onWarning });
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

  /** Whether the inspector is there now. */
  get isInspected(): boolean {
    return this.#inspector.isOn;
  }

  /** Resolves when a client over stdio has left; never without one. */
  get ended(): Promise<undefined> {
    return this.#stdio === undefined ? new Promise(() => {}) : this.#stdio.closed.then(() => undefined);
  }

  async open(loaded: LoadedConfig, kind: "config" | "target" | "embedded"): Promise<void> {
    const { io, flags, telemetry, personal, onRead, onWarning } = this.#options;
    this.#loaded = loaded;
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
    if (personal === undefined) await this.#joinBus(loaded.config.bus);
  }

  /** What an owner may do is what the config says by then. */
  #owned(loaded: LoadedConfig): Owned {
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
    const { flags, personal, onWarning } = this.#options;
    await this.#inspector.follow(loaded);
    const wanted = flags.port ?? personal?.firstPort ?? loaded.config.serve?.port ?? DEFAULT_PORT;
    const isFree = flags.port === undefined && (personal !== undefined || kind !== "config");
    for (let tried = 0; ; tried++) {
      // A port of the config is left to it, so that a change of it is followed.
      const port = flags.port ?? (isFree ? wanted + tried : undefined);
      try {
        this.#server = await this.#serve(loaded, port);
        break;
      } catch (thrown) {
        const error = listenError(thrown, this.#host ?? loaded.config.serve?.host, port ?? wanted);
        if (!(isFree && error.isInUse && tried < PORTS_TRIED)) throw error.thrown;
      }
    }
    const { url, port } = this.#server;
    if (personal !== undefined) personal.onListening(url);
    else if (isFree && port !== wanted) onWarning(`Port ${wanted} is in use; listening on ${port} instead.`);
  }

  async #serve(loaded: LoadedConfig, port: number | undefined): Promise<GatewayServer> {
    const { serveRoutedGateway } = await import("../../gateway/serve/serve-gateway.ts");
    const { metrics, telemetry, personal, onRead, onReplay, onWarning } = this.#options;
    const { routes } = this.#inspector;
    const holders = personal?.holders(this.#owned(loaded));
    const beyond = { metrics, telemetry, routes, holders, onRead, onReplay, onWarning };
    return serveRoutedGateway(this.#gateway, loaded, { host: this.#host, port, ...beyond });
  }

  /** What somebody looks at for themselves is for this machine alone, unless they say otherwise. */
  get #host(): string | undefined {
    const { flags, personal } = this.#options;
    return flags.host ?? (personal === undefined ? undefined : "127.0.0.1");
  }

  /** A bus that is the same stays. */
  async #joinBus(bus: BusConfig | undefined): Promise<void> {
    const { telemetry, observer, onWarning } = this.#options;
    const text = JSON.stringify(bus ?? null);
    if (text === this.#busConfig) return;
    this.#busConfig = text;
    await this.#bus?.close();
    if (bus?.serveAs === undefined) {
      this.#bus = undefined;
      return;
    }
    const { serveBus } = await import("../../gateway/serve/serve-bus.ts");
    this.#bus = serveBus(this.#gateway, bus, { telemetry, onCall: observer.busCall, onWarning });
  }

  /** Serves as another config says; one after the other. Where it cannot, nothing has changed but who may call. */
  async reload(loaded: LoadedConfig): Promise<void> {
    await this.#server?.reload(loaded);
    await this.#stdio?.reload(loaded);
    this.#loaded = loaded;
    if (this.#server !== undefined && !this.#isStopping) await this.#inspector.follow(loaded);
    if (this.#options.personal !== undefined) return;
    // A bus takes its time to be left and joined, which nobody has to wait for.
    this.#joining = this.#joining
      .then(() => (this.#isStopping ? undefined : this.#joinBus(loaded.config.bus)))
      .catch((thrown: unknown) => this.#options.onWarning("The bus cannot be joined.", thrown));
  }

  /** Says at `/ready` that it will close, and serves everything as before. */
  announceClose(): void {
    this.#server?.announceClose();
  }

  /** Stops listening, lets calls under way end for that time, and then ends them. */
  async close(timeoutMs: number): Promise<void> {
    this.#isStopping = true;
    this.#markStopping();
    // A page that watches would keep the listener open.
    const inspected = this.#inspector.close(timeoutMs);
    await Promise.all([
      inspected,
      this.#server?.close({ timeoutMs }),
      this.#stdio?.close({ timeoutMs }),
      this.#joining.then(() => this.#bus?.close({ timeoutMs })),
    ]);
  }
}
