import { randomBytes } from "node:crypto";
import { isPlainObject, parseJsonTextOrNone } from "../../core/json/json-value.ts";
import { LEAST_KEY_CHARACTERS, type SealingKeys } from "../../mcp/server/sealing-keys.ts";
import { LONGEST_KEEP_MS, type StateRecord, type StateStore } from "../state/state-store.ts";

const NAME = { collection: "sealing", owner: "", key: "sessions" } as const;
const BOUNDS = { records: 1, bytes: 4_096, ownRecords: 1, ownBytes: 4_096 };
/** Between looks whether the key is still there, and for long enough. */
const POLL_MS = 600_000;
/** Keys of before that still open what they have sealed. */
const MOST_KEYS = 4;

/**
 * The key that replicas seal sessions with, where their config gives none: the first of them makes it, and it stays in the store. It is never
 * replaced while it is there. Where the store was emptied, the first replica that finds out stores its key again.
 */
export class SharedKey {
  readonly #store: StateStore;
  readonly #keys: SealingKeys;
  readonly #onWarning: (message: string, cause?: unknown) => void;
  readonly #stop: () => void;
  readonly #timer: ReturnType<typeof setInterval>;
  /** The present one first. */
  #secrets: readonly string[];
  #isShared = false;
  #looking: Promise<void> | undefined;

  /** `secret` is what this replica has sealed with so far. */
  constructor(
    store: StateStore,
    keys: SealingKeys,
    { secret, onWarning }: { readonly secret: string; onWarning(message: string, cause?: unknown): void },
  ) {
    this.#store = store;
    this.#keys = keys;
    this.#secrets = [secret];
    this.#onWarning = onWarning;
    this.#stop = store.watch(NAME, () => {
      // What is being looked at may be of before.
      void (this.#looking === undefined ? this.look() : this.#looking.then(() => this.look()));
    });
    this.#timer = setInterval(() => void this.look(), POLL_MS);
    this.#timer.unref();
  }

  /** Makes sure that this replica seals with the key of all; one that cannot be told keeps the key that it has, and is tried again. */
  look(): Promise<void> {
    this.#looking ??= this.#look()
      .catch((cause: unknown) => {
        this.#onWarning(
          "The key of sessions that replicas share could not be read; it is tried again.",
          cause,
        );
      })
      .finally(() => {
        this.#looking = undefined;
      });
    return this.#looking;
  }

  close(): void {
    this.#stop();
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    const found = await this.#store.get(NAME);
    if (found !== undefined) return this.#take(found);
    const [secret = makeSecret()] = this.#secrets;
    const created = await this.#store.create(NAME, encode(secret), this.#write());
    if (created.state === "exists") await this.#take(created.record);
    else if (created.state === "created") this.#isShared = true;
  }

  async #take(record: StateRecord): Promise<void> {
    const secret = decode(record);
    const [present] = this.#secrets;
    if (secret !== present) {
      if (this.#isShared) {
        this.#onWarning(
          "The shared state has another key of sessions than before: sessions that were opened meanwhile are known to fewer replicas.",
        );
      }
      this.#secrets = [secret, ...this.#secrets.filter((one) => one !== secret)].slice(0, MOST_KEYS);
      this.#keys.use(this.#secrets);
    }
    this.#isShared = true;
    if (record.expiresAt - this.#store.now() > LONGEST_KEEP_MS / 2) return;
    // Another replica may have done so: then there is nothing left to do.
    await this.#store.update(NAME, record.revision, record.value, this.#write());
  }

  #write() {
    return { expiresAt: this.#store.now() + LONGEST_KEEP_MS - 60_000, bounds: BOUNDS };
  }
}

/** Makes a key that nobody can guess. */
export function makeSecret(): string {
  return randomBytes(32).toString("base64url");
}

function encode(secret: string): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ secret }));
}

function decode({ value }: StateRecord): string {
  const found = parseJsonTextOrNone(new TextDecoder().decode(value));
  const secret = isPlainObject(found) ? found["secret"] : undefined;
  if (typeof secret === "string" && secret.length >= LEAST_KEY_CHARACTERS) return secret;
  throw new Error("The record of the key of sessions in the shared state cannot be read.");
}
