import type { HeldIdentity } from "../../core/access/identity.ts";
import { Listeners } from "../../core/collections/listeners.ts";
import { monotonicNow } from "../../core/execution/cancellation.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { ChangeListener, RegistryChange } from "../../core/registry/executor.ts";
import type { Bus, ServiceWatch } from "../bus.ts";
import { type CallLimits, readCallLimits } from "../call-options.ts";
import { OfferTable, type OperationConflict } from "./offer-table.ts";
import { isServiceId, type OperationNotice, readService, type ServiceHeader } from "./service-notice.ts";
import {
  type OfferSettings,
  type PreparedOffer,
  prepareOffers,
  type ServiceOffers,
  SpecPool,
  shareOffers,
  type UnusableOffer,
  type UsableSpec,
} from "./service-offers.ts";

/** What a directory looks for, and what it makes of it. */
export interface DirectoryOptions {
  /** Makes what runs an operation that was found. */
  readonly handlerFor: (notice: OperationNotice) => AnyOperation["handler"];
  /** Operations of these namespaces only. @default all */
  readonly namespaces?: readonly string[] | undefined;
  readonly limits?: Partial<CallLimits> | undefined;
}

/** Services that were not let in at all and are listed by id. */
const LISTED_STRANGERS = 1_000;

function warnOnce(cause: unknown, isFirst: boolean): void {
  if (isFirst) console.warn("[waybill] A listener of a directory threw.", cause);
}

/**
 * Which services there are and what they offer, live.
 *
 * One operation for each id, however many services offer it. Where they differ, the highest version counts, then the smallest
 * service id; when that service leaves, the next takes over. What a limit kept out stays out until its service is heard of again.
 * A large notice is read bit by bit, and counts once all of it has been.
 */
export class ServiceDirectory {
  /** Resolves once every service that was there at the start has been heard, and what it said been read. */
  readonly ready: Promise<void>;
  readonly #settings: OfferSettings;
  readonly #table = new OfferTable();
  readonly #services = new Map<string, ServiceOffers>();
  readonly #list = new ServiceList();
  readonly #reader = new OfferReader<PreparedOffer[]>();
  /** Services that are being read for the first time. */
  readonly #arriving = new Set<string>();
  readonly #strangers = new Map<string, UnusableOffer>();
  readonly #everOffered = new Set<string>();
  readonly #listeners = new Listeners<readonly RegistryChange[]>(warnOnce);
  readonly #serviceListeners = new Listeners<readonly KnownService[]>(warnOnce);
  readonly #watch: ServiceWatch;
  #sawEverything = true;
  #isReady = false;
  #stopped = false;

  constructor(bus: Pick<Bus, "watch">, { handlerFor, namespaces, limits: given }: DirectoryOptions) {
    const limits = readCallLimits(given);
    this.#settings = {
      limits,
      namespaces: readNamespaceFilter(namespaces),
      pool: new SpecPool(limits.operations, handlerFor),
    };
    this.#watch = bus.watch({
      found: (notice) => this.#found(notice),
      gone: (serviceId) => this.#gone(serviceId),
    });
    this.ready = this.#watch.ready
      .then(() => this.#reader.settled())
      .then(() => {
        this.#isReady = true;
      });
    // A caller that waits for it hears of a failure; that nobody does is no reason to end the process.
    this.ready.catch(() => {});
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  /** One for each id that can be called, sorted by id; the same list until something changes. */
  get operations(): readonly AnyOperation[] {
    return this.#table.operations();
  }

  /** By service id; the same list until something changes. */
  get services(): readonly KnownService[] {
    return this.#list.all;
  }

  get serviceCount(): number {
    return this.#services.size;
  }

  /** What cannot be used of what is offered, and why. */
  get unusable(): readonly UnusableOffer[] {
    const problems = [...this.#services.values()].flatMap((service) => service.problems);
    return [...problems, ...this.#strangers.values()];
  }

  /** Ids that mean different things to those who offer them, sorted. */
  get conflicts(): readonly OperationConflict[] {
    return this.#table.conflicts();
  }

  get(id: string): AnyOperation | undefined {
    return this.#table.get(id)?.operation;
  }

  /** What this caller could call with some input, sorted by id. */
  list(identity: HeldIdentity | undefined): AnyOperation[] {
    const admitted = this.#table
      .sorted()
      .filter(({ access }) => access === undefined || access.admits(identity));
    return admitted.map(({ operation }) => operation);
  }

  /** Tells whether some service may ever have offered this id, one that has left too. */
  mayHaveOffered(id: string): boolean {
    return !this.#sawEverything || this.#reader.isBusy || this.#everOffered.has(id);
  }

  /** Hears of changes, those of one notice together; returns how to stop listening. */
  onChange(listener: ChangeListener): () => void {
    return this.#listeners.add(listener);
  }

  /** Hears of each service that came, changed or left, after the changes of its operations; returns how to stop listening. */
  onServicesChange(listener: (services: readonly KnownService[]) => void): () => void {
    return this.#serviceListeners.add(listener);
  }

  /** Hears of nothing any more; what was known last stays. */
  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#listeners.clear();
    this.#serviceListeners.clear();
    this.#reader.stop();
    this.#arriving.clear();
    this.#watch.stop();
  }

  #found(notice: unknown): void {
    if (this.#stopped) return;
    const header = readService(notice);
    const { serviceId } = header;
    const { services } = this.#settings.limits;
    const isNew = !this.#services.has(serviceId) && !this.#arriving.has(serviceId);
    if (serviceId === "") {
      this.#refuse(serviceId, header.reason ?? "");
    } else if (isNew && this.#services.size + this.#arriving.size >= services) {
      this.#sawEverything = false;
      this.#refuse(serviceId, `There are ${services} services already; it is ignored.`);
    } else {
      this.#read(header);
    }
  }

  #read(header: ServiceHeader): void {
    const { serviceId, operations } = header;
    this.#strangers.delete(serviceId);
    if (!this.#services.has(serviceId)) this.#arriving.add(serviceId);
    this.#reader.read(serviceId, {
      size: operations.length,
      steps: prepareOffers(header, this.#settings),
      apply: (offers) => this.#admit(header, offers),
    });
  }

  #admit(header: ServiceHeader, offers: readonly PreparedOffer[]): void {
    const { serviceId, name } = header;
    const { pool } = this.#settings;
    const before = this.#services.get(serviceId);
    this.#arriving.delete(serviceId);
    // Given back first, so that a service at the limit can change what it offers.
    for (const spec of before?.shares ?? []) pool.release(spec);
    const after = shareOffers(header, offers, this.#settings);
    pool.sweep();
    this.#services.set(serviceId, after);
    this.#remember(after);
    const isSame = before !== undefined && offerTheSame(before, after);
    if (!isSame) this.#list.put(serviceId, name, after.usable.keys());
    this.#tell(this.#exchange(serviceId, before?.usable, after.usable), !isSame);
  }

  #gone(serviceId: unknown): void {
    if (this.#stopped || !isServiceId(serviceId)) return;
    this.#strangers.delete(serviceId);
    this.#arriving.delete(serviceId);
    this.#reader.drop(serviceId);
    const before = this.#services.get(serviceId);
    if (before === undefined) return;
    this.#services.delete(serviceId);
    this.#list.delete(serviceId);
    const { pool } = this.#settings;
    for (const spec of before.shares) pool.release(spec);
    pool.sweep();
    this.#tell(this.#exchange(serviceId, before.usable, undefined), true);
  }

  /** Touches only what the service offers differently than before. */
  #exchange(
    serviceId: string,
    before: ServiceOffers["usable"] = new Map(),
    after: ServiceOffers["usable"] = new Map(),
  ): RegistryChange[] {
    const changes: (RegistryChange | undefined)[] = [];
    for (const id of before.keys()) {
      if (!after.has(id)) changes.push(this.#change(id, () => this.#table.delete(serviceId, id)));
    }
    for (const [id, spec] of after) {
      if (before.get(id) !== spec) changes.push(this.#change(id, () => this.#table.put(serviceId, spec)));
    }
    return changes.filter((change) => change !== undefined);
  }

  #change(id: string, act: () => void): RegistryChange | undefined {
    const before = this.#table.get(id);
    act();
    return changeOf(before, this.#table.get(id));
  }

  #remember({ shares, complete }: ServiceOffers): void {
    if (!complete) this.#sawEverything = false;
    for (const { id } of shares) {
      if (this.#everOffered.size < this.#settings.limits.operations) this.#everOffered.add(id);
      else if (!this.#everOffered.has(id)) this.#sawEverything = false;
    }
  }

  #refuse(serviceId: string, reason: string): void {
    if (this.#strangers.size < LISTED_STRANGERS) this.#strangers.set(serviceId, { serviceId, reason });
  }

  #tell(changes: readonly RegistryChange[], servicesChanged: boolean): void {
    // Taken now: a listener may make the directory hear of the next change.
    const services = this.#list.all;
    if (changes.length > 0) this.#listeners.tell(changes);
    if (servicesChanged) this.#serviceListeners.tell(services);
  }
}

/** The namespaces to look at; nothing when all of them are. */
export function readNamespaceFilter(given: readonly string[] | undefined): ReadonlySet<string> | undefined {
  if (given === undefined) return undefined;
  if (!Array.isArray(given) || !given.every((namespace) => typeof namespace === "string")) {
    throw new TypeError("namespaces must be a list of strings.");
  }
  return new Set(given);
}

/** Equal specs are one object, so that another object is another spec. */
function changeOf(before: UsableSpec | undefined, after: UsableSpec | undefined): RegistryChange | undefined {
  if (before === after) return undefined;
  if (after === undefined) return before && { type: "removed", operation: before.operation };
  if (before === undefined) return { type: "added", operation: after.operation };
  return { type: "replaced", operation: after.operation };
}

/** Tells whether a service is what it was, for those who call it. */
function offerTheSame(before: ServiceOffers, after: ServiceOffers): boolean {
  if (before.name !== after.name || before.usable.size !== after.usable.size) return false;
  for (const [id, spec] of after.usable) if (before.usable.get(id) !== spec) return false;
  return true;
}

/** A service as a directory knows it. */
export interface KnownService {
  readonly serviceId: string;
  readonly name: string;
  /** Those of its operations that can be called, sorted. */
  readonly operationIds: readonly string[];
}

/** Services by their id, as a list that stays what it is once given out. */
export class ServiceList {
  #services: readonly KnownService[] = Object.freeze([]);

  /** Sorted by service id; the same list until something changes. */
  get all(): readonly KnownService[] {
    return this.#services;
  }

  /** Adds a service, in place of what was known of it. */
  put(serviceId: string, name: string, ids: Iterable<string>): void {
    const operationIds = Object.freeze([...ids].sort());
    this.#splice(serviceId, Object.freeze({ serviceId, name, operationIds }));
  }

  delete(serviceId: string): void {
    this.#splice(serviceId);
  }

  #splice(serviceId: string, ...added: readonly KnownService[]): void {
    const services = [...this.#services];
    const at = this.#placeOf(serviceId);
    services.splice(at, services[at]?.serviceId === serviceId ? 1 : 0, ...added);
    this.#services = Object.freeze(services);
  }

  /** Where it is, or would be; sorting all of them each time would make many that come at once slow. */
  #placeOf(serviceId: string): number {
    let [low, high] = [0, this.#services.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#services[middle]?.serviceId ?? "") < serviceId) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Work that can be left between any two of its steps. */
export type ReadingSteps<T> = Generator<undefined, T, undefined>;

/** Work for one service, and what to do with its outcome. */
interface Reading<T> {
  /** How much there is to read; what is small is read at once. */
  readonly size: number;
  readonly steps: ReadingSteps<T>;
  readonly apply: (outcome: T) => void;
}

interface QueuedReading<T> extends Reading<T> {
  readonly ended: Promise<void>;
  readonly end: () => void;
}

/** The largest size that is read at once. */
const SMALL = 50;
/** Milliseconds that reading at once may take before other work gets its turn. */
const AT_ONCE_MS = 100;
/** Milliseconds of reading between two turns of everything else. */
const SLICE_MS = 10;

/**
 * Reads what services offer without keeping everything else waiting: what is small at once, the rest one service after the
 * other in short slices. What a service says later takes the place of what is still being read of it.
 */
export class OfferReader<T> {
  readonly #queue = new Map<string, QueuedReading<T>>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Milliseconds read at once lately; as many are forgiven as pass without reading. */
  #spent = 0;
  #lastRead = Number.NEGATIVE_INFINITY;

  /** True while something is being read. */
  get isBusy(): boolean {
    return this.#queue.size > 0;
  }

  /** Reads for a service, in place of what is being read for it. */
  read(serviceId: string, reading: Reading<T>): void {
    this.drop(serviceId);
    if (reading.size < SMALL && this.#readAtOnce(reading)) return;
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    this.#queue.set(serviceId, { ...reading, ended, end });
    this.#schedule();
  }

  /** Gives up what is being read for a service. */
  drop(serviceId: string): void {
    const reading = this.#queue.get(serviceId);
    if (reading === undefined) return;
    this.#queue.delete(serviceId);
    reading.end();
    if (this.#queue.size === 0) this.#rest();
  }

  /** Resolves once everything that is being read now has been, or was given up. */
  async settled(): Promise<void> {
    // Twice, for services that changed meanwhile; not until all is quiet, which may be never.
    for (let round = 0; round < 2 && this.isBusy; round++) {
      await Promise.all(Array.from(this.#queue.values(), ({ ended }) => ended));
    }
  }

  /** Gives up everything. */
  stop(): void {
    for (const serviceId of [...this.#queue.keys()]) this.drop(serviceId);
  }

  #readAtOnce({ steps, apply }: Reading<T>): boolean {
    const start = monotonicNow();
    const spent = Math.max(0, this.#spent - (start - this.#lastRead));
    if (spent >= AT_ONCE_MS) return false;
    const step = advance(steps, start + AT_ONCE_MS - spent);
    if (step.done) apply(step.value);
    this.#lastRead = monotonicNow();
    this.#spent = spent + this.#lastRead - start;
    return step.done === true;
  }

  #readSlice(): void {
    this.#timer = undefined;
    const until = monotonicNow() + SLICE_MS;
    for (const [serviceId, { steps, apply, end }] of this.#queue) {
      const step = advance(steps, until);
      if (!step.done) break;
      this.#queue.delete(serviceId);
      apply(step.value);
      end();
      if (monotonicNow() >= until) break;
    }
    if (this.#queue.size === 0) this.#rest();
    else this.#schedule();
  }

  #schedule(): void {
    this.#timer ??= setTimeout(() => this.#readSlice(), 0);
  }

  #rest(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

/** Takes one step at least, and further ones while there is time. */
function advance<T>(steps: ReadingSteps<T>, until: number): IteratorResult<undefined, T> {
  let step = steps.next();
  while (!step.done && monotonicNow() < until) step = steps.next();
  return step;
}
