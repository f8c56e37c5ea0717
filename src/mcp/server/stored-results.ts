import {
  type ResultEntry,
  type ResultStore,
  type StoredResult,
  toReadResourceResult,
} from "../../core/result/result-store.ts";
import type { McpResourceContents } from "../provider.ts";
import { invalidParams, resourceNotFound } from "./protocol-errors.ts";

const MAX_PREFIXES = 16;

/** The long results of tools, which their links lead to. */
export class StoredResults {
  readonly #store: ResultStore;
  /** What the addresses of this store begin with, learnt from those it gave. */
  readonly #prefixes = new Set<string>();

  constructor(store: ResultStore) {
    this.#store = store;
  }

  /** Keeps a result as the store does, and remembers where such results are. */
  async put(entry: ResultEntry): Promise<StoredResult> {
    const stored = await this.#store.put(entry);
    this.#remember(stored.uri);
    return stored;
  }

  /** Remembers where results are that somebody else put into the same store. */
  async learn(uri: string): Promise<void> {
    if (this.#prefixes.has(prefixOf(uri))) return;
    try {
      if ((await this.#store.read(uri, { length: 1 })) !== undefined) this.#remember(uri);
    } catch {
      // Only what is said of an expired link depends on it.
    }
  }

  /** Reads a stored result or a range of it; nothing for an address that is none of this store's. */
  async read(uri: string): Promise<McpResourceContents | undefined> {
    const found = await this.#reading(uri);
    if (found !== undefined) return found;
    for (const prefix of this.#prefixes) {
      if (prefix !== "" && uri.startsWith(prefix)) {
        throw resourceNotFound(uri, "The result has expired, or was never kept: call the tool again.");
      }
    }
    return undefined;
  }

  #remember(uri: string): void {
    if (this.#prefixes.size < MAX_PREFIXES) this.#prefixes.add(prefixOf(uri));
  }

  async #reading(uri: string): Promise<McpResourceContents | undefined> {
    try {
      return await toReadResourceResult(this.#store, uri);
    } catch (thrown) {
      if (thrown instanceof RangeError) throw invalidParams(thrown.message);
      throw thrown;
    }
  }
}

function prefixOf(uri: string): string {
  return uri.slice(0, uri.lastIndexOf("/") + 1);
}
