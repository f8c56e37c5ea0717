import { statSync } from "node:fs";
import { Listeners } from "../../core/collections/listeners.ts";
import { CallerLogins } from "../callers/caller-logins.ts";
import type { McpServerConfig } from "../config/gateway-config.ts";
import { type LoadedConfig, sourceNames } from "../config/loaded-config.ts";
import { createOpenApiSource } from "./api-source.ts";
import { createBusSource } from "./bus-source.ts";
import { createLocalSource } from "./local-source.ts";
import { createMcpSource, lockPath } from "./mcp-server-source.ts";
import { describeAddress, describeServer, toReason, toShownLine } from "./shown-text.ts";
import type {
  Source,
  SourceContext,
  SourceKind,
  SourceReport,
  SourceState,
  SourcesOptions,
} from "./source.ts";

export type { SourcesOptions };

/** A source that is not started yet, and what it was made of. */
export interface CreatedSource {
  readonly source: Source;
  /** What the config says of it, policies left out: with another text it is another source. */
  readonly settings: string;
}

/** Makes the sources of a config in its order: MCP servers, HTTP APIs, operations of modules, the bus. None is started. */
export function createSources(loaded: LoadedConfig, options: SourcesOptions = {}): readonly CreatedSource[] {
  const around = toSourceContext(loaded, options);
  const names = sourceNames(loaded.config);
  const taken = new Set(names.values());
  const { mcpServers = {}, openapi = {}, operations = [], bus } = loaded.config;
  const created: CreatedSource[] = [];
  for (const [key, server] of Object.entries(mcpServers)) {
    const name = names.get(`mcpServers.${key}`) ?? key;
    created.push(mcpSource({ key, name }, server, around));
  }
  for (const [key, api] of Object.entries(openapi)) {
    const name = names.get(`openapi.${key}`) ?? key;
    const facts: ConfiguredSource = {
      kind: "openapi",
      place: `openapi.${key}`,
      name,
      target: describeAddress(api.document),
    };
    const idle = idleSource(facts, api, around);
    const { policy: _, ...settings } = api;
    const source = idle ?? createOpenApiSource(name, api, around);
    created.push({ source, settings: toSettings(loaded, settings, `openapi.${key}`) });
  }
  const patterns = [operations].flat();
  if (patterns.length > 0 || (loaded.localOperations ?? []).length > 0) {
    const source = createLocalSource(freeName("local", taken), patterns, around);
    created.push({ source, settings: toSettings(loaded, { patterns }) });
  }
  if (bus?.mount === true || (Array.isArray(bus?.mount) && bus.mount.length > 0)) {
    const { policy: _, ...settings } = bus;
    const source = createBusSource(freeName("bus", taken), bus, around);
    created.push({ source, settings: toSettings(loaded, settings) });
  }
  return created;
}

function mcpSource(
  { key, name }: { readonly key: string; readonly name: string },
  server: McpServerConfig,
  around: SourceContext,
): CreatedSource {
  const { loaded } = around;
  const place = `mcpServers.${key}`;
  const idle = idleSource({ kind: "mcp", place, name, target: describeServer(server) }, server, around);
  const { policy: _, ...settings } = server;
  const lock = lockOf(loaded, server);
  return {
    source: idle ?? createMcpSource(name, server, around),
    settings: toSettings(loaded, lock === undefined ? settings : { ...settings, lock }, place),
  };
}

/** A source of the config, and where it stands there. */
interface ConfiguredSource {
  readonly kind: SourceKind;
  readonly place: string;
  readonly name: string;
  readonly target: string;
}

/** One that is turned off, or that nothing but another config can mend. */
function idleSource(
  { kind, place, name, target }: ConfiguredSource,
  { disabled }: { readonly disabled?: boolean | undefined },
  { loaded, shown }: SourceContext,
): Source | undefined {
  if (disabled === true) return new IdleSource({ name, kind, target: shown(target) });
  if (!Object.hasOwn(loaded.faults, place)) return undefined;
  const fault = toReason(loaded.faults[place], loaded.secrets);
  return new IdleSource({ name, kind, target: shown(target), fault });
}

/** The lock file, and when it was written: what was approved since is another lock. */
function lockOf(loaded: LoadedConfig, server: McpServerConfig): readonly unknown[] | undefined {
  const path = lockPath(loaded, server);
  return path === undefined ? undefined : [path, statSync(path, { throwIfNoEntry: false })?.mtimeMs];
}

function toSettings({ baseDir, faults }: LoadedConfig, settings: object, place = ""): string {
  return JSON.stringify([baseDir, settings, Object.hasOwn(faults, place) ? faults[place] : null]);
}

function freeName(wanted: string, taken: ReadonlySet<string>): string {
  for (let number = 1; ; number++) {
    const name = number === 1 ? wanted : `${wanted}_${number}`;
    if (!taken.has(name)) return name;
  }
}

/** What an idle source is known by. */
export interface IdlePlan {
  readonly name: string;
  readonly kind: SourceKind;
  readonly target: string;
  /** Why it cannot work as it is configured, fit to be shown; absent for one that is turned off. */
  readonly fault?: string | undefined;
}

const CLOSED: SourceState = Object.freeze({ status: "closed" });

/** A source that is turned off, or that nothing but another config can mend: there is nothing to start. */
class IdleSource implements Source {
  readonly name: string;
  readonly kind: SourceKind;
  readonly operations: readonly never[] = Object.freeze([]);
  readonly #target: string;
  readonly #listeners = new Listeners<SourceState>();
  #state: SourceState;

  constructor({ name, kind, target, fault }: IdlePlan) {
    this.name = name;
    this.kind = kind;
    this.#target = target;
    this.#state = Object.freeze(
      fault === undefined
        ? { status: "disabled" }
        : { status: "down", since: Date.now(), reason: fault, cause: "it cannot work as it is configured." },
    );
  }

  get state(): SourceState {
    return this.#state;
  }

  async start(): Promise<void> {}

  async retry(): Promise<void> {}

  report(): SourceReport {
    const { name, kind } = this;
    const counts = { operations: 0, offered: 0, unusable: [], notes: [] };
    return { name, kind, target: this.#target, state: this.#state, ...counts };
  }

  onChange(): () => void {
    return () => {};
  }

  onState(listener: (state: SourceState) => void): () => void {
    return this.#listeners.add(listener);
  }

  async close(): Promise<void> {
    if (this.#state === CLOSED) return;
    this.#state = CLOSED;
    this.#listeners.tell(CLOSED);
    this.#listeners.clear();
  }
}

/** Puts together what sources are made with. */
function toSourceContext(loaded: LoadedConfig, options: SourcesOptions): SourceContext {
  const shown = (text: string, most?: number): string => toShownLine(text, loaded.secrets, most);
  return {
    loaded,
    reconnect: options.reconnect,
    onBusCall: options.onBusCall,
    propagate: options.propagate,
    onServerLog: options.onServerLog,
    wireOf: options.wireOf,
    logins: options.logins ?? new CallerLogins(loaded),
    shown,
    warnerOf: (name) => (message, cause) => {
      try {
        options.onWarning?.(shown(`${name}: ${message}`, 1_000), cause);
      } catch {
        // There is nobody left to tell.
      }
    },
  };
}
