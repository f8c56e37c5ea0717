import type { Identity } from "../core/access/identity.ts";
import { Linked, LinkedSet } from "../core/collections/linked-set.ts";
import { Listeners } from "../core/collections/listeners.ts";
import { CallError } from "../core/errors/errors.ts";
import type {
  Announcement,
  Answerer,
  AnswerLine,
  Asker,
  AskLine,
  LeftOutMember,
  Membership,
  ObservableBus,
  Route,
  ServiceWatch,
  ServiceWatcher,
  Take,
} from "./bus.ts";
import { noResponder } from "./call-errors.ts";
import { type AnswerEvent, type AskerEvent, type CallRequested, turnedAway } from "./call-events.ts";
import { type CallObserver, CallObservers, createCounters } from "./call-observer.ts";
import { Circuits, EJECTION_MS, OVERLOADED_MS } from "./circuits.ts";
import type { ServiceNotice } from "./discovery/service-notice.ts";

/** Makes a bus within this process: nothing is written down, values arrive as they were sent. */
export function createMemoryBus(): ObservableBus {
  return new MemoryBus();
}

/** The members of one route, asked in turn. */
interface Group {
  readonly members: Take[];
  turn: number;
}

class MemoryBus implements ObservableBus {
  readonly counters = createCounters();
  readonly observers = new CallObservers();
  readonly carriesIdentity = true;
  readonly #groups = new Map<string, Group>();
  readonly #services = new Map<string, ServiceNotice>();
  readonly #watchers = new Listeners<(watcher: ServiceWatcher) => void>();
  readonly lines = new LinkedSet<MemoryLine>();
  /** Members that failed, which are left out for a while. */
  readonly circuits = new Circuits<Take>({
    failures: 1,
    openMs: EJECTION_MS.first,
    longestMs: EJECTION_MS.longest,
    onOpen: () => this.counters.ejected++,
  });
  #closed = false;

  request(request: CallRequested, asker: Asker, identity?: Identity): AskLine {
    if (this.#closed)
      throw new CallError("UNAVAILABLE", "The bus is closed; nothing was sent.", { stack: false });
    const take = this.#next(request.operationId);
    if (take === undefined) throw noResponder(request.operationId);
    const line = new MemoryLine(this, asker, take);
    this.lines.add(line);
    line.connect(take({ request, identity, isLocal: true, hasFreshId: asker.hasFreshId }, line));
    return line;
  }

  async join(route: Route, take: Take): Promise<Membership> {
    if (this.#closed) throw new CallError("UNAVAILABLE", "The bus is closed.", { stack: false });
    const key = "namespace" in route ? `${route.namespace}.` : route.operationId;
    const group = this.#groups.get(key) ?? { members: [], turn: 0 };
    this.#groups.set(key, group);
    // A function of its own, so that joining twice is leaving twice.
    const member: Take = (delivery, line) => take(delivery, line);
    group.members.push(member);
    return {
      leave: async () => {
        const at = group.members.indexOf(member);
        if (at >= 0) group.members.splice(at, 1);
        this.circuits.forget(member);
        if (group.members.length === 0 && this.#groups.get(key) === group) this.#groups.delete(key);
      },
    };
  }

  async announce(notice: ServiceNotice): Promise<Announcement> {
    const tell = (changed: ServiceNotice) => {
      this.#services.set(changed.serviceId, changed);
      this.#watchers.tell((watcher) => watcher.found(changed));
    };
    tell(notice);
    return {
      update: tell,
      withdraw: async () => {
        if (!this.#services.delete(notice.serviceId)) return;
        this.#watchers.tell((watcher) => watcher.gone(notice.serviceId));
      },
    };
  }

  watch(watcher: ServiceWatcher): ServiceWatch {
    const stop = this.#watchers.add((tell) => tell(watcher));
    for (const notice of this.#services.values()) watcher.found(notice);
    return { ready: Promise.resolve(), stop };
  }

  onCall(observer: CallObserver): () => void {
    return this.observers.add(observer);
  }

  async flush(): Promise<void> {}

  async close(): Promise<void> {
    this.#closed = true;
    this.#groups.clear();
    this.#services.clear();
    this.#watchers.clear();
    for (const line of this.lines.toArray()) line.cut();
  }

  /** Members of the operation and of its namespace are one group, as on a broker. */
  #next(operationId: string): Take | undefined {
    const own = this.#groups.get(operationId);
    const shared = this.#groups.get(operationId.slice(0, operationId.indexOf(".") + 1));
    const group = own ?? shared;
    if (group === undefined) return undefined;
    const others = group === shared ? undefined : shared;
    const count = group.members.length + (others?.members.length ?? 0);
    if (count === 1) return group.members[0] ?? others?.members[0];
    const first = group.turn++ % count;
    if (this.circuits.size > 0) return this.#nextWell([...group.members, ...(others?.members ?? [])], first);
    return group.members[first] ?? others?.members[first - group.members.length];
  }

  /** The next one that is not left out, or the next one where all are. */
  #nextWell(members: readonly Take[], first: number): Take | undefined {
    const inTurn = [...members.slice(first), ...members.slice(0, first)];
    return inTurn.find((member) => this.circuits.passes(member)) ?? inTurn[0];
  }

  get leftOut(): readonly LeftOutMember[] {
    return this.circuits.opened().map(() => ({}));
  }
}

/** Both ends of one call: only those who were given it hold it. */
class MemoryLine extends Linked implements AskLine, AnswerLine {
  readonly #bus: MemoryBus;
  readonly #member: Take;
  #asker: Asker | undefined;
  #answerer: Answerer | undefined;

  constructor(bus: MemoryBus, asker: Asker, member: Take) {
    super();
    this.#member = member;
    this.#bus = bus;
    this.#asker = asker;
  }

  /** The other end hears of it unless it is over already. */
  connect(answerer: Answerer | undefined): void {
    if (this.#asker !== undefined) this.#answerer = answerer;
  }

  send(event: AskerEvent): void {
    if (event.type === "call.aborted" && event.reason === "deadline") this.#bus.circuits.failed(this.#member);
    this.#answerer?.receive(event);
  }

  reply(event: AnswerEvent): void {
    if (this.#asker === undefined) {
      this.#bus.counters.late++;
      return;
    }
    if (event.type === "call.error" || this.#bus.circuits.size > 0) this.#judge(event);
    this.#asker.receive(event);
  }

  /** The member cannot do what it is asked, or not in time: both ends see to the deadline, and either may be the first to tell. */
  #judge(event: AnswerEvent): void {
    const { circuits } = this.#bus;
    const why = turnedAway(event);
    if (why !== undefined) circuits.failed(this.#member, why === "full" ? OVERLOADED_MS : undefined);
    else if (event.type === "call.error" && event.error.code === "TIMEOUT") circuits.failed(this.#member);
    else if (event.type !== "call.progress") circuits.succeeded(this.#member);
  }

  async flush(): Promise<void> {}

  close(): void {
    this.#asker = undefined;
    this.#answerer = undefined;
    this.#bus.lines.delete(this);
  }

  /** The bus is gone, for both ends. */
  cut(): void {
    const asker = this.#asker;
    const answerer = this.#answerer;
    this.close();
    answerer?.lost();
    asker?.lost(new CallError("UNAVAILABLE", "The bus was closed while the call was under way."));
  }
}
