import { holdsRights, type Identity, type Rights } from "../../../core/access/identity.ts";
import {
  type ResultEntry,
  type ResultStore,
  type StoredResult,
  toReadResourceResult,
} from "../../../core/result/result-store.ts";
import { linkedUri } from "../../content-blocks.ts";
import { invalidParams, resourceNotFound } from "../../protocol/messages.ts";
import type { McpResourceContents } from "../../provider.ts";
import type { StoredRead } from "../mcp-server-options.ts";
import type { PeerRequest } from "../peer-request.ts";

const MAX_PREFIXES = 16;

/** The same words whatever is wrong, so that nobody learns which results there are. */
const NOT_KEPT = "The result has expired, or was never kept for you: call the tool again.";

interface StoredResultsOptions {
  readonly store: ResultStore;
  /** Tells whether a caller may call an operation now. */
  mayCall(operationId: string, identity: Identity | undefined): boolean;
  /** Hears of every read of a kept result, and of every address that is none; must not throw. */
  readonly onRead?: ((read: StoredRead) => void) | undefined;
}

/** What a kept result belongs to: who called, with which rights, what. */
interface Binding {
  readonly owner: string;
  readonly rights: Rights;
  readonly operations: readonly string[];
}

/** Keeps the results of one call for its caller. */
export interface CallerStore {
  /** Keeps a result as the store does, and remembers where such results are. */
  put(entry: ResultEntry): Promise<StoredResult>;
  /** Remembers where results are that somebody else put into the same store. */
  learn(uri: string): Promise<void>;
  /** What makes an entry the caller's, for those who put into the store themselves. */
  readonly keeps: Pick<ResultEntry, "owner" | "binding">;
}

/** The long results of tools, which their links lead to: each for the caller, for as long as they may make the call. */
export class StoredResults {
  readonly #options: StoredResultsOptions;
  /** What the addresses of this store begin with, learnt from those it gave. */
  readonly #prefixes = new Set<string>();

  constructor(options: StoredResultsOptions) {
    this.#options = options;
  }

  /** Gives the store of one request, whose results come from these operations. */
  for(request: Pick<PeerRequest, "identity" | "owner">, operations: readonly string[]): CallerStore {
    const { store } = this.#options;
    const { owner, identity } = request;
    const { scopes, resources, tier } = identity ?? {};
    const bound: Binding = {
      owner,
      operations,
      rights: { ...(scopes && { scopes }), ...(resources && { resources }), ...(tier && { tier }) },
    };
    const binding = JSON.stringify(bound);
    const keeps = { owner, binding };
    return {
      keeps,
      put: async (entry) => {
        const stored = await store.put({ ...entry, ...keeps });
        this.#remember(stored.uri);
        return stored;
      },
      learn: async (uri) => {
        if (this.#prefixes.has(prefixOf(uri))) return;
        try {
          if ((await store.read(uri, { length: 1 }, { owner })) !== undefined) this.#remember(uri);
        } catch {
          // Only what is said of an expired link depends on it.
        }
      },
    };
  }

  /** Reads a stored result or a range of it; nothing for an address that is none of this store's. */
  async read(
    uri: string,
    request: Pick<PeerRequest, "identity" | "owner">,
  ): Promise<McpResourceContents | undefined> {
    const startedAt = performance.now();
    const tell = (isFound: boolean, operations: readonly string[] = []): void =>
      this.#options.onRead?.({
        uri,
        operations,
        identity: request.identity,
        isFound,
        durationMs: performance.now() - startedAt,
      });
    const found = await this.#reading(uri, request.owner);
    if (found !== undefined) {
      const { binding, ...contents } = found;
      const operations = binding?.operations ?? [];
      const isTheirs = binding === undefined || this.#isStill(binding, request);
      tell(isTheirs, operations);
      if (isTheirs) return contents;
      throw resourceNotFound(uri, NOT_KEPT);
    }
    for (const prefix of this.#prefixes) {
      if (prefix !== "" && uri.startsWith(prefix)) {
        tell(false);
        throw resourceNotFound(uri, NOT_KEPT);
      }
    }
    return undefined;
  }

  /** Whether a result is of this caller, who lost no right since, and of operations that they may call now. */
  #isStill(binding: Binding, { identity, owner }: Pick<PeerRequest, "identity" | "owner">): boolean {
    const { mayCall } = this.#options;
    if (binding.owner !== owner || !holdsRights(identity, binding.rights)) return false;
    return binding.operations.every((id) => mayCall(id, identity));
  }

  #remember(uri: string): void {
    if (this.#prefixes.size < MAX_PREFIXES) this.#prefixes.add(prefixOf(uri));
  }

  async #reading(
    uri: string,
    owner: string,
  ): Promise<(McpResourceContents & { readonly binding?: Binding | undefined }) | undefined> {
    try {
      const found = await toReadResourceResult(this.#options.store, uri, undefined, { owner });
      if (found === undefined) return undefined;
      const { binding, ...contents } = found;
      return { ...contents, binding: binding === undefined ? undefined : (JSON.parse(binding) as Binding) };
    } catch (thrown) {
      if (thrown instanceof RangeError) throw invalidParams(thrown.message);
      throw thrown;
    }
  }
}

/** How many addresses of other servers' kept results are remembered. */
export const GIVEN_RESULTS = {
  /** Callers; the one who was given none for longest goes first. */
  callers: 1_000,
  /** Addresses of one caller; the oldest go first. */
  addresses: 1_000,
} as const;

const RESULT = /^(?:waybill\+[A-Za-z0-9.-]*:)*(waybill:\/\/results\/[0-9a-f]{32})(?:\?|$)/;

/** Tells whether an address is one of a result that Waybill keeps, here or at an imported server. */
export function isResultUri(uri: string): boolean {
  return RESULT.test(uri);
}

/**
 * Who was given the addresses of results that imported Waybill servers keep: such a server takes all callers here for one, so it is
 * looked at here who reads what.
 */
export class GivenResults {
  readonly #byOwner = new Map<string, Set<string>>();

  /** Notes the addresses that a result gives to a caller. */
  note(owner: string, content: readonly unknown[]): void {
    for (const block of content) {
      const [, address] = RESULT.exec(linkedUri(block) ?? "") ?? [];
      if (address !== undefined) this.#add(owner, address);
    }
  }

  /** Tells whether an address is that of a kept result which this caller was not given. */
  isForeign(owner: string, uri: string): boolean {
    const [, address] = RESULT.exec(uri) ?? [];
    return address !== undefined && this.#byOwner.get(owner)?.has(address) !== true;
  }

  #add(owner: string, address: string): void {
    const given = this.#byOwner.get(owner) ?? new Set();
    this.#byOwner.delete(owner);
    this.#byOwner.set(owner, given);
    given.delete(address);
    given.add(address);
    dropOldest(given, GIVEN_RESULTS.addresses);
    dropOldest(this.#byOwner, GIVEN_RESULTS.callers);
  }
}

function dropOldest<K>(
  kept: { readonly size: number; keys(): Iterator<K>; delete(key: K): unknown },
  most: number,
): void {
  if (kept.size > most) kept.delete(kept.keys().next().value as K);
}

function prefixOf(uri: string): string {
  return uri.slice(0, uri.lastIndexOf("/") + 1);
}

/** What is remembered of the links in one server's results. */
export const SEEN_LINKS = {
  links: 10_000,
  /** Characters of one address. */
  length: 8_192,
  /** Characters of all of them. */
  total: 4_194_304,
} as const;

interface Seen {
  readonly uris: Set<string>;
  characters: number;
}

/**
 * Which server's results linked to an address that nobody lists. Each server has room of its own, and nothing is forgotten to
 * make more: an address that a client holds must not come to lead to another server.
 */
export class SeenLinks {
  readonly #seen = new Map<string, Seen>();

  /** Remembers an address as a server's; false where there is no room left, and it has to be qualified instead. */
  note(namespace: string, uri: string): boolean {
    const seen = this.#seen.get(namespace) ?? { uris: new Set(), characters: 0 };
    this.#seen.set(namespace, seen);
    if (seen.uris.has(uri)) return true;
    const { links, length, total } = SEEN_LINKS;
    if (uri.length > length || seen.uris.size >= links || seen.characters + uri.length > total) return false;
    seen.uris.add(uri);
    seen.characters += uri.length;
    return true;
  }

  /** Whose results linked to it; several where more than one claims it. */
  namespacesOf(uri: string): readonly string[] {
    return [...this.#seen].filter(([, { uris }]) => uris.has(uri)).map(([namespace]) => namespace);
  }
}
