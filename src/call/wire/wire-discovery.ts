import { monotonicNow } from "../../core/execution/deadline.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { Announcement, ServiceWatch, ServiceWatcher } from "../bus.ts";
import { overLimit } from "../call-errors.ts";
import { isServiceId } from "../discovery/read-service.ts";
import type { ServiceNotice } from "../discovery/service-notice.ts";
import { Assembly, fromChunk, isChunk, publishWhole } from "./chunk.ts";
import { flushWhileConnected } from "./flush-while-connected.ts";
import { NOBODY } from "./subjects.ts";
import type { TransportMessage, TransportSubscription } from "./transport.ts";
import type { WireHost } from "./wire-host.ts";
import { decodeMessage, encodeMessage, type WireMessage } from "./wire-message.ts";

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
export class WireDiscovery {
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

  async announce(notice: ServiceNotice): Promise<Announcement> {
    const { transport, subjects, peers } = this.#host;
    this.#assertAcceptable(notice);
    // Not before: who only asks needs no right to hear this.
    this.#asked ??= transport.subscribe(subjects.who, () => this.#answerSoon());
    const tell = (changed: ServiceNotice) => {
      this.#own.set(notice.serviceId, changed);
      this.#publish(subjects.service(notice.serviceId), changed);
    };
    tell(notice);
    peers.isService = true;
    await transport.flush();
    return {
      update: tell,
      withdraw: async () => {
        if (!this.#own.delete(notice.serviceId)) return;
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

  /** Whoever sent them is heard of again, and asked. */
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

/** Ids of different users never meet, whoever chooses them. */
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
