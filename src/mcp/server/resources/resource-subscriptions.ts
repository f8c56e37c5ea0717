import { ownerOf } from "../../../core/access/identity.ts";
import { CallError } from "../../../core/errors/errors.ts";
import type { McpProvider, McpProviderOptions } from "../../provider.ts";
import type { Peer } from "../peer-request.ts";
import { MAX_URI, type OwnedResource, type ResourceDirectory } from "./resource-directory.ts";

/** Resources one peer may be subscribed to at a time. */
export const MAX_SUBSCRIPTIONS = 1_000;

/** Characters of the addresses that one peer is subscribed to; an address that is being looked for counts. */
export const MAX_PEER_CHARACTERS = 262_144;

/** The same of all peers together, of which one caller has a quarter. */
const MAX_ALL_CHARACTERS = 16_777_216;

/** Of all addresses that are kept, one caller has the fourth part. */
const SHARES = 4;

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
  readonly #ofPeer = new WeakMap<Peer, number>();
  readonly #ofOwner = new Map<string, number>();
  #characters = 0;

  constructor(directory: ResourceDirectory) {
    this.#directory = directory;
  }

  /** Subscribes a peer. */
  async add(peer: Peer, uri: string, options: McpProviderOptions): Promise<void> {
    if (uri.length > MAX_URI) throw new CallError("TOO_LARGE", "The address of a resource is too long.");
    const isNew = !peer.subscriptions.has(uri);
    if (isNew) this.#keep(peer, uri);
    try {
      const owned = await this.#directory.find(uri, options);
      if (!owned.provider.capabilities.resourceSubscriptions) {
        throw new CallError("VALIDATION_ERROR", "This resource cannot be subscribed to.");
      }
      await this.#inTurn(keyOf(owned), () => this.#join(peer, owned, options));
    } catch (thrown) {
      if (isNew) this.#forget(peer, uri);
      throw thrown;
    }
  }

  /** Ends the subscription of a peer; one that is not there is ended already. */
  async remove(peer: Peer, uri: string, options: McpProviderOptions): Promise<void> {
    if (!this.#forget(peer, uri)) return;
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
    for (const uri of [...peer.subscriptions]) this.#forget(peer, uri);
    const joined = [...this.#byResource].filter(([, { peers }]) => peers.has(peer));
    await Promise.allSettled(joined.map(([key]) => this.#inTurn(key, () => this.#leave(peer, key, {}))));
  }

  /** Tells those who want to know. */
  announce(provider: McpProvider, uri: string): void {
    const addresses = this.#directory.addressesOf(provider, uri);
    for (const peer of this.#byResource.get(keyOf({ provider, uri }))?.peers ?? []) {
      if (provider.isFor?.(peer.identity) === false) continue;
      for (const address of addresses) {
        if (peer.subscriptions.has(address)) peer.notify("notifications/resources/updated", { uri: address });
      }
    }
  }

  /** Forgets what a provider that has gone was asked for; nobody hears of its resources any more. */
  forget(provider: McpProvider): void {
    for (const [key, subscribed] of this.#byResource) {
      if (subscribed.provider === provider) this.#byResource.delete(key);
    }
  }

  /** Keeps an address for a peer that stays, within the bounds of the peer, its caller and all together. */
  #keep(peer: Peer, uri: string): void {
    if (this.#gone.has(peer)) throw new CallError("ABORTED", "The client has gone.", { stack: false });
    if (peer.subscriptions.size >= MAX_SUBSCRIPTIONS) {
      throw exhausted(`At most ${MAX_SUBSCRIPTIONS} resources can be subscribed to.`);
    }
    const own = (this.#ofPeer.get(peer) ?? 0) + uri.length;
    if (own > MAX_PEER_CHARACTERS) {
      throw exhausted(
        `The addresses that are subscribed to can have at most ${MAX_PEER_CHARACTERS} characters.`,
      );
    }
    const owners = (this.#ofOwner.get(ownerOf(peer.identity)) ?? 0) + uri.length;
    const share = peer.identity === undefined ? MAX_ALL_CHARACTERS : MAX_ALL_CHARACTERS / SHARES;
    if (owners > share || this.#characters + uri.length > MAX_ALL_CHARACTERS) {
      throw exhausted("As many resources are subscribed to as there is room for; try again later.");
    }
    peer.subscriptions.add(uri);
    this.#count(peer, uri.length);
  }

  #forget(peer: Peer, uri: string): boolean {
    if (!peer.subscriptions.delete(uri)) return false;
    this.#count(peer, -uri.length);
    return true;
  }

  #count(peer: Peer, characters: number): void {
    const owner = ownerOf(peer.identity);
    const owners = (this.#ofOwner.get(owner) ?? 0) + characters;
    this.#characters += characters;
    this.#ofPeer.set(peer, (this.#ofPeer.get(peer) ?? 0) + characters);
    if (owners > 0) this.#ofOwner.set(owner, owners);
    else this.#ofOwner.delete(owner);
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

function exhausted(message: string): CallError {
  return new CallError("RESOURCE_EXHAUSTED", message, { stack: false });
}

function keyOf({ provider, uri }: OwnedResource): string {
  return `${provider.namespace} ${uri}`;
}
