import { CallError } from "../../core/errors/errors.ts";
import { isPlainObject, parseJsonTextOrNone } from "../../core/json/json-value.ts";
import type {
  RangeRequest,
  ResultEntry,
  ResultRange,
  ResultStore,
  StoredReader,
  StoredResult,
} from "../../core/result/result-store.ts";
import { createMemoryStore, cutStoredText, parseResultUri } from "../../formats/preview/memory-store.ts";
import type { StateAccess } from "./gateway-state.ts";
import { MOST_VALUE_BYTES, type StateBounds, StateError, type StateName } from "./state-store.ts";

/** How long results are kept for the links that lead to them, and how many of them for all replicas. */
export const STATE_RESULTS = {
  keepMs: 900_000,
  bounds: { records: 10_000, bytes: 134_217_728, ownRecords: 5_000, ownBytes: 67_108_864 },
} as const satisfies { readonly keepMs: number; readonly bounds: StateBounds };

/** Characters of what was read last, which ranges are often read of. */
const READ_CHARACTERS = 33_554_432;

interface StateResultsOptions {
  readonly access: StateAccess;
  /** Hears that this replica alone keeps a result. */
  onAlone(): void;
}

/** What is kept of a result. */
type Kept = Pick<ResultEntry, "text" | "mimeType" | "encoding" | "binding">;

/**
 * Keeps results in this process, as ever, and for the other replicas in the store of the state: a link that one of them gave is read at each.
 * One that the store does not take is kept by this replica alone.
 */
export class StateResults implements ResultStore {
  readonly #options: StateResultsOptions;
  readonly #own = createMemoryStore({ ttlMs: STATE_RESULTS.keepMs });
  readonly #read = new Map<string, { readonly kept: Kept; readonly expiresAt: number }>();
  #characters = 0;

  constructor(options: StateResultsOptions) {
    this.#options = options;
  }

  async put(entry: ResultEntry): Promise<StoredResult> {
    const stored = this.#own.put(entry);
    if (!(await this.#share(stored.uri, entry))) this.#options.onAlone();
    return stored;
  }

  async read(uri: string, range?: RangeRequest, reader?: StoredReader): Promise<ResultRange | undefined> {
    const own = this.#own.read(uri, range);
    const address = own === undefined ? parseResultUri(uri) : undefined;
    if (address === undefined) return own;
    const kept = await this.#find(nameOf(address.id, reader?.owner));
    return kept && cutStoredText(kept, address, range);
  }

  /** Whether other replicas can read it, where there may be some. */
  async #share(uri: string, entry: ResultEntry): Promise<boolean> {
    try {
      const shared = await this.#options.access.reach();
      if (shared === undefined) return true;
      const value = encode(entry);
      if (value.length > MOST_VALUE_BYTES) return false;
      const { keepMs, bounds } = STATE_RESULTS;
      const write = { expiresAt: shared.store.now() + keepMs, bounds };
      const name = nameOf(parseResultUri(uri)?.id ?? "", entry.owner);
      return (await shared.store.create(name, value, write)).state === "created";
    } catch (thrown) {
      if (thrown instanceof StateError) return false;
      throw thrown;
    }
  }

  async #find(name: StateName): Promise<Kept | undefined> {
    try {
      const shared = await this.#options.access.reach();
      if (shared === undefined) return undefined;
      const id = JSON.stringify([name.owner, name.key]);
      const known = this.#read.get(id);
      if (known !== undefined) {
        if (known.expiresAt > shared.store.now()) return known.kept;
        this.#forget(id);
      }
      const found = await shared.store.get(name);
      const kept = found && decode(found.value);
      if (kept !== undefined) this.#remember(id, { kept, expiresAt: found?.expiresAt ?? 0 });
      return kept;
    } catch (thrown) {
      if (!(thrown instanceof StateError)) throw thrown;
      const message = "Another replica may keep the result, and the shared state cannot be asked.";
      throw new CallError("UNAVAILABLE", `${message} Try again later.`, { cause: thrown, stack: false });
    }
  }

  #remember(id: string, read: { readonly kept: Kept; readonly expiresAt: number }): void {
    this.#forget(id);
    this.#read.set(id, read);
    this.#characters += read.kept.text.length;
    for (const oldest of this.#read.keys()) {
      if (this.#characters <= READ_CHARACTERS) break;
      this.#forget(oldest);
    }
  }

  #forget(id: string): void {
    this.#characters -= this.#read.get(id)?.kept.text.length ?? 0;
    this.#read.delete(id);
  }
}

function nameOf(id: string, owner = ""): StateName {
  return { collection: "results", owner, key: id };
}

/** A line that says what the text behind it is. Half of a surrogate pair is kept as it is. */
function encode({ text, mimeType, encoding, binding }: ResultEntry): Uint8Array {
  const utf8 = Buffer.from(text);
  const isWhole = utf8.toString() === text;
  const head = JSON.stringify({ mimeType, encoding, binding, ...(!isWhole && { units: 16 }) });
  return Buffer.concat([Buffer.from(`${head}\n`), isWhole ? utf8 : Buffer.from(text, "utf16le")]);
}

/** Reads what another replica wrote. */
function decode(value: Uint8Array): Kept {
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.length);
  const end = bytes.indexOf(10);
  const head = end < 0 ? undefined : parseJsonTextOrNone(bytes.toString("utf8", 0, end));
  if (isPlainObject(head)) {
    const { mimeType, encoding, binding, units } = head;
    const isKnown = encoding === undefined || encoding === "base64";
    const isBound = binding === undefined || typeof binding === "string";
    if (typeof mimeType === "string" && isKnown && isBound && (units === undefined || units === 16)) {
      const text = bytes.toString(units === 16 ? "utf16le" : "utf8", end + 1);
      return { text, mimeType, encoding, binding };
    }
  }
  throw new StateError("damaged", "A result in the shared state cannot be read.");
}
