import { CallError } from "../../core/errors/errors.ts";
import type { McpProvider, McpProviderOptions } from "../provider.ts";
import type { Peer } from "./peer-request.ts";
import type { OwnedResource, ResourceDirectory } from "./resource-directory.ts";

/** Resources one peer may be subscribed to at a time. */
export const MAX_SUBSCRIPTIONS = 1_000;

interface Subscribed extends OwnedResource {
  readonly peers: Set<Peer>;
}

/** Who wants to hear of changes to which resources; a provider is asked once, however many peers want to know. */
export class ResourceSubscriptions {
  readonly #directory: ResourceDirectory;
  readonly #byResource = new Map<string, Subscribed>();

  constructor(directory: ResourceDirectory) {
    this.#directory = directory;
  }

  /** Subscribes a peer. */
  async add(peer: Peer, uri: string, options: McpProviderOptions): Promise<void> {
    if (peer.subscriptions.size >= MAX_SUBSCRIPTIONS && !peer.subscriptions.has(uri)) {
      throw new CallError(
        "RESOURCE_EXHAUSTED",
        `At most ${MAX_SUBSCRIPTIONS} resources can be subscribed to.`,
      );
    }
    const owned = await this.#directory.find(uri, options);
    if (!owned.provider.capabilities.resourceSubscriptions) {
      throw new CallError("VALIDATION_ERROR", "This resource cannot be subscribed to.");
    }
    const key = keyOf(owned);
    const subscribed = this.#byResource.get(key);
    if (subscribed === undefined) await owned.provider.subscribeResource(owned.uri, options);
    const { peers } = this.#byResource.get(key) ?? { peers: new Set<Peer>() };
    peers.add(peer);
    this.#byResource.set(key, { ...owned, peers });
    peer.subscriptions.add(uri);
  }

  /** Ends the subscription of a peer; one that is not there is ended already. */
  async remove(peer: Peer, uri: string, options: McpProviderOptions): Promise<void> {
    if (!peer.subscriptions.delete(uri)) return;
    await this.#leave(peer, keyOf(await this.#directory.find(uri, options)), options);
  }

  /** Ends all subscriptions of a peer that has gone. */
  async drop(peer: Peer): Promise<void> {
    peer.subscriptions.clear();
    await Promise.allSettled([...this.#byResource.keys()].map((key) => this.#leave(peer, key, {})));
  }

  /** Tells those who want to know; gives the addresses the resource goes by. */
  announce(provider: McpProvider, uri: string): readonly string[] {
    const addresses = this.#directory.addressesOf(provider, uri);
    for (const { server, subscriptions } of this.#byResource.get(keyOf({ provider, uri }))?.peers ?? []) {
      for (const address of addresses) {
        if (subscriptions.has(address)) server.sendResourceUpdated({ uri: address }).catch(() => {});
      }
    }
    return addresses;
  }

  async #leave(peer: Peer, key: string, options: McpProviderOptions): Promise<void> {
    const subscribed = this.#byResource.get(key);
    if (subscribed === undefined || !subscribed.peers.delete(peer) || subscribed.peers.size > 0) return;
    this.#byResource.delete(key);
    await subscribed.provider.unsubscribeResource(subscribed.uri, options);
  }
}

function keyOf({ provider, uri }: OwnedResource): string {
  return `${provider.namespace} ${uri}`;
}
