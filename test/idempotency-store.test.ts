import { MemoryIdempotencyStore } from "../src/core/idempotency/memory-idempotency-store.ts";
import { describeIdempotencyStore } from "./idempotency-store-contract.ts";

describeIdempotencyStore("memory", () => new MemoryIdempotencyStore());
