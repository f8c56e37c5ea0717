import { ReplicaLease } from "../src/gateway/state/replica-lease.ts";
import {
  type StateIdempotencyOptions,
  StateIdempotencyStore,
} from "../src/gateway/state/state-idempotency.ts";
import type { StateStore } from "../src/gateway/state/state-store.ts";

/** Keys of one replica, and how it leaves. */
export interface OpenedKeys {
  readonly keys: StateIdempotencyStore;
  close(): Promise<void>;
}

/** Keeps keys in a store, as one replica of several. */
export function createKeys(
  store: StateStore,
  replica: string,
  leaseMs?: number,
  hears: Partial<StateIdempotencyOptions> = {},
): OpenedKeys {
  const lease = new ReplicaLease(store, { replica, leaseMs });
  const keys = new StateIdempotencyStore(store, { collection: "keys", lease, ...hears });
  return {
    keys,
    async close() {
      await keys.close();
      await lease.close();
    },
  };
}
