export type { FailedCall, FailedCallsOptions, FailedCallsPage } from "../call-options.ts";
export type { SubmitOptions, SubmittedCall } from "./durable/durable-calls.ts";
export {
  type DurableCalls,
  type DurableExecuteOptions,
  openDurableCalls,
  type ResendOptions,
  type ResultOptions,
} from "./durable/durable-calls.ts";
export type {
  AuthenticateStored,
  DurableCallsOptions,
  DurableOptions,
  DurableWorkerOptions,
} from "./durable/durable-store.ts";
export { type DrainOptions, type DurableWorker, serveDurableCalls } from "./durable/durable-worker.ts";
export { connectNatsBus, createNatsBus, type NatsBus, type NatsBusOptions } from "./nats-bus.ts";
