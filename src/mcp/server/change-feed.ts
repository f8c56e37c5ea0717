import type { McpProvider, McpProviderEvent } from "../provider.ts";
import { MCP_LOG_LEVELS, type McpLogLevel } from "../provider.ts";
import type { ListKind } from "./mcp-server.ts";
import type { Peer } from "./peer.ts";
import type { ProviderSet } from "./provider-set.ts";
import type { ServedExecutor } from "./tool-table.ts";

/** Changes within this time are told as one. */
const COALESCE_MS = 50;

/** What the feed tells others about what providers say. */
export interface FeedListeners {
  onListChange(provider: McpProvider): void;
  /** It is there no more. */
  onGone(provider: McpProvider): void;
  onUpdate(provider: McpProvider, uri: string): void;
}

/** Tells peers what has changed. */
export class ChangeFeed {
  readonly #peers = new Set<Peer>();
  readonly #providers: Pick<ProviderSet, "current" | "onChange">;
  readonly #listening: FeedListeners;
  /** How to stop hearing each provider. */
  readonly #heard = new Map<McpProvider, () => void>();
  readonly #stops: (() => void)[];
  readonly #due = new Set<ListKind>();
  #timer: NodeJS.Timeout | undefined;

  constructor(
    executor: ServedExecutor,
    providers: Pick<ProviderSet, "current" | "onChange">,
    listeners: FeedListeners,
  ) {
    this.#providers = providers;
    this.#listening = listeners;
    this.#follow();
    this.#stops = [
      executor.onChange(() => this.#later("tools")),
      providers.onChange(() => {
        this.#follow();
        this.#later("resources");
        this.#later("prompts");
      }),
    ];
  }

  /** Tells a peer from now on, until it is gone. */
  add(peer: Peer): void {
    this.#peers.add(peer);
  }

  remove(peer: Peer): void {
    this.#peers.delete(peer);
  }

  /** Asks providers for as much as the most curious peer wants to hear. */
  async setLevels(): Promise<void> {
    const wanted = [...this.#peers].map(({ level }) => MCP_LOG_LEVELS.indexOf(level ?? "debug"));
    const least: McpLogLevel = MCP_LOG_LEVELS[Math.min(...wanted, MCP_LOG_LEVELS.length - 1)] ?? "debug";
    const logging = this.#providers.current.filter(({ capabilities }) => capabilities.logging);
    await Promise.allSettled(logging.map((provider) => provider.setLogLevel(least)));
  }

  close(): void {
    for (const stop of [...this.#stops, ...this.#heard.values()]) stop();
    this.#heard.clear();
    clearTimeout(this.#timer);
    this.#peers.clear();
  }

  /** Hears those there are now and nobody else. */
  #follow(): void {
    const current = new Set(this.#providers.current);
    for (const [provider, stop] of this.#heard) {
      this.#listening.onListChange(provider);
      if (current.has(provider)) continue;
      stop();
      this.#heard.delete(provider);
      this.#listening.onGone(provider);
    }
    for (const provider of current) {
      if (this.#heard.has(provider)) continue;
      this.#heard.set(
        provider,
        provider.onEvent((event) => this.#hear(provider, event)),
      );
    }
  }

  #hear(provider: McpProvider, event: McpProviderEvent): void {
    const listeners = this.#listening;
    switch (event.type) {
      case "resources-changed":
        listeners.onListChange(provider);
        this.#later("resources");
        return;
      case "prompts-changed":
        listeners.onListChange(provider);
        this.#later("prompts");
        return;
      case "resource-updated":
        listeners.onUpdate(provider, event.uri);
        return;
      case "log":
        // It may be about anybody's request: whoever makes one hears what can only be about their own.
        return;
    }
  }

  #later(kind: ListKind): void {
    this.#due.add(kind);
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => this.#flush(), COALESCE_MS);
    this.#timer.unref();
  }

  #flush(): void {
    this.#timer = undefined;
    const due = [...this.#due];
    this.#due.clear();
    for (const kind of due) {
      for (const peer of this.#peers) if (peer.hears(kind)) peer.notify(`notifications/${kind}/list_changed`);
    }
  }
}
