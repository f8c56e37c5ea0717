import { SecretMask } from "../src/core/secrets/secret-mask.ts";
import { GatewayApprovals } from "../src/gateway/approvals/gateway-approvals.ts";
import { CallerLogins } from "../src/gateway/callers/caller-logins.ts";
import type { Gateway, GatewayConfig, LoadedConfig, Source, SourceState } from "../src/gateway/index.ts";
import { ProviderSlot, SourceProvider } from "../src/gateway/sources/source-provider.ts";
import { GatewayState } from "../src/gateway/state/gateway-state.ts";
import { type AnyOperation, CallError, type Hooks, OperationRegistry } from "../src/index.ts";
import type { McpProvider } from "../src/mcp/index.ts";

/** A config that came from no file. */
export function loadedConfig(config: GatewayConfig = {}): LoadedConfig {
  const serve = { port: 0, ...config.serve };
  return {
    config: { ...config, serve },
    baseDir: "/",
    files: new Map(),
    faults: {},
    warnings: [],
    secrets: new SecretMask(),
  };
}

/** A gateway whose sources and budgets a test sets. */
export interface HandGateway extends Gateway {
  readonly executor: OperationRegistry;
  readonly budgets: Map<string, number>;
  setSources(...sources: readonly Source[]): void;
}

/** Makes a gateway of operations, with the least that serving one needs. */
export function handGateway(operations: readonly AnyOperation[], hooks: readonly Hooks[] = []): HandGateway {
  const executor = new OperationRegistry(operations);
  for (const hook of hooks) executor.use(hook);
  const budgets = new Map<string, number>();
  const state = new GatewayState(loadedConfig(), { onWarning: () => {} });
  const listeners = new Set<() => void>();
  let sources: readonly Source[] = [];
  return {
    executor,
    budgets,
    get sources() {
      return sources;
    },
    policies: {
      hooks: {},
      admit: (operation) => operation,
      leavesOut: () => false,
      scopesOf: () => [],
      budgetOf: (id) => budgets.get(id),
      approveOf: () => undefined,
      ofSource: () => ({ isEnabled: true, scopes: [] }),
      runOfSource: ({ signal }, run) => run(signal),
      setShared: () => {},
      forget: () => {},
      update: () => {},
      close: () => {},
    },
    tasks: undefined,
    logins: new CallerLogins(loadedConfig()),
    state,
    approvals: new GatewayApprovals(loadedConfig(), {
      records: () => state.records(),
      policyOf: () => undefined,
      operationOf: (id) => executor.get(id),
      sourceOf: (id) => executor.get(id)?.namespace,
      mask: (text) => text,
      onWarning: () => {},
    }),
    sourceOf: (id) => executor.get(id)?.namespace,
    reports: () => sources.map((source) => source.report()),
    ready: Promise.resolve(),
    onSources(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    setSources(...given) {
      sources = given;
      for (const listener of listeners) listener();
    },
    watchTraffic: () => () => {},
    reload: async () => {},
    close: async () => {},
  };
}

/** A source of no operations, in some state. */
export function handSource(name: string, state: SourceState, provider?: McpProvider): Source {
  return {
    name,
    kind: "mcp",
    state,
    operations: [],
    ...(provider !== undefined && { provider: toSourceProvider(provider) }),
    start: async () => {},
    retry: async () => {},
    report: () => ({
      name,
      kind: "mcp",
      target: "nowhere",
      state,
      operations: 3,
      offered: 3,
      unusable: [],
      notes: [],
    }),
    onChange: () => () => {},
    onState: () => () => {},
    close: async () => {},
  };
}

/** What a source that is up offers besides tools. */
function toSourceProvider(provider: McpProvider): SourceProvider {
  const slot = new ProviderSlot(provider.namespace, () => new CallError("UNAVAILABLE"));
  slot.put(provider);
  slot.setUp(true);
  return new SourceProvider(slot);
}
