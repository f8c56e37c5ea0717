import { isPlainObject } from "../../core/json/json-value.ts";
import type { Announcement, ServiceWatch, ServiceWatcher } from "../bus.ts";
import type { ServiceNotice } from "../discovery/service-notice.ts";
import { Assembly, fromChunk, isChunk, publishWhole } from "./chunk.ts";
import type { TransportMessage, TransportSubscription } from "./transport.ts";
import type { WireHost } from "./wire-host.ts";
import { decodeMessage, encodeMessage } from "./wire-message.ts";

/** Services are thought to be complete when none has spoken up for this long, and in any case after the longest wait. */
const QUIET_MS = 120;
const LONGEST_WAIT_MS = 2_000;

/** Asking again for services that are heard of and not known. */
const ASK_AGAIN_MS = 500;

/** Notices of different services that may be on their way at a time. */
const ASSEMBLIES = 64;

/** Bytes of them, as a multiple of the largest one allowed. */
const ASSEMBLED_AT_A_TIME = 2;

const SERVICE_ID = /^[A-Za-z0-9_-]{1,100}$/;
const MAX_NAME = 200;

/** Lets services be found, and finds them. */
export class WireDiscovery {
  readonly #host: WireHost;
  readonly #own = new Map<string, ServiceNotice>();
  readonly #watches = new Set<Watch>();
  readonly #stopAnswering: () => void;
  #asked: TransportSubscription | undefined;

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
      stopReconnect();
      peers.onUnknownService(undefined);
    };
  }

  async announce(notice: ServiceNotice): Promise<Announcement> {
    const { transport, subjects, peers } = this.#host;
    if (!SERVICE_ID.test(notice.serviceId)) {
      throw new TypeError('A service id may hold letters, digits, "_" and "-", at most 100.');
    }
    // Not before: who only asks needs no right to hear this.
    this.#asked ??= transport.subscribe(subjects.who, ({ replyTo }) => this.#answer(replyTo));
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
        if (transport.isConnected) await transport.flush();
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

  #answer(replyTo: string | undefined): void {
    if (replyTo === undefined || this.#host.subjects.isOwn(replyTo)) return;
    for (const notice of this.#own.values()) this.#publish(replyTo, notice);
  }

  #publish(subject: string, notice: ServiceNotice): void {
    const { transport, peers } = this.#host;
    const bytes = encodeMessage({ service: notice, peer: peers.ownAddress }, "VALIDATION_ERROR");
    publishWhole(transport, subject, crypto.randomUUID(), bytes);
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
    this.#replyTo = `${transport.inbox}-services.${crypto.randomUUID()}`;
    this.ready = new Promise((resolve) => {
      this.#settle = resolve;
    });
    const answers = transport.subscribe(this.#replyTo, (message) => this.#hear(message));
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
    // Nobody answers: there are no services, and that is known.
    if (message.isUndelivered === true) this.#settle();
    else this.#hearNotice(message);
  }

  #hearNotice(message: TransportMessage): void {
    this.#waitForQuiet();
    const bytes = isChunk(message.data) ? this.#assemble(message.data) : message.data;
    if (bytes === undefined) return;
    const decoded = decodeMessage(bytes);
    if (typeof decoded === "string") this.#host.counters[decoded]++;
    else this.#take(decoded.service, decoded.peer, this.#host.subjects.serviceUser(message.subject));
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

  /** `user` is whom the subject speaks for, which permissions are about; an answer to a question has none. */
  #take(service: unknown, peer: string | undefined, user: string | undefined): void {
    if (!isServiceMessage(service)) this.#host.counters.malformed++;
    else if ("gone" in service) this.#leave(service.serviceId, user);
    else if (peer === undefined) this.#host.counters.malformed++;
    else if (user !== undefined && !isOf(peer, user)) this.#host.counters.forged++;
    else if (!this.#known.has(service.serviceId) && this.#known.size >= this.#host.services)
      this.#host.counters.overLimit++;
    else {
      this.#track(service.serviceId, peer);
      this.#watcher.found(service);
    }
  }

  #track(serviceId: string, peer: string): void {
    const known = this.#known.get(serviceId);
    if (known?.peer === peer) return;
    if (known !== undefined) this.#host.peers.untrack(known.peer, known);
    const line = { peer, lost: () => this.#forget(serviceId) };
    this.#known.set(serviceId, line);
    this.#host.peers.track(peer, line);
  }

  #leave(serviceId: string, user: string | undefined): void {
    const known = this.#known.get(serviceId);
    if (known === undefined) return;
    if (user !== undefined && isOf(known.peer, user)) this.#forget(serviceId);
    else this.#host.counters.forged++;
  }

  #forget(serviceId: string): void {
    const known = this.#known.get(serviceId);
    if (known === undefined) return;
    this.#known.delete(serviceId);
    this.#host.peers.untrack(known.peer, known);
    this.#watcher.gone(serviceId);
  }
}

function isOf(address: string, user: string): boolean {
  return address.startsWith(`${user}.`);
}

type ServiceMessage = ServiceNotice | { readonly serviceId: string; readonly gone: true };

/** The operations are for the directory to judge, one by one. */
function isServiceMessage(value: unknown): value is ServiceMessage {
  if (!isPlainObject(value)) return false;
  const { serviceId, name, operations, gone } = value;
  if (typeof serviceId !== "string" || !SERVICE_ID.test(serviceId)) return false;
  if (gone === true) return true;
  return typeof name === "string" && name.length <= MAX_NAME && Array.isArray(operations);
}
