import {
  type ResultEntry,
  type ResultStore,
  type StoredResult,
  toReadResourceResult,
} from "../../core/result/result-store.ts";
import type { McpResourceContents } from "../provider.ts";
import { invalidParams, resourceNotFound } from "./protocol-errors.ts";

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
    if (this.#prefixes.size < 16) this.#prefixes.add(stored.uri.slice(0, stored.uri.lastIndexOf("/") + 1));
    return stored;
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

  async #reading(uri: string): Promise<McpResourceContents | undefined> {
    try {
      return await toReadResourceResult(this.#store, uri);
    } catch (thrown) {
      if (thrown instanceof RangeError) throw invalidParams(thrown.message);
      throw thrown;
    }
  }
}
