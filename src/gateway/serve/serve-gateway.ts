import type { Identity } from "../../core/access/identity.ts";
import { isExpired } from "../../http/caller.ts";
import { type HttpListener, listenHttp } from "../../http/listen.ts";
import type { ReplayedCall } from "../../openapi/server/http-handler-options.ts";
import { ApprovalsRoute } from "../approvals/approvals-route.ts";
import { LOGIN_PATH, LoginPage } from "../callers/login-page.ts";
import { ConfigError, type LoadedConfig } from "../config/loaded-config.ts";
import type { Gateway } from "../gateway.ts";
import { isSourceVisible } from "../missing-operation.ts";
import { ReplicaShare } from "../replicas/replica-share.ts";
import { GatewayAuth, type TokenHolders } from "./gateway-auth.ts";
import { GatewayFront, type GatewayRoute } from "./gateway-front.ts";
import { GatewayParts, type PreparedParts } from "./gateway-parts.ts";
import type { Metrics } from "./observe/metrics.ts";
import type { CallTelemetry, ReadRecord } from "./observe/observer.ts";
import {
  isAuthOn,
  readServeSettings,
  refuseItself,
  type ServePlace,
  type ServeSettings,
} from "./serve-settings.ts";

/** What a gateway is served with beyond its config. */
export interface ServeGatewayOptions extends ServePlace {
  /** Shown at `/metrics`. @default nothing is */
  readonly metrics?: Metrics | undefined;
  /** Begins the spans of calls. @default nobody does */
  readonly telemetry?: CallTelemetry | undefined;
  /** Hears of every resource that was read and every prompt that was filled in. @default nobody does */
  readonly onRead?: ((record: ReadRecord) => void) | undefined;
  /** Hears of every HTTP call that was answered as the first one of its idempotency key was. @default nobody does */
  readonly onReplay?: ((call: ReplayedCall) => void) | undefined;
  /** Hears what is odd; it must mask secrets. @default nobody does */
  readonly onWarning?: ((message: string, cause?: unknown) => void) | undefined;
}

/** The same, and what else is served. */
interface RoutedGatewayOptions extends ServeGatewayOptions {
  /** Under prefixes of their own; looked at with every request, so that they may come and go. @default nothing */
  readonly routes?: readonly GatewayRoute[] | undefined;
  /** Who holds a token, by its name in the config, where that is more than a config can say. @default what the config says */
  readonly holders?: TokenHolders | undefined;
}

/** Milliseconds after which a gateway counts as ready, though sources are still being tried for the first time. */
const READY_MS = 30_000;

/** A gateway that listens. */
export interface GatewayServer {
  /** Scheme, address and port. */
  readonly url: string;
  readonly port: number;
  /**
   * Serves as another config says; calls under way go on, and what has not changed stays as it is. Rejects where that cannot be, and then
   * everything stays as it was but for who may call: tokens that are gone are refused all the same.
   */
  reload(loaded: LoadedConfig): Promise<void>;
  /** Says 503 at `/ready` from now on, so that load balancers look elsewhere, and serves everything as before until `close`. */
  announceClose(): void;
  /** Stops listening, waits for what runs, and ends it after `timeoutMs`. */
  close(options?: { /** @default `serve.drainMs` */ readonly timeoutMs?: number | undefined }): Promise<void>;
}

/** Serves a gateway over HTTP on one port: MCP, the HTTP API, its document and page, and metrics. */
export function serveGateway(
  gateway: Gateway,
  loaded: LoadedConfig,
  options: ServeGatewayOptions = {},
): Promise<GatewayServer> {
  if (loaded.config.serve?.inspect === true) {
    options.onWarning?.("serve.inspect is for the command: only `waybill serve` brings the inspector.");
  }
  return serveRoutedGateway(gateway, loaded, options);
}

/** The same, with routes of ours beside. */
export async function serveRoutedGateway(
  gateway: Gateway,
  loaded: LoadedConfig,
  options: RoutedGatewayOptions,
): Promise<GatewayServer> {
  const server = new ListeningGateway(gateway, loaded, options);
  await server.start(loaded);
  return server;
}

class ListeningGateway implements GatewayServer {
  readonly #options: RoutedGatewayOptions;
  readonly #warn: (message: string, cause?: unknown) => void;
  readonly #auth: GatewayAuth;
  readonly #share: ReplicaShare;
  readonly #parts: GatewayParts;
  readonly #front: GatewayFront;
  readonly #login: LoginPage;
  readonly #gateway: Gateway;
  /** What is being drained. */
  readonly #leaving = new Set<Promise<unknown>>();
  #settings: ServeSettings;
  #loaded: LoadedConfig;
  /** Who is let in now. */
  #believed: ServeSettings["auth"];
  #listener: HttpListener | undefined;
  #reloading: Promise<void> = Promise.resolve();
  #closing: Promise<void> | undefined;

  constructor(gateway: Gateway, loaded: LoadedConfig, options: RoutedGatewayOptions) {
    const { metrics, telemetry, routes = [], onRead, onReplay, onWarning = () => {} } = options;
    this.#options = options;
    this.#loaded = loaded;
    this.#warn = onWarning;
    this.#settings = readServeSettings(loaded, options);
    refuseItself(loaded, this.#settings);
    this.#believed = this.#settings.auth;
    this.#auth = asConfig(
      () =>
        new GatewayAuth(this.#settings.auth, {
          holders: options.holders,
          publicUrl: this.#settings.serve.publicUrl,
        }),
    );
    const auth = this.#auth;
    const hears = { telemetry, onRead, onReplay, onWarning };
    const share = new ReplicaShare({
      state: gateway.state,
      sessions: this.#settings.serve.sessions,
      handle: (request) => this.#front.answerLed(request),
      onWarning,
    });
    this.#share = share;
    const parts = new GatewayParts(this.#settings, { gateway, auth, share, ...hears });
    this.#parts = parts;
    this.#gateway = gateway;
    this.#login = new LoginPage({
      logins: gateway.logins,
      loaded: () => this.#loaded,
      identify: (token) => this.#identify(token),
      isVisible: (name, identity) => {
        const source = gateway.sources.find((one) => one.name === name);
        return source !== undefined && isSourceVisible(gateway, source, { identity });
      },
      onWarning,
    });
    const login = this.#login;
    const { route } = new ApprovalsRoute({
      approvals: gateway.approvals,
      isAuthOn: () => auth.isOn,
      identify: (token) => this.#identify(token),
      isCurrent: (identity) => auth.isCurrent(identity) && !isExpired(identity),
      name: () => this.#settings.name,
      publicUrl: () => this.#settings.serve.publicUrl,
      onWarning,
    });
    const approvals = {
      route,
      get isOn() {
        return gateway.approvals.hasPage;
      },
    };
    const state = () => gateway.state.report();
    const shown = { metrics, telemetry, state, lead: share.lead.bind(share) };
    gateway.state.start();
    this.#front = asConfig(
      () => new GatewayFront(this.#settings, { ...shown, parts, auth, routes, login, approvals, onWarning }),
    );
    // A source that takes for ever keeps nobody from using the others, and a state that cannot be reached nobody from calls without a key.
    const patience = setTimeout(() => this.#front.open(), READY_MS).unref();
    void Promise.all([gateway.ready, gateway.state.opened]).then(() => {
      clearTimeout(patience);
      this.#front.open();
    });
  }

  get url(): string {
    return this.#listener?.origin ?? "";
  }

  get port(): number {
    return this.#listener?.port ?? 0;
  }

  /** Listens for the first time. */
  async start(loaded: LoadedConfig): Promise<void> {
    await this.#share.start();
    await this.#parts.use(
      asConfig(() => this.#parts.prepare(loaded, this.#settings)),
      0,
    );
    try {
      this.#listener = await this.#listen(this.#settings);
      this.#gateway.logins.listensAt(this.#listener.origin);
      this.#gateway.approvals.servedAt(this.#listener.origin);
    } catch (thrown) {
      await this.#parts.close(0);
      await this.#share.close();
      throw thrown;
    }
  }

  reload(loaded: LoadedConfig): Promise<void> {
    const reloading = this.#reloading.then(() => this.#reload(loaded));
    this.#reloading = reloading.catch(() => {});
    return reloading;
  }

  close({
    timeoutMs = this.#settings.drainMs,
  }: {
    readonly timeoutMs?: number | undefined;
  } = {}): Promise<void> {
    this.#closing ??= this.#close(timeoutMs);
    return this.#closing;
  }

  /** Whose a token of the gateway is, as if it came with a request. */
  async #identify(token: string): Promise<Identity | undefined> {
    const header = (name: string): string | undefined =>
      name === "authorization" ? `Bearer ${token}` : undefined;
    const admitted = await this.#auth.identify({ method: "GET", path: LOGIN_PATH, origin: this.url, header });
    return "identity" in admitted ? admitted.identity : undefined;
  }

  announceClose(): void {
    this.#front.close();
  }

  async #reload(loaded: LoadedConfig): Promise<void> {
    if (this.#closing !== undefined) return;
    const settings = readServeSettings(loaded, this.#options);
    refuseItself(loaded, settings);
    // Whether they make sense is found out before anything changes.
    asConfig(() => new GatewayAuth(settings.auth, settings.serve));
    // Callers who lost access are refused even where the rest cannot be done; nobody is let in unasked before it is.
    if (isAuthOn(settings.auth)) this.#believe(settings);
    const { prepared, listener } = await this.#prepare(loaded, settings).catch((thrown: unknown) => {
      this.#keep();
      throw thrown;
    });
    this.#believe(settings);
    this.#parts.formats.set(settings.serve);
    this.#front.set(settings);
    this.#share.set(settings.serve.sessions);
    this.#settings = settings;
    this.#loaded = loaded;
    this.#leave(this.#parts.use(prepared, settings.drainMs));
    if (listener === undefined) return;
    const left = this.#listener;
    this.#listener = listener;
    this.#gateway.logins.listensAt(listener.origin);
    if (left !== undefined) this.#leave(left.close({ timeoutMs: settings.drainMs }));
  }

  /** Tells callers from one another by other settings, and ends what those have open who are not let in any more. */
  #believe({ auth, serve }: ServeSettings): void {
    this.#auth.set(auth, serve.publicUrl);
    this.#believed = auth;
    this.#parts.recheck();
  }

  /** Serves as before, to those who may call now. */
  #keep(): void {
    const kept = { ...this.#settings, auth: this.#believed };
    this.#settings = kept;
    this.#leave(this.#parts.use(this.#parts.prepare(this.#loaded, kept), kept.drainMs));
  }

  async #prepare(
    loaded: LoadedConfig,
    settings: ServeSettings,
  ): Promise<{ readonly prepared: PreparedParts; readonly listener: HttpListener | undefined }> {
    const { host, port } = this.#settings;
    const hasMoved = settings.host !== host || settings.port !== port;
    const prepared = asConfig(() => this.#parts.prepare(loaded, settings));
    try {
      return { prepared, listener: hasMoved ? await this.#listenElsewhere(settings) : undefined };
    } catch (thrown) {
      await this.#parts.discard(prepared);
      throw thrown;
    }
  }

  async #listenElsewhere(settings: ServeSettings): Promise<HttpListener> {
    try {
      return await this.#listen(settings);
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new Error(`The gateway still listens on ${this.url}: ${why}`, { cause });
    }
  }

  async #listen(settings: ServeSettings): Promise<HttpListener> {
    const { host, port, isPublic } = settings;
    const onClose = async (timeoutMs: number): Promise<void> => {
      // A listener that has been left for another one is not the end of what it listened for.
      if (this.#closing !== undefined) await this.#parts.close(timeoutMs);
    };
    const listener = await listenHttp({ onRequest: this.#front.onRequest, onClose }, { host, port });
    if (isPublic) {
      this.#warn(
        `The gateway listens on ${host} without encryption: tokens and results can be read on the way, unless a proxy with TLS stands in front.`,
      );
    }
    return listener;
  }

  #leave(work: Promise<unknown>): void {
    const left = work
      .catch((thrown) => this.#warn("What was replaced did not end well.", thrown))
      .finally(() => this.#leaving.delete(left));
    this.#leaving.add(left);
  }

  async #close(timeoutMs: number): Promise<void> {
    this.#front.close();
    this.#login.close();
    await this.#reloading;
    await this.#listener?.close({ timeoutMs });
    await this.#parts.close(0);
    await this.#share.close();
    await Promise.all(this.#leaving);
  }
}

/** What servers find wrong with their options is a mistake of the config here. */
function asConfig<T>(make: () => T): T {
  try {
    return make();
  } catch (thrown) {
    if (!(thrown instanceof TypeError)) throw thrown;
    const { message } = thrown;
    throw new ConfigError([message.startsWith("serve.") ? message : `serve: ${message}`]);
  }
}
