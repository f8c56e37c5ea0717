import {
  type HeldKey,
  type IdempotencyStore,
  type KeyBounds,
  type KeyClaim,
  type KeyEnd,
  type KeyName,
  type KeyRequest,
  keyId,
  MemoryIdempotencyStore,
} from "../../core/idempotency/idempotency-store.ts";
import { keyRefusal, type StateIdempotencyStore } from "./state-idempotency.ts";
import { StateError } from "./state-store.ts";

/** What decides where keys are kept. */
interface SwitchedKeysOptions {
  /** Keys that are shared; nothing where there is no store but this process. A `StateError` where it cannot be reached. */
  shared(): Promise<IdempotencyStore | undefined>;
  /** The same store for what was claimed there, whether it can be reached or not: it knows how that ends, and stores it as soon as it can. */
  opened(): (IdempotencyStore & Pick<StateIdempotencyStore, "own">) | undefined;
  /** Whether calls run without the store while it cannot be reached. */
  goesOnAlone(): boolean;
  /** Hears that one does. */
  onAlone(): void;
}

/** Marks claims that this process alone knows. */
const ALONE = "alone ";

/** Keeps keys in a shared store, and in this process what was claimed while that could not be reached, where the config wants so. */
export class SwitchedKeys implements IdempotencyStore {
  readonly #options: SwitchedKeysOptions;
  readonly #memory = new MemoryIdempotencyStore();
  /** Keys that were claimed alone, until when, on the clock of this process: oldest first. They stay alone, whatever the store says later. */
  readonly #alone = new Map<string, number>();

  constructor(options: SwitchedKeysOptions) {
    this.#options = options;
  }

  async claim(request: KeyRequest, bounds: KeyBounds): Promise<KeyClaim> {
    if (this.#isAlone(request)) return this.#claimAlone(request, bounds);
    // What runs or ran here is not run again because the store cannot be asked.
    const own = this.#options.opened()?.own(request);
    if (own !== undefined) return own;
    try {
      const shared = await this.#options.shared();
      return shared === undefined
        ? await this.#claimHere(request, bounds)
        : await shared.claim(request, bounds);
    } catch (thrown) {
      const isLost =
        thrown instanceof StateError && (thrown.fault === "unreachable" || thrown.fault === "slow");
      if (!isLost || !this.#options.goesOnAlone()) throw keyRefusal(thrown);
      this.#options.onAlone();
      return this.#claimAlone(request, bounds);
    }
  }

  async settle(held: HeldKey, end: KeyEnd, bounds: KeyBounds): Promise<void> {
    const own = toHere(held);
    if (own !== undefined) return this.#memory.settle(own, end, bounds);
    await this.#options.opened()?.settle(held, end, bounds);
  }

  async release(held: HeldKey): Promise<void> {
    const own = toHere(held);
    if (own === undefined) return this.#options.opened()?.release(held);
    await this.#memory.release(own);
    this.#alone.delete(keyId(held));
  }

  async ended(name: KeyName): Promise<KeyEnd | undefined> {
    if (this.#isAlone(name)) return this.#memory.ended(name);
    const opened = this.#options.opened();
    if (opened?.own(name) !== undefined) return opened.ended(name);
    try {
      return await ((await this.#options.shared()) ?? this.#memory).ended(name);
    } catch (thrown) {
      throw keyRefusal(thrown);
    }
  }

  #isAlone(name: KeyName): boolean {
    if (this.#alone.size === 0) return false;
    const now = performance.now();
    for (const [id, until] of this.#alone) {
      if (until > now) break;
      this.#alone.delete(id);
    }
    return this.#alone.has(keyId(name));
  }

  async #claimAlone(request: KeyRequest, bounds: KeyBounds): Promise<KeyClaim> {
    const claimed = await this.#claimHere(request, bounds);
    const id = keyId(request);
    if (claimed.state === "claimed") {
      this.#alone.delete(id);
      this.#alone.set(id, performance.now() + bounds.keepMs);
    }
    return claimed;
  }

  async #claimHere(request: KeyRequest, bounds: KeyBounds): Promise<KeyClaim> {
    const claimed = await this.#memory.claim(request, bounds);
    if (claimed.state !== "claimed") return claimed;
    return { state: "claimed", held: { ...claimed.held, claim: ALONE + claimed.held.claim } };
  }
}

/** The claim as the memory of this process knows it; nothing where it is the store's. */
function toHere(held: HeldKey): HeldKey | undefined {
  if (!held.claim.startsWith(ALONE)) return undefined;
  return { ...held, claim: held.claim.slice(ALONE.length) };
}
