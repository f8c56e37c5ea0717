export type {
  Announcement,
  Answerer,
  AnswerLine,
  Asker,
  AskLine,
  Bus,
  Delivery,
  LeftOutMember,
  MemberFacts,
  Membership,
  ObservableBus,
  OperationStats,
  Route,
  ServiceFacts,
  ServiceWatch,
  ServiceWatcher,
  Take,
} from "./bus.ts";
export {
  type AbortReason,
  type AnswerEvent,
  type AskerEvent,
  type CallAborted,
  type CallCompleted,
  type CallCredit,
  type CallErrorPayload,
  type CallEvent,
  type CallEventPayload,
  CallEventSchema,
  type CallEventType,
  type CallFailed,
  type CallProgress,
  type CallRequested,
  type CallResponded,
} from "./call-events.ts";
export {
  type Authenticate,
  CallHandler,
  type CallHandlerOptions,
  type ReplayStore,
  type Servable,
  serveCalls,
} from "./call-handler.ts";
export type { CallCounters } from "./call-observer.ts";
export { type CallObservation, type CallObserver, CallObservers } from "./call-observer.ts";
export type { CallOptions, CallRetryOptions, CredentialSource } from "./call-options.ts";
export { CALL_LIMITS, type CallLimits } from "./call-options.ts";
export type { CircuitBreakerOptions } from "./circuits.ts";
export type { BoundCall, TokenAlgorithm, TokenKey } from "./credentials/token-key.ts";
export { createTokenSigner, type TokenSigner, type TokenSignerOptions } from "./credentials/token-signer.ts";
export type { NamedKey, VerificationKeys } from "./credentials/token-verifier.ts";
export {
  createTokenVerifier,
  fromBrokerUser,
  type TokenVerifier,
  type TokenVerifierOptions,
} from "./credentials/token-verifier.ts";
export type { OperationConflict } from "./discovery/offer-table.ts";
export type { KnownService } from "./discovery/service-directory.ts";
export type { OperationNotice, ServiceNotice } from "./discovery/service-notice.ts";
export type { UnusableOffer } from "./discovery/service-offers.ts";
export { createMemoryBus } from "./memory-bus.ts";
export { PendingRequestMap, type PendingRequestMapOptions } from "./pending-request-map.ts";
export type { DurableCaller } from "./remote-registry.ts";
export { createRemoteRegistry, type RemoteRegistry, type RemoteRegistryOptions } from "./remote-registry.ts";
export type { RetryBudgetOptions } from "./retry-budget.ts";
export type {
  Transport,
  TransportMessage,
  TransportSubscription,
} from "./wire/transport.ts";
export { createMemoryTransport, MemoryBroker, type MemoryTransportOptions } from "./wire/transport.ts";
export { createWireBus, type WireBusOptions } from "./wire/wire-bus.ts";
