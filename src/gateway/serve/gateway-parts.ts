import { HeldIdentity } from "../../core/access/identity.ts";
import { createMemoryStore, createResultFormat, type ResultStore } from "../../formats/index.ts";
import { FetchRequest } from "../../http/fetch-exchange.ts";
import { createMcpEndpoint, type McpEndpoint } from "../../mcp/server/http-handler.ts";
import type { McpServer } from "../../mcp/server/mcp-server.ts";
import { refusalError } from "../../openapi/server/admission.ts";
import { createHttpHandler, type HttpHandler } from "../../openapi/server/http-handler.ts";
import type { ReplayedCall } from "../../openapi/server/http-handler-options.ts";
import type { LoadedConfig } from "../config/loaded-config.ts";
import type { Gateway } from "../gateway.ts";
import { explainMissing, isSourceVisible } from "../missing-operation.ts";
import { forCallers } from "../source-error.ts";
import type { GatewayAuth } from "./gateway-auth.ts";
import { GatewayFormats } from "./gateway-formats.ts";
import { createGatewayMcp, mcpSettings } from "./gateway-mcp.ts";
import type { CallTelemetry } from "./observe/call-telemetry.ts";
import { markEntry, withEntry } from "./observe/entry.ts";
import type { ReadRecord } from "./observe/read-record.ts";
import { isAuthOn, type ServeSettings } from "./serve-settings.ts";

/** What a gateway is served with. */
export interface GatewayPartsOptions {
  readonly gateway: Gateway;
  readonly auth: GatewayAuth;
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
  readonly #store: ResultStore = createMemoryStore();
  #now: PreparedParts = { mcp: undefined, http: undefined };

  constructor(settings: ServeSettings, options: GatewayPartsOptions) {
    this.#options = options;
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
    const { gateway, telemetry, onRead, onWarning } = this.#options;
    const settings = mcpSettings(loaded);
    if (settings === undefined) return undefined;
    const executor = withEntry(gateway.executor, entry, telemetry);
    return createGatewayMcp(loaded, settings, {
      gateway,
      executor,
      formats: this.formats,
      store: this.#store,
      onRead,
      onWarning,
    });
  }

  #prepareMcp(loaded: LoadedConfig, settings: ServeSettings): PreparedParts["mcp"] {
    const wanted = mcpSettings(loaded);
    if (wanted === undefined) return undefined;
    const { hosts, origins, name, limits, auth } = settings;
    const { bodyBytes, calls } = limits;
    // Sessions and their streams belong to whoever opened them: with other tokens they begin anew.
    const key = JSON.stringify([wanted, hosts, origins, name, bodyBytes, calls, auth]);
    if (this.#now.mcp?.key === key) return this.#now.mcp;
    const server = this.createMcpServer(loaded, "mcp") as McpServer;
    const { onWarning } = this.#options;
    const handler = createMcpEndpoint(server, { hosts, origins, bodyBytes, calls, onWarning });
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
    const handler = createHttpHandler(withEntry(gateway.executor, "http", telemetry), {
      info: { title, version },
      ...(publicUrl !== undefined && { servers: [publicUrl.replace(/\/+$/, "")] }),
      docs,
      formats: formats.map((format) => createResultFormat(format)),
      formatOf: this.formats.ofCaller,
      explainMissing: (id, identity) =>
        forCallers(
          explainMissing(id, gateway.sources, (source) => isSourceVisible(gateway, source, identity, id)),
        ),
      hosts,
      origins,
      limits: bounds,
      isCurrent: (identity) => known.isCurrent(identity),
      onReplay: onReplay && this.#replayTeller(onReplay),
      onWarning,
      ...(isAuthenticated && {
        authenticate: (request) => this.#authenticate(request),
        describedAuth: { bearer: true, apiKeyHeader: "x-api-key" },
      }),
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
    if ("refusal" in admitted) throw refusalError(admitted.refusal);
    if (admitted.identity === undefined) return undefined;
    // The same copy as the handler would take, so that it is known again.
    const held = HeldIdentity.of(admitted.identity);
    auth.markCopy(held, admitted.identity);
    return held;
  }
}
