import type { ReplayStore } from "../../call/call-handler.ts";
import type { SharedState } from "../state/gateway-state.ts";
import { StateError } from "../state/state-store.ts";

/** What is remembered of calls that came over the bus with a token. */
export const REPLAYS = {
  /** As long as a token is believed, and the tolerance for clocks. */
  keepMs: 70_000,
  calls: 50_000,
} as const;

interface StateReplaysOptions {
  /** What is shared by now; nothing while that cannot be told. */
  shared(): SharedState | undefined;
  /** Whether an operation may be run twice without harm. */
  isHarmless(operationId: string): boolean;
  /** Hears that other replicas do not know of a call that ran here. */
  onAlone(cause: unknown): void;
}

const BOUNDS = { records: REPLAYS.calls, bytes: 1_048_576, ownRecords: REPLAYS.calls, ownBytes: 1_048_576 };
const VALUE = new TextEncoder().encode("{}");

/**
 * Refuses a call whose token another replica has taken already: somebody sends a copy of it. Where the store cannot be asked, each replica
 * knows its own calls alone, as the handler remembers them.
 */
export class StateReplays implements ReplayStore {
  readonly #options: StateReplaysOptions;

  constructor(options: StateReplaysOptions) {
    this.#options = options;
  }

  claim(key: string): boolean | Promise<boolean> {
    const { isHarmless, shared } = this.#options;
    if (isHarmless(key.slice(0, key.indexOf(" ")))) return true;
    const store = shared()?.store;
    return store === undefined ? true : this.#claim(store, key);
  }

  async #claim(store: SharedState["store"], key: string): Promise<boolean> {
    try {
      const write = { expiresAt: store.now() + REPLAYS.keepMs, bounds: BOUNDS, bytes: 0 };
      const { state } = await store.create({ collection: "replays", owner: "", key }, VALUE, write);
      if (state === "full")
        this.#options.onAlone(new StateError("full", "There is no room for another call."));
      return state !== "exists";
    } catch (thrown) {
      if (!(thrown instanceof StateError)) throw thrown;
      this.#options.onAlone(thrown);
      return true;
    }
  }
}
