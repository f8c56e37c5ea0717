import type { Identity } from "../../core/access/identity.ts";
import type { CallError } from "../../core/errors/errors.ts";
import type { ResultStore } from "../../formats/index.ts";
import type { McpProvider } from "../../mcp/provider.ts";
import type { McpServer, ServerShare } from "../../mcp/server/mcp-server.ts";
import type { LiveMcpProviders, McpServerOptions, StoredRead } from "../../mcp/server/mcp-server-options.ts";
import { toSharedMcpServer } from "../../mcp/server/to-mcp-server.ts";
import type { ServeMcpConfig } from "../config/gateway-config.ts";
import type { LoadedConfig } from "../config/loaded-config.ts";
import type { Gateway } from "../gateway.ts";
import { forCallers, hasOneNamespace, isSourceVisible, sourceFault } from "../missing-operation.ts";
import type { Source } from "../sources/source.ts";
import type { ProviderGuard, SourceProvider } from "../sources/source-provider.ts";
import type { GatewayFormats } from "./gateway-parts.ts";
import type { ReadRecord, ServedGateway } from "./observe/observer.ts";

/** What an MCP server of a gateway is made of. */
export interface GatewayMcpOptions {
  readonly gateway: Pick<Gateway, "executor" | "sources" | "sourceOf" | "onSources" | "policies" | "tasks">;
  /** What calls run on. */
  readonly executor: ServedGateway;
  readonly formats: GatewayFormats;
  readonly store: ResultStore;
  /** What is shared with replicas. @default nothing is */
  readonly share?: ServerShare | undefined;
  readonly onRead?: ((record: ReadRecord) => void) | undefined;
  readonly onWarning: (message: string, cause?: unknown) => void;
}

/** How a config wants operations served over MCP; nothing where it does not. */
export function mcpSettings({ config }: LoadedConfig): ServeMcpConfig | undefined {
  const { mcp = true } = config.serve ?? {};
  if (mcp === false) return undefined;
  return mcp === true ? {} : mcp;
}

/** Serves a gateway over MCP: its operations as tools, and what its sources offer besides. */
export function createGatewayMcp(
  { config }: LoadedConfig,
  settings: ServeMcpConfig,
  options: GatewayMcpOptions,
): McpServer {
  const { gateway, executor, formats, store, share, onRead, onWarning } = options;
  const { dots = false, catalogue = false, instructions } = settings;
  const given: McpServerOptions = {
    name: config.name ?? "waybill",
    names: { dots },
    catalogue,
    ...(instructions !== undefined && { instructions }),
    formats: formats.forMcp,
    formatOf: formats.ofClient,
    inlineCharactersOf: formats.inlineCharactersOf,
    store,
    tasks: gateway.tasks,
    ...(onRead !== undefined && { onStoredRead: (read: StoredRead) => onRead(toRecord(read, gateway)) }),
    providers: liveProviders(gateway, onRead),
    explainMissing: (toolName, identity) => explainMissingTool(toolName, identity, gateway),
    onWarning,
  };
  return toSharedMcpServer(executor, given, share);
}

function toRecord(
  { uri, operations: [operation], identity, isFound, durationMs }: StoredRead,
  gateway: GatewayMcpOptions["gateway"],
): ReadRecord {
  return {
    event: "result",
    source: (operation !== undefined && gateway.sourceOf(operation)) || "",
    name: uri.slice(0, 200),
    ...(identity !== undefined && { subject: identity.subject }),
    ...(isFound ? { outcome: "ok" } : { outcome: "call_error", code: "NOT_FOUND" }),
    durationMs: Math.round(durationMs * 1_000) / 1_000,
  };
}

/**
 * Names of tools begin with that of their source; one that is not up has tools nobody may have heard of yet, and so may modules and the bus
 * while they are loaded.
 */
function explainMissingTool(
  toolName: string,
  identity: Identity | undefined,
  gateway: GatewayMcpOptions["gateway"],
): CallError | undefined {
  const fitting = gateway.sources
    .filter(hasOneNamespace)
    .filter(({ name }) => toolName.startsWith(`${name}_`) || toolName.startsWith(`${name}.`))
    .sort((a, b) => b.name.length - a.name.length);
  const [source = gateway.sources.find(isComing)] = fitting;
  if (source === undefined || !isSourceVisible(gateway, source, { identity })) return undefined;
  return forCallers(sourceFault(source));
}

function isComing(source: Source): boolean {
  return !hasOneNamespace(source) && source.state.status === "connecting";
}

/** What the sources of a gateway offer besides tools, as they come and go, under their policies. */
export function liveProviders(
  gateway: Pick<Gateway, "sources" | "onSources" | "policies">,
  onRead: ProviderGuard["onRead"] = () => {},
): LiveMcpProviders {
  const { policies } = gateway;
  const guarded = new WeakMap<SourceProvider, SourceProvider>();
  const guard = (provider: SourceProvider): SourceProvider => {
    const known = guarded.get(provider) ?? provider.under({ policies, onRead });
    guarded.set(provider, known);
    return known;
  };
  const read = (): readonly McpProvider[] =>
    gateway.sources.flatMap(({ name, provider }) =>
      provider !== undefined && policies.ofSource(name).isEnabled ? [guard(provider)] : [],
    );
  const stateOf = (providers: readonly McpProvider[]): string =>
    JSON.stringify(
      providers.map(({ capabilities, namespace }) => [capabilities, policies.ofSource(namespace)]),
    );
  return {
    get current() {
      return read();
    },
    onChange(listener) {
      let known = read();
      let states = stateOf(known);
      return gateway.onSources(() => {
        const now = read();
        const present = stateOf(now);
        const isSame =
          present === states && now.length === known.length && now.every((one, i) => one === known[i]);
        known = now;
        states = present;
        // Sources tell of much that is nobody's business who reads resources.
        if (!isSame) listener();
      });
    },
  };
}
