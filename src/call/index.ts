export type {
  Announcement,
  Answerer,
  AnswerLine,
  Asker,
  AskLine,
  Bus,
  Delivery,
  MemberFacts,
  Membership,
  ObservableBus,
  Route,
  ServiceWatch,
  ServiceWatcher,
  Take,
} from "./bus.ts";
export type { CallCounters, DropReason } from "./call-counters.ts";
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
export { CALL_LIMITS, type CallLimits } from "./call-limits.ts";
export { type CallObservation, type CallObserver, CallObservers } from "./call-observer.ts";
export type { CallOptions, CredentialSource, RetryOptions } from "./call-options.ts";
export type { BoundCall } from "./credentials/bound-call.ts";
export { fromBrokerUser } from "./credentials/from-broker-user.ts";
export type { TokenAlgorithm, TokenKey } from "./credentials/token-key.ts";
export { createTokenSigner, type TokenSigner, type TokenSignerOptions } from "./credentials/token-signer.ts";
export {
  createTokenVerifier,
  type TokenVerifier,
  type TokenVerifierOptions,
} from "./credentials/token-verifier.ts";
export type { NamedKey, VerificationKeys } from "./credentials/verification-keys.ts";
export type { OperationConflict } from "./discovery/offer-table.ts";
export type { KnownService } from "./discovery/operation-directory.ts";
export type { OperationNotice, ServiceNotice } from "./discovery/service-notice.ts";
export type { UnusableOffer } from "./discovery/service-offers.ts";
export type { DurableCaller } from "./durable-caller.ts";
export { createMemoryBus } from "./memory-bus.ts";
export { PendingRequestMap, type PendingRequestMapOptions } from "./pending-request-map.ts";
export { createRemoteRegistry, RemoteRegistry, type RemoteRegistryOptions } from "./remote-registry.ts";
export { createMemoryTransport, MemoryBroker, type MemoryTransportOptions } from "./wire/memory-transport.ts";
export type {
  Transport,
  TransportMessage,
  TransportSubscription,
} from "./wire/transport.ts";
export { createWireBus, type WireBusOptions } from "./wire/wire-bus.ts";
