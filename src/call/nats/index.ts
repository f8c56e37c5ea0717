export {
  type DurableCalls,
  type DurableExecuteOptions,
  openDurableCalls,
  type ResultOptions,
} from "./durable/durable-calls.ts";
export type {
  AuthenticateStored,
  DurableCallsOptions,
  DurableOptions,
  DurableWorkerOptions,
} from "./durable/durable-options.ts";
export { type DrainOptions, type DurableWorker, serveDurableCalls } from "./durable/durable-worker.ts";
export type { SubmitOptions, SubmittedCall } from "./durable/submit-call.ts";
export { connectNatsBus, createNatsBus, type NatsBus, type NatsBusOptions } from "./nats-bus.ts";
