import { InMemoryTransport, type JSONRPCMessage, type Server } from "@modelcontextprotocol/server";
import { CallError } from "../../core/errors/errors.ts";
import type { McpProvider, McpProviderOptions } from "../provider.ts";
import type { McpPeer, McpServer } from "./mcp-server.ts";
import type { Peer } from "./peer-request.ts";
import type { OwnedResource, ResourceDirectory } from "./resource-directory.ts";
import { MAX_URI } from "./uri-template.ts";

/** Resources one peer may be subscribed to at a time. */
export const MAX_SUBSCRIPTIONS = 1_000;

/** How long a listener waits for those who have the resources; they are still asked afterwards. */
const HOLD_MS = 5_000;

interface Subscribed extends OwnedResource {
  readonly peers: Set<Peer>;
}

/** Who wants to hear of changes to which resources; a provider is asked once, however many peers want to know. */
export class ResourceSubscriptions {
  readonly #directory: ResourceDirectory;
  readonly #byResource = new Map<string, Subscribed>();
  /** What is being asked of providers, by resource: one thing after another. */
  readonly #turns = new Map<string, Promise<void>>();
  readonly #gone = new WeakSet<Peer>();

  constructor(directory: ResourceDirectory) {
    this.#directory = directory;
  }

  /** Subscribes a peer. */
  async add(peer: Peer, uri: string, options: McpProviderOptions): Promise<void> {
    if (uri.length > MAX_URI) throw new CallError("TOO_LARGE", "The address of a resource is too long.");
    const isNew = !peer.subscriptions.has(uri);
    if (isNew && peer.subscriptions.size >= MAX_SUBSCRIPTIONS) {
      throw new CallError(
        "RESOURCE_EXHAUSTED",
        `At most ${MAX_SUBSCRIPTIONS} resources can be subscribed to.`,
      );
    }
    peer.subscriptions.add(uri);
    try {
      const owned = await this.#directory.find(uri, options);
      if (!owned.provider.capabilities.resourceSubscriptions) {
        throw new CallError("VALIDATION_ERROR", "This resource cannot be subscribed to.");
      }
      await this.#inTurn(keyOf(owned), () => this.#join(peer, owned, options));
    } catch (thrown) {
      if (isNew) peer.subscriptions.delete(uri);
      throw thrown;
    }
  }

  /** Ends the subscription of a peer; one that is not there is ended already. */
  async remove(peer: Peer, uri: string, options: McpProviderOptions): Promise<void> {
    if (!peer.subscriptions.delete(uri)) return;
    const owned = await this.#directory.find(uri, options);
    await this.#inTurn(keyOf(owned), async () => {
      const addresses = this.#directory.addressesOf(owned.provider, owned.uri);
      if (addresses.some((address) => peer.subscriptions.has(address))) return;
      await this.#leave(peer, keyOf(owned), options);
    });
  }

  /** Ends all subscriptions of a peer that has gone. */
  async drop(peer: Peer): Promise<void> {
    this.#gone.add(peer);
    peer.subscriptions.clear();
    const joined = [...this.#byResource].filter(([, { peers }]) => peers.has(peer));
    await Promise.allSettled(joined.map(([key]) => this.#inTurn(key, () => this.#leave(peer, key, {}))));
  }

  /** Tells those who want to know; gives the addresses the resource goes by. */
  announce(provider: McpProvider, uri: string): readonly string[] {
    const addresses = this.#directory.addressesOf(provider, uri);
    for (const { server, subscriptions, identity } of this.#byResource.get(keyOf({ provider, uri }))?.peers ??
      []) {
      if (provider.isFor?.(identity) === false) continue;
      for (const address of addresses) {
        if (subscriptions.has(address)) server.sendResourceUpdated({ uri: address }).catch(() => {});
      }
    }
    return addresses;
  }

  /** Forgets what a provider that has gone was asked for; nobody hears of its resources any more. */
  forget(provider: McpProvider): void {
    for (const [key, subscribed] of this.#byResource) {
      if (subscribed.provider === provider) this.#byResource.delete(key);
    }
  }

  async #join(peer: Peer, owned: OwnedResource, options: McpProviderOptions): Promise<void> {
    const key = keyOf(owned);
    if (!this.#byResource.has(key)) {
      await owned.provider.subscribeResource(owned.uri, options);
      this.#byResource.set(key, { ...owned, peers: new Set() });
    }
    this.#byResource.get(key)?.peers.add(peer);
    if (this.#gone.has(peer)) await this.#leave(peer, key, {});
  }

  async #leave(peer: Peer, key: string, options: McpProviderOptions): Promise<void> {
    const subscribed = this.#byResource.get(key);
    if (subscribed === undefined || !subscribed.peers.delete(peer) || subscribed.peers.size > 0) return;
    this.#byResource.delete(key);
    await subscribed.provider.unsubscribeResource(subscribed.uri, options);
  }

  async #inTurn(key: string, run: () => Promise<void>): Promise<void> {
    const mine = (this.#turns.get(key) ?? Promise.resolve()).then(run);
    const settled = mine.catch(() => {});
    this.#turns.set(key, settled);
    try {
      await mine;
    } finally {
      if (this.#turns.get(key) === settled) this.#turns.delete(key);
    }
  }
}

/**
 * Keeps resources subscribed to for 2026-07-28 clients, whose streams of changes say once what they are about: a 2025 peer of
 * its own subscribes to them, and leaves when nobody listens any more.
 */
export class HeldResources {
  readonly #server: Server;
  readonly #line: InMemoryTransport;
  readonly #connected: Promise<void>;
  readonly #counts = new Map<string, number>();
  readonly #waiting = new Map<number, () => void>();
  readonly #onUpdate: (uri: string) => void;
  #asked = 0;

  constructor(server: McpServer, identity: McpPeer["identity"], onUpdate: (uri: string) => void = () => {}) {
    const [here, there] = InMemoryTransport.createLinkedPair();
    this.#onUpdate = onUpdate;
    this.#line = here;
    here.onmessage = (message) => this.#hear(message);
    this.#server = server.open({ era: "legacy", identity, stays: true });
    this.#connected = this.#server.connect(there);
  }

  /** Subscribes to resources, as often as is asked; those that cannot be subscribed to do not change for anybody. */
  async hold(uris: readonly string[]): Promise<void> {
    const fresh = uris.filter((uri) => this.#count(uri, 1) === 1);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, HOLD_MS);
    });
    await Promise.race([Promise.all(fresh.map((uri) => this.#ask("resources/subscribe", uri))), late]);
    clearTimeout(timer);
  }

  /** Gives up what was held, as often as it was asked for. */
  async release(uris: readonly string[]): Promise<void> {
    const last = uris.filter((uri) => this.#count(uri, -1) === 0);
    await Promise.all(last.map((uri) => this.#ask("resources/unsubscribe", uri)));
  }

  /** Gives up everything. */
  async close(): Promise<void> {
    await this.#connected;
    await this.#server.close();
    for (const settle of this.#waiting.values()) settle();
    this.#waiting.clear();
  }

  #count(uri: string, change: 1 | -1): number {
    const count = (this.#counts.get(uri) ?? 0) + change;
    if (count > 0) this.#counts.set(uri, count);
    else this.#counts.delete(uri);
    return count;
  }

  async #ask(method: string, uri: string): Promise<void> {
    await this.#connected;
    this.#asked += 1;
    const id = this.#asked;
    const answered = new Promise<void>((resolve) => this.#waiting.set(id, resolve));
    await this.#line
      .send({ jsonrpc: "2.0", id, method, params: { uri } })
      .catch(() => this.#waiting.get(id)?.());
    await answered;
  }

  #hear(message: JSONRPCMessage): void {
    if ("method" in message) {
      const uri = message.method === "notifications/resources/updated" && message.params?.["uri"];
      if (typeof uri === "string") this.#onUpdate(uri);
      return;
    }
    this.#waiting.get(message.id as number)?.();
    this.#waiting.delete(message.id as number);
  }
}

/** The resources that a `subscriptions/listen` asks about, each once; none for any other message. */
export function listenedResources(message: unknown): readonly string[] {
  const { method, params } = (message ?? {}) as Readonly<Record<string, unknown>>;
  if (method !== "subscriptions/listen") return [];
  const { notifications } = (params ?? {}) as Readonly<Record<string, unknown>>;
  const { resourceSubscriptions: uris } = (notifications ?? {}) as Readonly<Record<string, unknown>>;
  if (!Array.isArray(uris)) return [];
  return [...new Set(uris.filter((uri) => typeof uri === "string"))];
}

function keyOf({ provider, uri }: OwnedResource): string {
  return `${provider.namespace} ${uri}`;
}
