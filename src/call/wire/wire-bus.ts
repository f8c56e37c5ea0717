import { CallError } from "../../core/errors/errors.ts";
import type {
  Announcement,
  Asker,
  AskLine,
  MemberFacts,
  Membership,
  ObservableBus,
  Route,
  ServiceWatch,
  ServiceWatcher,
  Take,
} from "../bus.ts";
import { type CallCounters, createCounters } from "../call-counters.ts";
import type { CallRequested } from "../call-events.ts";
import { type CallLimits, readLimits } from "../call-limits.ts";
import { type CallObserver, CallObservers } from "../call-observer.ts";
import { isOperationId } from "../discovery/operation-id.ts";
import type { ServiceNotice } from "../discovery/service-notice.ts";
import { AnswerLines } from "./answer-lines.ts";
import { AskLines } from "./ask-lines.ts";
import { flushWhileConnected } from "./flush-while-connected.ts";
import { BEAT_MS, BEAT_RANGE_MS, Peers } from "./peers.ts";
import { ReplyBatches } from "./reply-batches.ts";
import { Subjects } from "./subjects.ts";
import type { Transport } from "./transport.ts";
import { WireDiscovery } from "./wire-discovery.ts";
import type { WireHost } from "./wire-host.ts";

/** How a bus uses its transport. */
export interface WireBusOptions {
  /** What all subjects begin with; buses with different ones do not meet. @default "waybill" */
  readonly prefix?: string | undefined;
  /** The user the broker's permissions bind this connection to; part of the subject of every request. @default "_" */
  readonly user?: string | undefined;
  /**
   * Milliseconds between signs of life, from 10 to 60,000; whoever gives none for three and a half of them counts as gone. Two ends
   * that differ go by the slower beat. @default 2_000
   */
  readonly beatMs?: number | undefined;
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

  constructor(transport: Transport, { prefix, user, beatMs = BEAT_MS, limits }: WireBusOptions) {
    const { least, most } = BEAT_RANGE_MS;
    if (!(Number.isFinite(beatMs) && beatMs >= least && beatMs <= most)) {
      throw new TypeError(`beatMs must be a number of milliseconds from ${least} to ${most}.`);
    }
    const { messageBytes, services } = readLimits(limits);
    const subjects = new Subjects(prefix, user);
    this.#transport = transport;
    this.#replies = new ReplyBatches(transport);
    this.#peers = new Peers(transport, subjects, beatMs, () => this.#tick());
    const host: WireHost = {
      transport,
      subjects,
      peers: this.#peers,
      replies: this.#replies,
      counters: this.#counters,
      observers: this.observers,
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

  /** The identity is not for the wire: only a signed token in the request, or the broker's own word, says who is asking. */
  request(request: CallRequested, asker: Asker): AskLine {
    const { operationId } = request;
    this.#assertOpen();
    if (!isOperationId(operationId)) throw new CallError("OPERATION_NOT_FOUND", undefined, { stack: false });
    return this.#asking.request(request, asker);
  }

  async join(route: Route, take: Take, facts?: MemberFacts): Promise<Membership> {
    this.#assertOpen();
    return this.#answering.join(route, take, facts);
  }

  async announce(notice: ServiceNotice): Promise<Announcement> {
    this.#assertOpen();
    return this.#discovery.announce(notice);
  }

  watch(watcher: ServiceWatcher): ServiceWatch {
    this.#assertOpen();
    return this.#discovery.watch(watcher);
  }

  onCall(observer: CallObserver): () => void {
    return this.observers.add(observer);
  }

  flush(): Promise<void> {
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
