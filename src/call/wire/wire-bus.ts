import { CallError } from "../../core/errors/errors.ts";
import { monotonicNow } from "../../core/execution/cancellation.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { checkOption } from "../../core/options/check-options.ts";
import type {
  Announcement,
  Asker,
  AskLine,
  LeftOutMember,
  MemberFacts,
  Membership,
  ObservableBus,
  Route,
  ServiceFacts,
  ServiceWatch,
  ServiceWatcher,
  Take,
} from "../bus.ts";
import { overLimit } from "../call-errors.ts";
import type { CallRequested } from "../call-events.ts";
import {
  type CallCounters,
  type CallObserver,
  CallObservers,
  createCounters,
  type LiveCounters,
} from "../call-observer.ts";
import { type CallLimits, readCallLimits } from "../call-options.ts";
import { EJECTION_MS } from "../circuits.ts";
import type { ServiceNotice } from "../discovery/service-notice.ts";
import { isServiceId } from "../discovery/service-notice.ts";
import { AnswerLines } from "./answer-lines.ts";
import { AskLines } from "./ask-lines.ts";
import { Assembly, fromChunk, publishWhole } from "./chunks.ts";
import { BEAT_MS, BEAT_RANGE_MS, Peers } from "./peers.ts";
import { ReplyBatches } from "./reply-batches.ts";
import { DescribedService } from "./service-protocol.ts";
import { NOBODY, Subjects } from "./subjects.ts";
import type { Transport, TransportMessage, TransportSubscription } from "./transport.ts";
import { decodeMessage, encodeMessage, isChunk, type WireMessage } from "./wire-message.ts";

/** How a bus uses its transport. */
export interface WireBusOptions {
  /** What all subjects begin with; buses with different ones do not meet. @default "waybill" */
  readonly prefix?: string | undefined;
  /** The user the broker's permissions bind this connection to; part of the subject of every request. @default "_" */
  readonly user?: string | undefined;
  /**
   * Milliseconds between signs of life, from 10 to 60,000; a side that gives none for three and a half of them counts as gone. Two ends
   * that differ go by the slower beat. @default 2_000
   */
  readonly beatMs?: number | undefined;
  /**
   * Milliseconds that calls leave out a member which failed; twice as long each time the call that tries it again fails too, up to
   * 300,000. @default 10_000
   */
  readonly ejectionMs?: number | undefined;
  readonly limits?: Partial<CallLimits> | undefined;
}

/** Makes a bus of anything that carries bytes between subjects: everything is written down, checked and counted here. */
export function createWireBus(transport: Transport, options: WireBusOptions = {}): ObservableBus {
  return new WireBus(transport, options);
}

class WireBus implements ObservableBus {
  readonly carriesIdentity = false;
  readonly observers = new CallObservers({ isMeasured: true });
  readonly #transport: Transport;
  readonly #counters = createCounters();
  readonly #peers: Peers;
  readonly #replies: ReplyBatches;
  readonly #asking: AskLines;
  readonly #answering: AnswerLines;
  readonly #discovery: WireDiscovery;
  #isClosed = false;

  constructor(transport: Transport, { prefix, user, beatMs = BEAT_MS, ejectionMs, limits }: WireBusOptions) {
    const { least, most } = BEAT_RANGE_MS;
    if (!(Number.isFinite(beatMs) && beatMs >= least && beatMs <= most)) {
      throw new TypeError(`beatMs must be a number of milliseconds from ${least} to ${most}.`);
    }
    checkOption("ejectionMs", ejectionMs, "a number of milliseconds, 1 or more", Number(ejectionMs) >= 1);
    const { messageBytes, services } = readCallLimits(limits);
    const subjects = new Subjects(prefix, user);
    this.#transport = transport;
    this.#replies = new ReplyBatches(transport);
    this.#peers = new Peers(transport, subjects, { beatMs, onTick: () => this.#tick() });
    const host: WireHost = {
      transport,
      subjects,
      peers: this.#peers,
      replies: this.#replies,
      counters: this.#counters,
      observers: this.observers,
      ejectionMs: ejectionMs ?? EJECTION_MS.first,
      messageBytes,
      services,
    };
    this.#asking = new AskLines(host);
    this.#answering = new AnswerLines(host);
    this.#discovery = new WireDiscovery(host);
    transport.onDisconnect(() => {
      this.#asking.loseAll(lostConnection());
      this.#answering.loseStreams();
    });
    transport.onClosed(() => this.#lose());
  }

  get counters(): CallCounters {
    return { ...this.#counters };
  }

  get leftOut(): readonly LeftOutMember[] {
    return this.#asking.members.leftOut();
  }

  /** The identity is not for the wire: only a signed token in the request, or the broker's own word, says who is asking. */
  request(request: CallRequested, asker: Asker): AskLine {
    this.#assertOpen();
    return this.#asking.request(request, asker);
  }

  async join(route: Route, take: Take, facts?: MemberFacts): Promise<Membership> {
    this.#assertOpen();
    return this.#answering.join(route, take, facts);
  }

  get tellsStats(): boolean {
    return this.#transport.servicePrefix !== undefined;
  }

  async announce(notice: ServiceNotice, facts?: ServiceFacts): Promise<Announcement> {
    this.#assertOpen();
    return this.#discovery.announce(notice, facts);
  }

  watch(watcher: ServiceWatcher): ServiceWatch {
    this.#assertOpen();
    return this.#discovery.watch(watcher);
  }

  onCall(observer: CallObserver): () => void {
    return this.observers.add(observer);
  }

  flush(): Promise<void> {
    this.#asking.flush();
    this.#replies.flush();
    return flushWhileConnected(this.#transport);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#discovery.close();
    this.#peers.close();
    this.#lose();
    this.#replies.flush();
    await this.#transport.close();
  }

  #assertOpen(): void {
    if (this.#isClosed) throw new CallError("UNAVAILABLE", "The bus is closed.", { stack: false });
  }

  #tick(): boolean {
    this.#asking.tick();
    this.#answering.tick();
    return this.#asking.size > 0 || this.#answering.size > 0;
  }

  #lose(): void {
    this.#asking.loseAll(lostConnection());
    this.#answering.loseAll();
  }
}

function lostConnection(): CallError {
  const message = "The connection to the bus was lost while the call was under way; it may have run.";
  return new CallError("UNAVAILABLE", message, { stack: false });
}

/** What both halves of a bus work with. */
export interface WireHost {
  readonly transport: Transport;
  readonly subjects: Subjects;
  readonly peers: Peers;
  readonly replies: ReplyBatches;
  readonly counters: LiveCounters;
  readonly observers: CallObservers;
  /** Milliseconds that a member which failed is left out at first. */
  readonly ejectionMs: number;
  /** Bytes of one event at most. */
  readonly messageBytes: number;
  /** Services that are known at a time. */
  readonly services: number;
}

/** A service that is asked by many answers all of them together, at most once in this time. */
const ANSWER_EVERY_MS = 100;

/** Services are thought to be complete when none has spoken up for this long, and in any case after the longest wait. */
const QUIET_MS = 250;
const LONGEST_WAIT_MS = 2_000;

/** Asking again for services that are heard of and not known. */
const ASK_AGAIN_MS = 500;

/** Notices of different services that may be on their way at a time. */
const ASSEMBLIES = 64;

/** Bytes of them, as a multiple of the largest one allowed. */
const ASSEMBLED_AT_A_TIME = 2;

const MAX_NAME = 200;

/** Lets services be found, and finds them. */
class WireDiscovery {
  readonly #host: WireHost;
  readonly #own = new Map<string, ServiceNotice>();
  readonly #watches = new Set<Watch>();
  readonly #stopAnswering: () => void;
  #asked: TransportSubscription | undefined;
  #answering: ReturnType<typeof setTimeout> | undefined;
  #answeredAt = Number.NEGATIVE_INFINITY;

  constructor(host: WireHost) {
    this.#host = host;
    const { transport, peers } = host;
    const stopReconnect = transport.onReconnect(() => {
      for (const watch of this.#watches) watch.ask();
    });
    peers.onUnknownService(() => {
      for (const watch of this.#watches) watch.askSoon();
    });
    this.#stopAnswering = () => {
      this.#asked?.stop();
      clearTimeout(this.#answering);
      stopReconnect();
      peers.onUnknownService(undefined);
    };
  }

  async announce(notice: ServiceNotice, facts?: ServiceFacts): Promise<Announcement> {
    const { transport, subjects, peers } = this.#host;
    const { servicePrefix } = transport;
    this.#assertAcceptable(notice);
    const described =
      servicePrefix === undefined
        ? undefined
        : new DescribedService(this.#host, servicePrefix, { notice, facts });
    // Not before: who only asks needs no right to hear this.
    this.#asked ??= transport.subscribe(subjects.who, () => this.#answerSoon());
    const tell = (changed: ServiceNotice) => {
      this.#own.set(notice.serviceId, changed);
      described?.update(changed);
      this.#publish(subjects.service(notice.serviceId), changed);
    };
    tell(notice);
    peers.isService = true;
    await transport.flush();
    return {
      update: tell,
      withdraw: async () => {
        if (!this.#own.delete(notice.serviceId)) return;
        described?.stop();
        peers.isService = this.#own.size > 0;
        const gone = { serviceId: notice.serviceId, gone: true };
        transport.publish(
          subjects.service(notice.serviceId),
          encodeMessage({ service: gone }, "VALIDATION_ERROR"),
        );
        await flushWhileConnected(transport);
      },
    };
  }

  watch(watcher: ServiceWatcher): ServiceWatch {
    const watch = new Watch(this.#host, watcher, () => this.#watches.delete(watch));
    this.#watches.add(watch);
    watch.ask();
    return watch;
  }

  close(): void {
    this.#stopAnswering();
    for (const watch of [...this.#watches]) watch.stop();
  }

  /** What nobody would accept is better known here than silently dropped there. */
  #assertAcceptable(notice: ServiceNotice): void {
    if (!isServiceId(notice.serviceId)) {
      throw new TypeError('A service id may hold letters, digits, "_" and "-", at most 100.');
    }
    if (notice.name.length > MAX_NAME)
      throw new TypeError(`The name of a service has at most ${MAX_NAME} characters.`);
    const bytes = this.#encode(notice).length;
    const { messageBytes } = this.#host;
    if (bytes <= messageBytes) return;
    const message = `What the service offers takes ${bytes} bytes; the bus carries at most ${messageBytes} (limits.messageBytes).`;
    throw overLimit(message, { limit: "messageBytes", allowed: messageBytes, bytes }, false);
  }

  #encode(notice: ServiceNotice): Uint8Array {
    const { ownAddress: peer, ownBeat } = this.#host.peers;
    return encodeMessage({ service: notice, peer, ...ownBeat }, "VALIDATION_ERROR");
  }

  /** For everybody to hear, on the one subject that nobody else may speak on. */
  #answerSoon(): void {
    const wait = this.#answeredAt + ANSWER_EVERY_MS - monotonicNow();
    this.#answering ??= setTimeout(
      () => {
        this.#answering = undefined;
        this.#answeredAt = monotonicNow();
        for (const notice of this.#own.values())
          this.#publish(this.#host.subjects.service(notice.serviceId), notice);
      },
      Math.max(0, wait),
    );
  }

  #publish(subject: string, notice: ServiceNotice): void {
    publishWhole(this.#host.transport, subject, crypto.randomUUID(), this.#encode(notice));
  }
}

/** One who wants to know which services there are. */
class Watch implements ServiceWatch {
  readonly ready: Promise<void>;
  readonly #host: WireHost;
  readonly #watcher: ServiceWatcher;
  readonly #replyTo: string;
  /** What is tracked for each service, by its id. */
  readonly #known = new Map<string, { readonly peer: string; lost(): void }>();
  readonly #assemblies = new Map<string, Assembly>();
  /** Bytes of them that are here. */
  #assembling = 0;
  readonly #stopHearing: () => void;
  #quiet: ReturnType<typeof setTimeout> | undefined;
  #asking: ReturnType<typeof setTimeout> | undefined;
  #settle: () => void = () => {};

  constructor(host: WireHost, watcher: ServiceWatcher, onStop: () => void) {
    const { transport, subjects } = host;
    this.#host = host;
    this.#watcher = watcher;
    // Only for the broker's word that there is nobody; answers are for everybody.
    this.#replyTo = `${transport.inbox}-services.${crypto.randomUUID()}`;
    this.ready = new Promise((resolve) => {
      this.#settle = resolve;
    });
    const answers = transport.subscribe(this.#replyTo, ({ isUndelivered }) => {
      if (isUndelivered === true) this.#settle();
    });
    const news = transport.subscribe(subjects.services, (message) => this.#hear(message));
    const longest = setTimeout(() => this.#settle(), LONGEST_WAIT_MS);
    this.#stopHearing = () => {
      answers.stop();
      news.stop();
      clearTimeout(longest);
      onStop();
    };
  }

  ask(): void {
    const { transport, subjects } = this.#host;
    if (!transport.isConnected) return;
    transport.publish(subjects.who, new Uint8Array(), this.#replyTo);
    this.#waitForQuiet();
  }

  askSoon(): void {
    this.#asking ??= setTimeout(() => {
      this.#asking = undefined;
      this.ask();
    }, ASK_AGAIN_MS);
  }

  stop(): void {
    this.#stopHearing();
    clearTimeout(this.#quiet);
    clearTimeout(this.#asking);
    for (const known of this.#known.values()) this.#host.peers.untrack(known.peer, known);
    this.#known.clear();
    this.#settle();
  }

  #waitForQuiet(): void {
    clearTimeout(this.#quiet);
    this.#quiet = setTimeout(() => this.#settle(), QUIET_MS);
  }

  #hear(message: TransportMessage): void {
    this.#waitForQuiet();
    const bytes = isChunk(message.data) ? this.#assemble(message.data) : message.data;
    if (bytes === undefined) return;
    const decoded = decodeMessage(bytes);
    if (typeof decoded === "string") this.#host.counters[decoded]++;
    else this.#take(decoded, this.#host.subjects.serviceUser(message.subject));
  }

  #assemble(bytes: Uint8Array): Uint8Array | undefined {
    const chunk = fromChunk(bytes);
    const { counters, messageBytes } = this.#host;
    if (chunk === undefined || chunk.total > messageBytes) {
      counters[chunk === undefined ? "malformed" : "oversized"]++;
      return undefined;
    }
    let assembly = this.#assemblies.get(chunk.key);
    if (assembly === undefined) {
      if (this.#assemblies.size >= ASSEMBLIES) this.#forgetAssemblies();
      assembly = new Assembly(chunk.total);
      this.#assemblies.set(chunk.key, assembly);
    }
    const before = assembly.received;
    const whole = assembly.add(chunk);
    this.#assembling += assembly.received - before;
    if (whole === undefined) {
      if (this.#assembling > ASSEMBLED_AT_A_TIME * messageBytes) this.#forgetAssemblies();
      return undefined;
    }
    this.#assemblies.delete(chunk.key);
    this.#assembling -= assembly.received;
    if (whole !== false) return whole;
    counters.gaps++;
    return undefined;
  }

  /** Their sender is heard of again, and asked. */
  #forgetAssemblies(): void {
    this.#host.counters.overLimit++;
    this.#assemblies.clear();
    this.#assembling = 0;
  }

  /** `user` is whom the subject speaks for, which permissions are about. */
  #take({ service, peer, beatMs }: WireMessage, user: string): void {
    if (!isServiceMessage(service)) this.#host.counters.malformed++;
    else if ("gone" in service) this.#forget(fullId(service.serviceId, user));
    else if (peer === undefined) this.#host.counters.malformed++;
    else if (!isOf(peer, user)) this.#host.counters.forged++;
    else this.#find({ ...service, serviceId: fullId(service.serviceId, user) }, peer, beatMs);
  }

  #find(service: ServiceNotice, peer: string, beatMs: number | undefined): void {
    const { serviceId } = service;
    if (!this.#known.has(serviceId) && this.#known.size >= this.#host.services) {
      this.#host.counters.overLimit++;
    } else {
      this.#track(serviceId, peer, beatMs);
      this.#watcher.found(service);
    }
  }

  #track(serviceId: string, peer: string, beatMs: number | undefined): void {
    const known = this.#known.get(serviceId);
    if (known?.peer === peer) return;
    if (known !== undefined) this.#host.peers.untrack(known.peer, known);
    const line = { peer, lost: () => this.#forget(serviceId) };
    this.#known.set(serviceId, line);
    this.#host.peers.track(peer, line, this.#host.peers.agreeWith(beatMs));
  }

  #forget(serviceId: string): void {
    const known = this.#known.get(serviceId);
    if (known === undefined) return;
    this.#known.delete(serviceId);
    this.#host.peers.untrack(known.peer, known);
    this.#watcher.gone(serviceId);
  }
}

/** Ids of different users never meet, however they are chosen. */
function fullId(serviceId: string, user: string): string {
  return user === NOBODY ? serviceId : `${user}.${serviceId}`;
}

function isOf(address: string, user: string): boolean {
  return address.startsWith(`${user}.`);
}

type ServiceMessage = ServiceNotice | { readonly serviceId: string; readonly gone: true };

/** The operations are for the directory to judge, one by one. */
function isServiceMessage(value: unknown): value is ServiceMessage {
  if (!isPlainObject(value)) return false;
  const { serviceId, name, operations, gone } = value;
  if (!isServiceId(serviceId) || serviceId.includes(".")) return false;
  if (gone === true) return true;
  return typeof name === "string" && name.length <= MAX_NAME && Array.isArray(operations);
}

/** Waits until what was sent has left this process; not for a connection that is lost, which may never come back. */
async function flushWhileConnected(transport: Transport): Promise<void> {
  if (!transport.isConnected) return;
  await new Promise<void>((resolve, reject) => {
    const forget = transport.onDisconnect(resolve);
    transport.flush().then(resolve, reject).finally(forget);
  });
}
