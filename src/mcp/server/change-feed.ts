import type { McpProvider, McpProviderEvent } from "../provider.ts";
import { MCP_LOG_LEVELS, type McpLogLevel } from "../provider.ts";
import { tellAll } from "../tell-all.ts";
import type { McpServerEvent } from "./mcp-server.ts";
import type { Peer } from "./peer-request.ts";
import type { ProviderSet } from "./provider-set.ts";
import type { ServedExecutor } from "./tool-table.ts";

/** Changes within this time are told as one. */
const COALESCE_MS = 50;

type ListKind = Exclude<McpServerEvent["kind"], "resource_updated">;

/** What the feed tells others about what providers say. */
export interface FeedListeners {
  onListChange(provider: McpProvider): void;
  /** It is there no more. */
  onGone(provider: McpProvider): void;
  /** Gives the addresses clients know the resource by. */
  onUpdate(provider: McpProvider, uri: string): readonly string[];
}

/** Tells listeners, and peers that stay, what has changed. */
export class ChangeFeed {
  readonly #peers = new Set<Peer>();
  readonly #listeners = new Set<(event: McpServerEvent) => void>();
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
      executor.onChange(() => this.#later("tools_list_changed")),
      providers.onChange(() => {
        this.#follow();
        this.#later("resources_list_changed");
        this.#later("prompts_list_changed");
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

  listen(listener: (event: McpServerEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
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
    this.#listeners.clear();
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
        this.#later("resources_list_changed");
        return;
      case "prompts-changed":
        listeners.onListChange(provider);
        this.#later("prompts_list_changed");
        return;
      case "resource-updated":
        for (const uri of listeners.onUpdate(provider, event.uri)) {
          // Those who listen over HTTP (2026-07-28) are not told apart: of what is not for everybody they hear nothing.
          if (provider.isFor?.(undefined) !== false) this.#emit({ kind: "resource_updated", uri });
        }
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
      this.#emit({ kind });
      for (const peer of this.#peers) tellList(peer, kind).catch(() => {});
    }
  }

  #emit(event: McpServerEvent): void {
    tellAll(this.#listeners, event);
  }
}

async function tellList({ server }: Peer, kind: ListKind): Promise<void> {
  if (server.transport === undefined) return;
  switch (kind) {
    case "tools_list_changed":
      return await server.sendToolListChanged();
    case "resources_list_changed":
      return await server.sendResourceListChanged();
    case "prompts_list_changed":
      return await server.sendPromptListChanged();
  }
}
