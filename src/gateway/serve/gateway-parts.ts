import { HeldIdentity, type Identity } from "../../core/access/identity.ts";
import type { EndedCall } from "../../core/result/ended-call.ts";
import type { ResultFormat } from "../../core/result/result-reader.ts";
import { FORMAT_NAMES, type FormatName } from "../../core/result/tool-result.ts";
import { createResultFormat, type ResultStore, type ToolFormat } from "../../formats/index.ts";
import { withRefusalHeaders } from "../../http/authentication.ts";
import { FetchRequest } from "../../http/fetch-exchange.ts";
import { createMcpEndpoint, type McpEndpoint } from "../../mcp/server/http/mcp-endpoint.ts";
import type { McpServer } from "../../mcp/server/mcp-server.ts";
import type { McpClient } from "../../mcp/server/mcp-server-options.ts";
import { refusalError } from "../../openapi/server/admission.ts";
import { createSharedHttpHandler, type HttpHandler } from "../../openapi/server/http-handler.ts";
import type { HttpHandlerOptions, ReplayedCall } from "../../openapi/server/http-handler-options.ts";
import type { ServeConfig } from "../config/gateway-config.ts";
import type { LoadedConfig } from "../config/loaded-config.ts";
import type { Gateway } from "../gateway.ts";
import { matchesPattern } from "../glob.ts";
import { explainMissing, forCallers, isSourceVisible } from "../missing-operation.ts";
import type { ReplicaShare } from "../replicas/replica-share.ts";
import type { GatewayAuth } from "./gateway-auth.ts";
import { createGatewayMcp, mcpSettings } from "./gateway-mcp.ts";
import { type CallTelemetry, markEntry, type ReadRecord, withEntry } from "./observe/observer.ts";
import { createDirectory } from "./operation-directory.ts";
import { isAuthOn, type ServeSettings } from "./serve-settings.ts";

/** What a gateway is served with. */
export interface GatewayPartsOptions {
  readonly gateway: Gateway;
  readonly auth: GatewayAuth;
  /** What is shared with replicas. @default nothing is */
  readonly share?: ReplicaShare | undefined;
  readonly telemetry: CallTelemetry | undefined;
  readonly onRead?: ((record: ReadRecord) => void) | undefined;
  readonly onReplay?: ((call: ReplayedCall) => void) | undefined;
  readonly onWarning: (message: string, cause?: unknown) => void;
}

/** A handler and what it was made from: it stays for as long as that is the same. */
interface Part<T> {
  readonly key: string;
  readonly handler: T;
  close(timeoutMs: number): Promise<void>;
}

/** Parts that were made for other settings, and are not in use yet. */
export interface PreparedParts {
  readonly mcp: Part<McpEndpoint> | undefined;
  readonly http: Part<HttpHandler> | undefined;
}

/** The handlers of a gateway, made anew only where their settings have changed. */
export class GatewayParts {
  readonly formats: GatewayFormats;
  readonly #options: GatewayPartsOptions;
  readonly #store: ResultStore;
  #now: PreparedParts = { mcp: undefined, http: undefined };

  constructor(settings: ServeSettings, options: GatewayPartsOptions) {
    this.#options = options;
    this.#store = options.gateway.state.results();
    this.formats = new GatewayFormats(settings.serve, {
      tokenFormat: (identity) => options.auth.formatOf(identity),
      budgetOf: (id) => options.gateway.policies.budgetOf(id),
      store: this.#store,
    });
  }

  get mcp(): McpEndpoint | undefined {
    return this.#now.mcp?.handler;
  }

  get http(): HttpHandler | undefined {
    return this.#now.http?.handler;
  }

  /** Makes what is needed for these settings; the present parts go on, and are among it where they still fit. */
  prepare(loaded: LoadedConfig, settings: ServeSettings): PreparedParts {
    const mcp = this.#prepareMcp(loaded, settings);
    try {
      return { mcp, http: this.#prepareHttp(settings) };
    } catch (thrown) {
      if (mcp !== this.#now.mcp) void mcp?.close(0);
      throw thrown;
    }
  }

  /** Puts prepared parts in use; resolves when those they replace are done. */
  async use(prepared: PreparedParts, timeoutMs: number): Promise<void> {
    const { mcp, http } = this.#now;
    this.#now = prepared;
    await Promise.all([
      mcp === prepared.mcp ? undefined : mcp?.close(timeoutMs),
      http === prepared.http ? undefined : http?.close(timeoutMs),
    ]);
  }

  /** Ends streams of callers who are not let in any more; MCP begins anew where others are. */
  recheck(): void {
    this.#now.http?.handler.recheck();
  }

  /** Ends what was prepared and is not used after all. */
  async discard({ mcp, http }: PreparedParts): Promise<void> {
    await Promise.all([
      mcp === this.#now.mcp ? undefined : mcp?.close(0),
      http === this.#now.http ? undefined : http?.close(0),
    ]);
  }

  /** Ends both. */
  async close(timeoutMs: number): Promise<void> {
    await Promise.all([this.#now.mcp?.close(timeoutMs), this.#now.http?.close(timeoutMs)]);
  }

  /** An MCP server of this gateway; over stdio there is no more to it. */
  createMcpServer(loaded: LoadedConfig, entry: "mcp" | "stdio"): McpServer | undefined {
    const { gateway, telemetry, onRead, onWarning, share } = this.#options;
    const settings = mcpSettings(loaded);
    if (settings === undefined) return undefined;
    const executor = withEntry(gateway.executor, entry, telemetry);
    return createGatewayMcp(loaded, settings, {
      gateway,
      executor,
      formats: this.formats,
      store: this.#store,
      share: entry === "mcp" ? share?.serverShare(loaded.config.serve?.sessions) : undefined,
      onRead,
      onWarning,
    });
  }

  #prepareMcp(loaded: LoadedConfig, settings: ServeSettings): PreparedParts["mcp"] {
    const wanted = mcpSettings(loaded);
    if (wanted === undefined) return undefined;
    const { hosts, origins, name, limits, auth } = settings;
    const { bodyBytes, calls } = limits;
    // Sessions and their streams belong to the callers who opened them: with other tokens they begin anew.
    const { key: sessionKey } = settings.serve.sessions ?? {};
    const key = JSON.stringify([wanted, hosts, origins, name, bodyBytes, calls, auth, sessionKey]);
    if (this.#now.mcp?.key === key) return this.#now.mcp;
    const server = this.createMcpServer(loaded, "mcp") as McpServer;
    const { onWarning, share } = this.#options;
    const own = { hosts, origins, limits: { bodyBytes, calls }, onWarning };
    const handler = createMcpEndpoint(server, own, { log: share?.log, notes: share?.notes });
    return {
      key,
      handler,
      async close(timeoutMs) {
        await handler.close({ timeoutMs });
        await server.close();
      },
    };
  }

  #prepareHttp(settings: ServeSettings): PreparedParts["http"] {
    const { http = true } = settings.serve;
    if (http === false) return undefined;
    const { hosts, origins, name, limits, auth } = settings;
    const { docs = true, title = name, version = "1.0.0" } = http === true ? {} : http;
    const { publicUrl } = settings.serve;
    const { bodyBytes, calls, timeoutMs, idempotencyKeys } = limits;
    const isAuthenticated = isAuthOn(auth);
    const bounds = { bodyBytes, calls, timeoutMs, idempotencyKeys };
    // Those that the new settings allow, and not those in use.
    const formats = new GatewayFormats(settings.serve, this.#formatless()).names;
    const key = JSON.stringify([
      docs,
      title,
      version,
      publicUrl,
      hosts,
      origins,
      bounds,
      formats,
      isAuthenticated,
    ]);
    if (this.#now.http?.key === key) return this.#now.http;
    const { gateway, auth: known, telemetry, onReplay, onWarning } = this.#options;
    const options: HttpHandlerOptions = {
      info: { title, version },
      ...(publicUrl !== undefined && { servers: [publicUrl.replace(/\/+$/, "")] }),
      docs,
      formats: formats.map((format) => createResultFormat(format)),
      formatOf: this.formats.ofCaller,
      explainMissing: (id, identity) =>
        forCallers(
          explainMissing(id, gateway.sources, (source) =>
            isSourceVisible(gateway, source, { identity, operationId: id }),
          ),
        ),
      tasks: gateway.tasks,
      directory: createDirectory(gateway, false),
      hosts,
      origins,
      limits: bounds,
      isCurrent: (identity) => known.isCurrent(identity),
      onReplay: onReplay && this.#replayTeller(onReplay),
      onWarning,
      ...(isAuthenticated && {
        authenticate: (request) => this.#authenticate(request),
        stepUp: known.stepUp,
        describedAuth: { bearer: true, apiKeyHeader: "x-api-key" },
      }),
    };
    const executor = withEntry(gateway.executor, "http", telemetry);
    const handler = createSharedHttpHandler(executor, options, {
      keys: gateway.state.keys("http"),
      streams: this.#options.share?.streams,
    });
    return { key, handler, close: (ms) => handler.close({ timeoutMs: ms }) };
  }

  /** A call that was not run came in over HTTP all the same. */
  #replayTeller(tell: (call: ReplayedCall) => void): (call: ReplayedCall) => void {
    const { telemetry } = this.#options;
    return (call) => tell({ ...call, metadata: markEntry(call.metadata, "http", telemetry) });
  }

  #formatless(): ConstructorParameters<typeof GatewayFormats>[1] {
    return { tokenFormat: () => undefined, budgetOf: () => undefined, store: this.#store };
  }

  async #authenticate(request: Request) {
    const { auth } = this.#options;
    const admitted = await auth.identify(new FetchRequest(request));
    if ("refusal" in admitted)
      throw withRefusalHeaders(refusalError(admitted.refusal), admitted.refusal.headers);
    if (admitted.identity === undefined) return undefined;
    // The same copy as the handler would take, so that it is known again.
    const held = HeldIdentity.of(admitted.identity);
    auth.markCopy(held, admitted.identity);
    return held;
  }
}

/** Characters of a result that are sent whole over MCP, where no policy says otherwise. */
const USUAL_BUDGET = 200_000;

/** What decides about formats besides the config. */
export interface GatewayFormatsOptions {
  /** The format of the holder of a token. */
  tokenFormat(identity: Identity | undefined): FormatName | undefined;
  /** Characters of a result of this operation that are sent whole. */
  budgetOf(operationId: string): number | undefined;
  readonly store: ResultStore;
}

/** The formats of a gateway, as a config says, which may change at any time. */
export class GatewayFormats {
  readonly #options: GatewayFormatsOptions;
  readonly #forMcp: ReadonlyMap<ToolFormat, ResultFormat>;
  #serve: ServeConfig = {};
  #allowed: readonly ToolFormat[] = [];
  #served: readonly ResultFormat[] = [];

  constructor(serve: ServeConfig, options: GatewayFormatsOptions) {
    this.#options = options;
    this.#forMcp = new Map(
      FORMAT_NAMES.filter(isToolFormat).map((name) => [
        name,
        name === "status-envelope" ? this.#withPreview() : createResultFormat(name),
      ]),
    );
    this.set(serve);
  }

  /** Serves others from now on. What a config gives somebody may be asked for by anybody. */
  set(serve: ServeConfig): void {
    const { formats = FORMAT_NAMES, format, clients = {}, auth } = serve;
    const given = [
      format,
      ...Object.values(clients).map((client) => client.format),
      ...Object.values(auth?.tokens ?? {}).map((token) => token.format),
    ];
    const allowed = FORMAT_NAMES.filter(isToolFormat).filter(
      (name) => formats.includes(name) || given.includes(name),
    );
    this.#serve = serve;
    if (allowed.join() === this.#allowed.join()) return;
    this.#allowed = allowed;
    this.#served = allowed.map((name) => this.#forMcp.get(name) as ResultFormat);
  }

  /** Names of those that may be asked for, besides data and envelope. */
  get names(): readonly ToolFormat[] {
    return this.#allowed;
  }

  /** Those that MCP clients may ask for now; the same list until there are others. */
  readonly forMcp = (): readonly ResultFormat[] => this.#served;

  /** The format for an MCP client: by the name it gives itself, by its token, or the usual one. */
  readonly ofClient = ({ name, identity }: McpClient): string | undefined => {
    const { clients = {}, format } = this.#serve;
    const fitting = Object.entries(clients).find(
      ([pattern]) => name !== undefined && matchesPattern(pattern, name),
    );
    return fitting?.[1].format ?? this.#options.tokenFormat(identity) ?? format;
  };

  /** The same for callers of the HTTP API, who have no name. */
  readonly ofCaller = (identity: Identity | undefined): string | undefined => {
    const format = this.#options.tokenFormat(identity) ?? this.#serve.format;
    return format === "response-envelope" ? "envelope" : format;
  };

  /** How many characters of a result are sent whole; what a policy does not bound is bounded as usual. */
  readonly inlineCharactersOf = (operationId: string): number =>
    this.#options.budgetOf(operationId) ?? USUAL_BUDGET;

  /** Status envelopes say of their previews how many tokens they are: they cut themselves, at the bound of each operation. */
  #withPreview(): ResultFormat {
    const byBudget = new Map<number, ResultFormat>();
    const formatOf = (budget: number): ResultFormat => {
      const known = byBudget.get(budget);
      if (known !== undefined) return known;
      // As in the other formats, data of which no valid cut exists goes whole.
      const maxInlineCharacters = Number.POSITIVE_INFINITY;
      const preview = { store: this.#options.store, maxCharacters: budget, maxInlineCharacters };
      const made = createResultFormat({ format: "status-envelope", preview });
      if (byBudget.size >= 100) byBudget.clear();
      byBudget.set(budget, made);
      return made;
    };
    const plain = createResultFormat("status-envelope");
    return Object.freeze({
      ...plain,
      previews: true,
      write: (call: EndedCall) => formatOf(this.inlineCharactersOf(call.operationId)).write(call),
    });
  }
}

function isToolFormat(name: FormatName): name is ToolFormat {
  return name !== "response-envelope";
}
