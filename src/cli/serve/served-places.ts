import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Identity } from "../../core/access/identity.ts";
import { CallError } from "../../core/errors/errors.ts";
import { safeLine } from "../../core/text/clean-text.ts";
import { answerApprovals } from "../../gateway/approvals/approvals-route.ts";
import { APPROVE_SCOPE } from "../../gateway/approvals/approve-policy.ts";
import { APPROVALS_PATH } from "../../gateway/approvals/gateway-approvals.ts";
import type { BusConfig } from "../../gateway/config/gateway-config.ts";
import type { LoadedConfig } from "../../gateway/config/loaded-config.ts";
import type { Gateway } from "../../gateway/gateway.ts";
import type { ReplicaSummaries } from "../../gateway/replicas/replica-summaries.ts";
import type { TokenHolders } from "../../gateway/serve/gateway-auth.ts";
import type { GatewayRoute } from "../../gateway/serve/gateway-front.ts";
import type { GatewayPartsOptions } from "../../gateway/serve/gateway-parts.ts";
import type { Metrics } from "../../gateway/serve/observe/metrics.ts";
import { type CallTelemetry, type Observer, withEntry } from "../../gateway/serve/observe/observer.ts";
import type { Telemetry } from "../../gateway/serve/observe/telemetry.ts";
import { createDirectory } from "../../gateway/serve/operation-directory.ts";
import type { GatewayBus } from "../../gateway/serve/serve-bus.ts";
import type { GatewayServer } from "../../gateway/serve/serve-gateway.ts";
import type { GatewayStdio } from "../../gateway/serve/serve-gateway-stdio.ts";
import { DEFAULT_PORT, DRAIN_MS } from "../../gateway/serve/serve-settings.ts";
import type { HttpAnswer } from "../../http/exchange.ts";
import { createHostGuard } from "../../http/host-guard.ts";
import { listenHttp } from "../../http/listen.ts";
import type { NodeRequest } from "../../http/node-exchange.ts";
import type { Inspector, InspectorOptions } from "../../inspector/server/inspector.ts";
import { createSharedHttpHandler } from "../../openapi/server/http-handler.ts";
import type { HttpHandlerOptions } from "../../openapi/server/http-handler-options.ts";
import { CommandError, EXIT, type Io } from "../io.ts";
import { sourceWords, spelledCommand } from "../pasted-command.ts";
import { type Owned, ownerIdentity, ownerOfAll } from "../session/owner-identity.ts";
import {
  digestOfConfig,
  gatewayProof,
  isCallerToken,
  isNonce,
  PROOF_PATH,
  type RunningGateway,
  removeRunning,
  writeRunning,
} from "../session/running-gateway.ts";
import type { SourceFlags } from "../session/session.ts";

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
interface PlacesOptions extends Pick<GatewayPartsOptions, "onRead" | "onReplay" | "onWarning"> {
  readonly io: Io;
  readonly flags: ServedFlags;
  readonly metrics: Metrics;
  readonly observer: Observer;
  readonly telemetry: Telemetry | undefined;
  /** Knows the other replicas. @default there are none */
  readonly summaries?: ReplicaSummaries | undefined;
  /** @default it is served to all whom the config lets in, on the bus as well */
  readonly personal?: PersonalPlace | undefined;
}

/** Everywhere a gateway is served: over HTTP, over stdio, on the bus. */
export class ServedPlaces {
  readonly #gateway: Gateway;
  readonly #options: PlacesOptions;
  #server: GatewayServer | undefined;
  #stdio: GatewayStdio | undefined;
  readonly #inspector: ServedInspector;
  #bus: GatewayBus | undefined;
  #local: LocalEndpoint | undefined;
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
    const { io, flags, observer, telemetry, summaries, onRead, onWarning } = options;
    const loaded = (): LoadedConfig => this.#loaded as LoadedConfig;
    this.#inspector = new ServedInspector({
      io,
      flags,
      gateway,
      observer,
      telemetry,
      loaded,
      summaries,
      onRead,
      onWarning,
    });
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

  /** What was dropped or refused of what came in over the bus; nothing where it is not served there. */
  get busCounters(): GatewayBus["counters"] {
    return this.#bus?.counters;
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
    if (personal !== undefined) return;
    await this.#joinBus(loaded.config.bus);
    if (kind === "config") await this.#openLocal(loaded);
  }

  /** Commands of the same user use this gateway in place of starting its sources again. */
  async #openLocal(loaded: LoadedConfig): Promise<void> {
    const { io, onWarning } = this.#options;
    const identity = (): Identity | undefined => ownerOfAll(this.#owned(loaded));
    // The person who started the gateway may decide about the calls that its policies hold.
    const approver = (): Identity => ownerIdentity(this.#owned(loaded), [APPROVE_SCOPE]);
    this.#local = await openLocalEndpoint(loaded, {
      env: io.env,
      gateway: this.#gateway,
      identity,
      approver,
      onWarning,
    });
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
    if (!this.#isStopping) await this.#local?.follow(loaded);
    if (this.#options.personal !== undefined) return;
    // A bus takes its time to be left and joined, which nobody has to wait for.
    this.#joining = this.#joining
      .then(() => (this.#isStopping ? undefined : this.#joinBus(loaded.config.bus)))
      .catch((thrown: unknown) => this.#options.onWarning("The bus cannot be joined.", thrown));
  }

  /** Says at `/ready` that it will close, and serves everything as before. */
  announceClose(): void {
    void this.#local?.hide();
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
      this.#local?.close(timeoutMs),
      this.#server?.close({ timeoutMs }),
      this.#stdio?.close({ timeoutMs }),
      this.#joining.then(() => this.#bus?.close({ timeoutMs })),
    ]);
  }
}

/** How many ports are tried after the first. */
const PORTS_TRIED = 20;

/** What is wrong with where to listen, in words for people. */
function listenError(
  thrown: unknown,
  host = "127.0.0.1",
  port = 0,
): { readonly isInUse: boolean; readonly thrown: unknown } {
  const code = codeOf(thrown);
  const words = messageFor(code, safeLine(host, 100), port);
  if (words === undefined) return { isInUse: false, thrown };
  return { isInUse: code === "EADDRINUSE", thrown: new CommandError(words, EXIT.usage, { cause: thrown }) };
}

function messageFor(code: unknown, host: string, port: number): string | undefined {
  switch (code) {
    case "EADDRINUSE":
      return `Port ${port} is in use; give another one with --port (0 for a free one), or end what listens there.`;
    case "EACCES":
      return `Port ${port} may not be listened on; give one above 1023 with --port.`;
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `"${host}" is no address of this machine; give one with --host, such as 127.0.0.1.`;
    default:
      return undefined;
  }
}

function codeOf(thrown: unknown): unknown {
  for (let error = thrown, depth = 0; error instanceof Error && depth < 5; error = error.cause, depth++) {
    const { code } = error as NodeJS.ErrnoException;
    if (typeof code === "string") return code;
  }
  return undefined;
}

interface ServedInspectorOptions
  extends Pick<InspectorOptions, "gateway" | "observer" | "loaded" | "onRead"> {
  readonly io: Io;
  /** What the command line says wins over the config, for as long as it runs. */
  readonly flags: SourceFlags & { readonly inspect?: boolean };
  readonly telemetry: CallTelemetry | undefined;
  readonly summaries: ReplicaSummaries | undefined;
  readonly onWarning: (message: string, cause?: unknown) => void;
}

/** The inspector of a gateway, there for as long as somebody wants it; it is loaded when it is first wanted. */
class ServedInspector {
  /** Those of the inspector, or none; the same list for as long as the gateway is served. */
  readonly routes: GatewayRoute[] = [];
  readonly #options: ServedInspectorOptions;
  #inspector: Inspector | undefined;
  /** Whether it was wanted last. */
  #isWanted = false;

  constructor(options: ServedInspectorOptions) {
    this.#options = options;
  }

  get isOn(): boolean {
    return this.#inspector !== undefined;
  }

  /** Begins or ends as the command line and a config say. */
  async follow(loaded: LoadedConfig): Promise<void> {
    this.#isWanted = this.#options.flags.inspect ?? loaded.config.serve?.inspect ?? false;
    const { drainMs = DRAIN_MS } = loaded.config.serve ?? {};
    // Nobody waits for calls that go on to their end.
    if (!this.#isWanted) void this.close(drainMs);
    else if (!this.isOn) await this.#begin(loaded);
  }

  /** Ends every feed that is open, and is not there any more; resolves when calls of pages have ended, after that time at the latest. */
  async close(timeoutMs: number): Promise<void> {
    const inspector = this.#inspector;
    this.#isWanted = false;
    this.routes.length = 0;
    this.#inspector = undefined;
    await inspector?.close({ timeoutMs });
  }

  async #begin({ secrets }: LoadedConfig): Promise<void> {
    const { io, flags, gateway, observer, telemetry, loaded, summaries, onRead, onWarning } = this.#options;
    const { createInspector } = await import("../../inspector/server/inspector.ts");
    // It may have been given up meanwhile.
    if (!this.#isWanted || this.isOn) return;
    const command = { words: spelledCommand(io), flags: secrets.mask(sourceWords(flags)) };
    this.#inspector = createInspector({
      gateway,
      observer,
      loaded,
      command,
      telemetry,
      onRead,
      onWarning,
      replicas: summaries && (() => summaries.read()),
    });
    this.routes.push(this.#inspector.route);
  }
}

/** The longest time a timer takes: the owner decides how long a call may take. */
const LONGEST_MS = 2_147_483_647;
/** As much as commands read from files, as base64. */
const BODY_BYTES = 100_663_296;

/** What an endpoint is opened with. */
interface LocalEndpointOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly gateway: Gateway;
  /** Who the user of this process is to operations, as the config says by then. */
  readonly identity: () => Identity | undefined;
  /** The same person, as one who decides about calls that wait. */
  readonly approver: () => Identity;
  readonly onWarning: (message: string, cause?: unknown) => void;
}

/** Where commands of the same user find a gateway that runs. */
interface LocalEndpoint {
  /** Says which config is served from now on. */
  follow(loaded: LoadedConfig): Promise<void>;
  /** Is not to be found any more; who has found it is answered as before. */
  hide(): Promise<void>;
  /** Is not to be found any more, and ends what was begun here after that time. */
  close(timeoutMs: number): Promise<void>;
}

/**
 * Listens on a port of the loopback interface for commands of the same user, and writes down where in a file that this user alone can
 * read. Who calls proves to have read the file, who is called to have written it; nobody else is answered. Gives nothing for a config
 * that lies in no file, and where it cannot be: commands then start their own sources as ever.
 */
async function openLocalEndpoint(
  loaded: LoadedConfig,
  options: LocalEndpointOptions,
): Promise<LocalEndpoint | undefined> {
  const { path } = loaded;
  if (path === undefined) return undefined;
  try {
    return await listen(path, loaded, options);
  } catch (thrown) {
    options.onWarning("Commands cannot find this gateway: there is no place for them to ask.", thrown);
    return undefined;
  }
}

async function listen(
  path: string,
  loaded: LoadedConfig,
  { env, gateway, identity, approver, onWarning }: LocalEndpointOptions,
): Promise<LocalEndpoint> {
  const secret = randomBytes(32).toString("hex");
  let running: RunningGateway = { url: "", pid: process.pid, digest: "", secret };
  const guard = createHostGuard({}, { methods: [], requestHeaders: [], exposedHeaders: [] });
  const isCaller = (authorization: string | null | undefined): boolean => {
    const [, token = ""] = /^Bearer (\S{1,200})$/.exec(authorization ?? "") ?? [];
    return isCallerToken(token, running);
  };
  const options: HttpHandlerOptions = {
    authenticate(request) {
      if (isCaller(request.headers.get("authorization"))) return identity();
      throw new CallError("UNAUTHENTICATED", undefined, { stack: false });
    },
    tasks: gateway.tasks,
    directory: createDirectory(gateway, true),
    docs: false,
    limits: { timeoutMs: LONGEST_MS, bodyBytes: BODY_BYTES },
    onWarning,
  };
  const executor = withEntry(gateway.executor, "cli");
  const handler = createSharedHttpHandler(executor, options, { keys: gateway.state.keys("http") });
  const answer = (request: NodeRequest): Promise<HttpAnswer> | HttpAnswer => {
    if (request.header("origin") !== undefined) return plain(403, "Web pages have no place here.");
    const refusal = guard.check(request);
    if (refusal !== undefined) return plain(refusal.status, refusal.message);
    if (request.path.startsWith(`${APPROVALS_PATH}/`)) {
      if (!isCaller(request.header("authorization"))) return plain(401, "Who asks has to prove it.");
      return answerApprovals(gateway.approvals, request, approver());
    }
    if (request.path !== PROOF_PATH) return handler.handle(request);
    const nonce = new URLSearchParams(request.query).get("nonce");
    return isNonce(nonce) ? plain(200, gatewayProof(running, nonce)) : plain(400, "A proof needs a nonce.");
  };
  const listener = await listenHttp(
    {
      onRequest(request) {
        Promise.resolve(answer(request))
          .then((given) => request.send(given))
          .catch(() => request.response.destroy());
      },
      onClose: (timeoutMs) => handler.close({ timeoutMs }),
    },
    { host: "127.0.0.1", port: 0 },
  );
  running = { ...running, url: listener.origin };
  let file: string | undefined;
  let isHidden = false;
  const follow = async (next: LoadedConfig): Promise<void> => {
    running = { ...running, digest: digestOfConfig(next) };
    if (isHidden) return;
    try {
      file = await writeRunning(env, path, running);
    } catch (thrown) {
      onWarning("Commands cannot find this gateway: its file cannot be written.", thrown);
    }
  };
  await follow(loaded);
  const hide = async (): Promise<void> => {
    isHidden = true;
    if (file !== undefined) await removeRunning(file);
  };
  return {
    follow,
    hide,
    async close(timeoutMs) {
      await hide();
      await listener.close({ timeoutMs });
    },
  };
}

function plain(status: number, body: string): HttpAnswer {
  return { status, headers: { "content-type": "text/plain", "cache-control": "no-store" }, body };
}
