import { MemoryIdempotencyStore } from "../src/core/idempotency/idempotency-store.ts";
import { createLocalStateStore } from "../src/gateway/state/local-state-store.ts";
import { describeIdempotencyStore } from "./idempotency-store-contract.ts";
import { createKeys } from "./state-keys.ts";

describeIdempotencyStore("memory", () => new MemoryIdempotencyStore());
describeIdempotencyStore("the state of one process", () => {
  const store = createLocalStateStore({ now: () => performance.timeOrigin + performance.now() });
  return createKeys(store, "a").keys;
});
