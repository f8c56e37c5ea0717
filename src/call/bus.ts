import type { Identity } from "../core/access/identity.ts";
import type { CallError } from "../core/errors/errors.ts";
import type { AnswerEvent, AskerEvent, CallRequested } from "./call-events.ts";
import type { CallCounters, CallObserver, CallObservers } from "./call-observer.ts";
import type { ServiceNotice } from "./discovery/service-notice.ts";

/** What a service answers: one operation, or everything in a namespace. */
export type Route = { readonly operationId: string } | { readonly namespace: string };

/** The asking end of one call, told of what comes back. */
export interface Asker {
  /** The request id was made for this request alone, so that it cannot have been seen before. */
  readonly hasFreshId: boolean;
  /** The code the try before ended with; absent for a first try. */
  readonly retryOf?: string | undefined;
  /** `bytes` is the size of the message it came in, where the bus knows it. */
  receive(event: AnswerEvent, bytes?: number): void;
  /** The call cannot be answered any more: nobody is there, or its handler is gone. */
  lost(error: CallError): void;
}

/** What the asking side holds of a call under way. */
export interface AskLine {
  /** Bytes of the request as it was sent; absent where the bus wrote none. */
  readonly bytes?: number | undefined;
  send(event: AskerEvent): void;
  /** Forgets the call: whatever comes for it from now on is counted and dropped. */
  close(): void;
}

/** The answering end of one call, told of what the asking side does. */
export interface Answerer {
  receive(event: AskerEvent): void;
  /** The caller is gone. */
  lost(): void;
}

/**
 * What the answering side holds of a call under way: the private reply path of that one request. There is no other way to
 * answer, and none but the one asked is given it.
 */
export interface AnswerLine {
  /** Throws a `CallError` for what the bus cannot carry, and nothing has been sent then; never for a connection that is lost. */
  reply(event: AnswerEvent): void;
  /** Bytes of what was sent last; absent where the bus wrote none, or did not measure it because nobody observes. */
  readonly sentBytes?: number | undefined;
  /** Resolves when what was sent does not wait in this process any more. */
  flush(): Promise<void>;
  /** Forgets the call; nothing can be sent any more. */
  close(): void;
}

/** A request as a bus delivers it, with what the bus itself knows about who sent it. */
export interface Delivery {
  readonly request: CallRequested;
  /** The asking side is in this process: it sees to the deadline, and its request cannot arrive twice. */
  readonly isLocal?: boolean | undefined;
  /** As the asking side in this process says; over a network nobody can. */
  readonly hasFreshId?: boolean | undefined;
  /** Who is asking, where the bus hands it over within one process; a bus that crosses a process never sets it. */
  readonly identity?: Identity | undefined;
  /** The user the broker's permissions bind the sender to. */
  readonly user?: string | undefined;
  /** Bytes of the request as it arrived; absent where the bus wrote none. */
  readonly bytes?: number | undefined;
}

/** Takes one request; what it returns hears of the caller from then on. */
export type Take = (delivery: Delivery, line: AnswerLine) => Answerer | undefined;

/** What a bus may ask a member about. */
export interface MemberFacts {
  /** Tells whether a request with this id has run here: its caller would rather have another try it again. */
  hasRun(requestId: string): boolean;
}

/** A place in the group that answers a route. */
export interface Membership {
  /** Takes no more requests; resolves when the last one that was on its way has been taken. */
  leave(): Promise<void>;
}

/** How calls of one operation went since its service was started. */
export interface OperationStats {
  readonly calls: number;
  /** Calls that failed, and those that ran and reported an error. */
  readonly errors: number;
  /** Milliseconds that all calls took together. */
  readonly busyMs: number;
  /** Says what the last error was, in words of this package. */
  readonly lastError?: string;
}

/** What a bus may ask a service about. */
export interface ServiceFacts {
  statsOf(operationId: string): OperationStats | undefined;
}

/** A service that lets itself be found. */
export interface Announcement {
  /** Tells everybody what the service offers now. */
  update(notice: ServiceNotice): void;
  /** Tells everybody that it is gone. */
  withdraw(): Promise<void>;
}

/** Hears which services there are. */
export interface ServiceWatcher {
  /** A service has come, or offers something else than before. */
  found(notice: ServiceNotice): void;
  /** A service has left, or has not been heard of for too long. */
  gone(serviceId: string): void;
}

/** Watching services. */
export interface ServiceWatch {
  /** Resolves once every service that was there at the start has been heard. */
  readonly ready: Promise<void>;
  stop(): void;
}

/**
 * Carries calls between those who ask and those who answer.
 *
 * A bus finds one member of the group that answers an operation, hands the request to it once, with a line to the caller that nobody
 * else can use, and keeps the order of what is sent on a line. It knows nothing of what calls mean. Every bus passes `test/bus-contract.ts`.
 */
export interface Bus {
  /** Sends a request to one of those who answer; throws a `CallError` when it cannot be sent at all. */
  request(request: CallRequested, asker: Asker, identity?: Identity): AskLine;
  /** Joins those who answer a route; resolves once requests can arrive. */
  join(route: Route, take: Take, facts?: MemberFacts): Promise<Membership>;
  /** Lets a service be found; resolves once everybody who listens has been told. */
  announce(notice: ServiceNotice, facts?: ServiceFacts): Promise<Announcement>;
  /** Whether it tells others how calls of a service went; services count them only then. @default false */
  readonly tellsStats?: boolean | undefined;
  /** Hears of services, those already there first. */
  watch(watcher: ServiceWatcher): ServiceWatch;
  /** Resolves when what was sent does not wait in this process any more. */
  flush(): Promise<void>;
  /** What was dropped since the bus was made, and why. */
  readonly counters: CallCounters;
  /** Whether an identity given to `request` reaches the other side by itself; elsewhere a signed token has to say it. */
  readonly carriesIdentity: boolean;
  /** Where both ends report their calls; a bus without it cannot be observed. */
  readonly observers?: CallObservers | undefined;
  close(): Promise<void>;
}

/** A member that calls of this side leave out for a while, since it failed some of them or had no room. */
export interface LeftOutMember {
  /** Absent where it is left out for all operations. */
  readonly operationId?: string;
  /** What the bus calls it; absent where it is not known which one it is. */
  readonly member?: string;
}

/** A bus whose calls can be observed, as those of this package can. */
export interface ObservableBus extends Bus {
  readonly observers: CallObservers;
  /** The members that calls of this side leave out now. */
  readonly leftOut: readonly LeftOutMember[];
  /** Hears of calls that begin from now on, at whichever end this process has of them; returns how to stop. */
  onCall(observer: CallObserver): () => void;
}
