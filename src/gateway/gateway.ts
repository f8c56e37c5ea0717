import { createHash } from "node:crypto";
import type { CallObserver } from "../call/call-observer.ts";
import type { Identity } from "../core/access/identity.ts";
import { Listeners } from "../core/collections/listeners.ts";
import type { CallError } from "../core/errors/errors.ts";
import type { Hooks } from "../core/execution/dispatch.ts";
import type { Metadata } from "../core/operation/operation-context.ts";
import type { AnyOperation } from "../core/operation/operation-types.ts";
import type { ChangeListener, Executor } from "../core/registry/executor.ts";
import { OperationRegistry } from "../core/registry/registry.ts";
import type { RegistryWarning } from "../core/registry/registry-host.ts";
import { issueText } from "../core/schema/schema-issue.ts";
import { Tasks, type TasksOptions } from "../core/tasks/tasks.ts";
import type { ServerLog } from "../mcp/provider.ts";
import type { DecidedApproval } from "./approvals/approvals.ts";
import { GatewayApprovals } from "./approvals/gateway-approvals.ts";
import { CallerLogins } from "./callers/caller-logins.ts";
import { type LoadedConfig, tellsApart } from "./config/loaded-config.ts";
import { explainMissing, hasOneNamespace, isOwner, isSourceVisible } from "./missing-operation.ts";
import { createPolicies, type Policies, type PolicyRules } from "./policy/policies.ts";
import { toPolicyRules } from "./policy/policy.ts";
import { createSources } from "./sources/create-sources.ts";
import { toShownLine } from "./sources/shown-text.ts";
import { operationChanges, type Source, type SourceKind, type SourceReport } from "./sources/source.ts";
import { SourceTraffic, type SourceWire } from "./sources/source-traffic.ts";
import { GatewayState } from "./state/gateway-state.ts";

/** What a gateway may be told beyond its config. */
export interface GatewayOptions {
  /** Which sources to start at once, by name; the others are when one of their operations is first called. @default all */
  readonly startNow?: ((name: string) => boolean) | undefined;
  /** Stand around every call, outside of all policies: logs, metrics, traces. @default none */
  readonly observers?: readonly Hooks[] | undefined;
  /** Observes the calls that go out over the bus, to operations mounted from it. @default nobody does */
  readonly onBusCall?: CallObserver | undefined;
  /** Gives the metadata of calls that go to MCP servers and over the bus, with the trace they belong to. @default the caller's */
  readonly propagate?: ((metadata: Metadata) => Metadata) | undefined;
  /** Hears what MCP servers log, with the name of the source, as they said it; callers hear what can only be about their own calls. @default nobody does */
  readonly onServerLog?: ((source: string, log: ServerLog) => void) | undefined;
  /** Hears what people decided about calls that waited for them. @default nobody does */
  readonly onDecided?: ((decided: DecidedApproval) => void) | undefined;
  /** Hears what is odd; secrets are masked. @default nobody does */
  readonly onWarning?: ((message: string, cause?: unknown) => void) | undefined;
}

/** Many sources behind one executor, with policies around every call. */
export interface Gateway {
  /** Where calls go in. An operation of a source that is down fails with `UNAVAILABLE` and the reason, known or not, unless left out. */
  readonly executor: Executor & { readonly operations: Iterable<AnyOperation> };
  /** Those that were started, in the order of the config. */
  readonly sources: readonly Source[];
  readonly policies: Policies;
  /** What outlives a call, for all replicas where the config says so. */
  readonly state: GatewayState;
  /** Calls that are answered later; nothing where the config wants none. */
  readonly tasks: Tasks | undefined;
  /** What callers have of their own for sources that are asked as each of them. */
  readonly logins: CallerLogins;
  /** Calls that wait for a person. */
  readonly approvals: GatewayApprovals;
  /** The name of the source an operation comes from. */
  sourceOf(operationId: string): string | undefined;
  /** What is told about each source, with the operations that policies left. */
  reports(): readonly SourceReport[];
  /** Resolves when the first attempt to start each source has ended, whichever way. */
  readonly ready: Promise<void>;
  /** Hears when sources were added, removed, or changed their state or what they report; returns how to stop. */
  onSources(listener: () => void): () => void;
  /** Hears what passes between the gateway and its MCP servers, as it passes; returns how to stop. */
  watchTraffic(listener: (wire: SourceWire) => void): () => void;
  /** Mounts what is new or different, drops what is gone, keeps the rest as it is; calls under way go on. */
  reload(loaded: LoadedConfig): Promise<void>;
  /** Ends every source, calls under way first for up to `timeoutMs`. */
  close(options?: { /** @default 0 */ readonly timeoutMs?: number }): Promise<void>;
}

/** Mounts the sources of a config. Resolves at once: sources that are still connecting get their operations when they are up. */
export async function createGateway(loaded: LoadedConfig, options: GatewayOptions = {}): Promise<Gateway> {
  return new RunningGateway(loaded, options);
}

const RELOAD_DRAIN_MS = 10_000;
/** What tasks that end with the gateway have to say so. */
const TASKS_END_MS = 1_000;
/** After which a call becomes a task for a client that takes one. */
const TASK_AFTER_MS = 30_000;
const MOST_TOLD = 1_000;

class RunningGateway implements Gateway {
  readonly policies: Policies;
  readonly state: GatewayState;
  readonly tasks: Tasks | undefined;
  readonly logins: CallerLogins;
  readonly approvals: GatewayApprovals;
  readonly ready: Promise<void>;
  readonly #stateSettings: string;
  readonly #registry: OperationRegistry;
  readonly #options: GatewayOptions;
  readonly #listeners = new Listeners((cause) =>
    this.#warn({ type: "listener-failed", message: "A listener of the sources threw.", cause }),
  );
  /** The name of the source of each operation, as it is registered. */
  readonly #owners = new WeakMap<AnyOperation, string>();
  #secrets: LoadedConfig["secrets"];
  #mounted: readonly MountedSource[] = [];
  /** One reload at a time; sources that are new may still be starting when it is done. */
  #reloading: Promise<unknown> = Promise.resolve();
  /** Ends the wait of the reload under way for sources to start. */
  #hurry: () => void = () => {};
  /** Names of the config's servers and APIs, up or down: modules and others on the bus cannot offer anything under them. */
  #reserved: ReadonlySet<string> = new Set();
  readonly #told = new Set<string>();
  readonly #traffic = new SourceTraffic();
  readonly #waiting = new WaitingCalls();
  readonly #leaving = new Set<Promise<void>>();
  #closing: Promise<void> | undefined;

  constructor(loaded: LoadedConfig, options: GatewayOptions) {
    this.#options = options;
    this.#secrets = loaded.secrets;
    this.#registry = new OperationRegistry([], {
      timing: true,
      onWarning: (warning) => this.#warn(warning),
      bringMissing: (id, identity) => this.#bring(id, identity),
      explainMissing: (id, identity) => this.explainMissing(id, identity),
    });
    this.logins = new CallerLogins(loaded, { shared: () => this.state.shared });
    this.#mounted = this.#create(loaded);
    this.#reserve(this.#mounted);
    const { limits } = loaded.config;
    this.#stateSettings = stateSettings(loaded);
    this.state = new GatewayState(loaded, {
      onWarning: (message, cause) => options.onWarning?.(this.#secrets.mask(message), cause),
    });
    this.approvals = new GatewayApprovals(loaded, {
      records: () => this.state.records(),
      policyOf: (id) => this.policies.approveOf(id),
      operationOf: (id) => this.#registry.get(id),
      sourceOf: (id) => this.sourceOf(id),
      mask: (text) => this.#secrets.mask(text),
      onDecided: options.onDecided,
      onWarning: (message, cause) => options.onWarning?.(this.#secrets.mask(message), cause),
    });
    this.tasks = createTasks(loaded, this.state, {
      executor: this.#registry,
      isResumable: (id) => this.#isResumable(id),
    });
    this.policies = createPolicies({
      approvals: this.approvals,
      keys: this.state.keys("calls"),
      reuse: this.state.reuse,
      originOf: (id) => this.#originOf(id),
      lease: (limit, use) => this.state.slots?.lease(limit, use),
      rules: this.#rules(loaded, this.#mounted),
      limits,
      isShared: tellsApart(loaded),
      actsAs: (id, identity) => this.logins.nameOf(this.sourceOf(id), identity),
    });
    this.#registry.onChange((changes) => {
      for (const { operation } of changes) this.policies.forget(operation.id);
    });
    for (const observer of options.observers ?? []) this.#registry.use(observer);
    this.#registry.use(this.policies.hooks);
    for (const mounted of this.#mounted) mounted.mount(this.#registry, this.#admitter(mounted));
    const { startNow = () => true } = options;
    const first = this.#mounted.filter(({ source }) => startNow(source.name));
    this.ready = Promise.all(first.map((mounted) => mounted.start())).then(() => {});
  }

  get executor(): OperationRegistry {
    return this.#registry;
  }

  get sources(): readonly Source[] {
    return this.#mounted.filter(({ isStarted }) => isStarted).map(({ source }) => source);
  }

  sourceOf(operationId: string): string | undefined {
    const operation = this.#registry.get(operationId);
    return operation && this.#owners.get(operation);
  }

  #originOf(operationId: string): string | undefined {
    return this.#mountedOf(operationId)?.origin;
  }

  /** Calls that wait for a person, or run as tasks elsewhere, note where they are. */
  #isResumable(operationId: string): boolean {
    if (this.policies.approveOf(operationId) !== undefined) return true;
    const kind = this.#mountedOf(operationId)?.source.kind;
    return kind === "mcp" || kind === "bus";
  }

  #mountedOf(operationId: string): MountedSource | undefined {
    const name = this.sourceOf(operationId);
    return this.#mounted.find(({ source }) => source.name === name);
  }

  reports(): readonly SourceReport[] {
    const counts = new Map<string, number>();
    for (const operation of this.#registry.operations) {
      const name = this.#owners.get(operation);
      if (name !== undefined) counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    return this.sources.map((source) => {
      const report = source.report();
      const unusable = [...report.unusable, ...this.#leftOut(source)];
      const stderr = report.state.status === "up" ? [] : this.#lastLines(source.name);
      const operations = counts.get(source.name) ?? 0;
      return { ...report, operations, unusable, ...(stderr.length > 0 && { stderr }) };
    });
  }

  #lastLines(source: string): readonly string[] {
    return this.#traffic.lastLines(source).map((line) => toShownLine(line, this.#secrets));
  }

  /** Operations of a source that are not registered because their id, or its namespace, is another's. */
  #leftOut({ name, kind, operations }: Source): SourceReport["unusable"] {
    return operations.flatMap((operation) => {
      const { id, namespace } = operation;
      if (this.#isReserved(operation, kind)) return [{ name: id, reason: reservedReason(namespace) }];
      const owner = this.sourceOf(id);
      if (owner === undefined || owner === name) return [];
      return [{ name: id, reason: `The source "${owner}" has an operation of this id.` }];
    });
  }

  watchTraffic(listener: (wire: SourceWire) => void): () => void {
    return this.#traffic.watch(listener);
  }

  onSources(listener: () => void): () => void {
    return this.#listeners.add(listener);
  }

  reload(loaded: LoadedConfig): Promise<void> {
    this.#hurry();
    const mounting = this.#reloading.then(() => this.#reload(loaded));
    this.#reloading = mounting.catch(() => {});
    return mounting.then((starting) => Promise.all(starting)).then(() => {});
  }

  close({ timeoutMs = 0 }: { readonly timeoutMs?: number } = {}): Promise<void> {
    this.#closing ??= this.#close(timeoutMs);
    return this.#closing;
  }

  /**
   * What is the same stays and what is gone goes at once; what is new is started before it takes the place of what it replaces, each by
   * itself, unless somebody is in a hurry. Resolves with what still starts.
   */
  async #reload(loaded: LoadedConfig): Promise<readonly Promise<void>[]> {
    if (this.#closing !== undefined) return [];
    this.logins.use(loaded);
    const wanted = this.#create(loaded);
    const kept = wanted.map((next) => this.#mounted.find((old) => isSame(old, next)) ?? next);
    const gone = this.#mounted.filter((old) => !kept.includes(old));
    const fresh = kept.filter((next) => !this.#mounted.includes(next));
    const replaced = new Map<MountedSource, MountedSource>();
    for (const next of fresh) {
      const old = gone.find(({ source }) => source.name === next.source.name);
      if (old !== undefined) replaced.set(next, old);
    }
    // Who may call what changes at once, however long sources take.
    // Sources that stay know what is secret by now, and what is new knows what was.
    this.#secrets.addAll(loaded.secrets);
    loaded.secrets.addAll(this.#secrets);
    this.#secrets = loaded.secrets;
    this.#reserve(wanted);
    this.policies.update(this.#rules(loaded, wanted), loaded.config.limits ?? {});
    this.approvals.update(loaded);
    this.policies.setShared(tellsApart(loaded));
    if (stateSettings(loaded) !== this.#stateSettings) {
      this.#tellOnce(
        "The state is kept as before: changes of state, tasks, bus and name hold for it when the gateway is started again.",
      );
    }
    this.#waiting.review();
    const leaving = gone.filter((old) => ![...replaced.values()].includes(old));
    for (const old of leaving) this.#leave(old);
    this.#mounted = kept.map((next) => replaced.get(next) ?? next);
    this.#traffic.keepOnly(new Set(this.#mounted.map(({ source }) => source.name)));
    for (const mounted of this.#mounted) {
      if (fresh.includes(mounted)) mounted.mount(this.#registry, this.#admitter(mounted));
      else mounted.readmit(this.#admitter(mounted));
    }
    this.#listeners.tell();
    const added = fresh.filter((next) => !replaced.has(next)).map((next) => next.start());
    const hurried = new Promise<void>((resolve) => {
      this.#hurry = resolve;
    });
    const swaps = [...replaced].map(([next, old]) => next.start().then(() => this.#swap(old, next)));
    await Promise.race([Promise.all(swaps), hurried]);
    for (const [next, old] of replaced) this.#swap(old, next);
    const again = kept.filter((old) => !fresh.includes(old) && old.source.kind === "local");
    return [...added, ...swaps, ...again.map(({ source }) => source.retry())];
  }

  /** Puts a source in the place of another one, once. */
  #swap(old: MountedSource, next: MountedSource): void {
    if (!this.#mounted.includes(old)) return;
    this.#leave(old);
    this.#mounted = this.#mounted.map((mounted) => (mounted === old ? next : mounted));
    next.mount(this.#registry, this.#admitter(next));
    this.#listeners.tell();
  }

  explainMissing(operationId: string, identity: Identity | undefined): CallError | undefined {
    if (this.#isLeftOut(operationId)) return undefined;
    return explainMissing(operationId, this.sources, (source) =>
      isSourceVisible(this, source, { identity, operationId }),
    );
  }

  /** Waits for the source of an operation to be there: one that is being connected to for the first time, or was not needed so far. */
  #bring(operationId: string, identity: Identity | undefined): Promise<void> | undefined {
    const isVisible = ({ source }: MountedSource): boolean =>
      isSourceVisible(this, source, { identity, operationId });
    const isConnecting = ({ source }: MountedSource): boolean => source.state.status === "connecting";
    const mounted = this.#mounted.find(({ source }) => isOwner(source, operationId));
    if (this.#waiting.isFull || this.#isLeftOut(operationId)) return undefined;
    if (mounted === undefined) {
      // Modules and the bus may hold any namespace.
      const open = this.#mounted.filter((one) => one.isStarted && !hasOneNamespace(one.source));
      const coming = open.filter((one) => isConnecting(one) && isVisible(one));
      if (coming.length === 0) return undefined;
      const started = Promise.all(coming.map((one) => one.start())).then(() => {});
      return this.#waiting.wait(started, () => this.#isLeftOut(operationId));
    }
    if (!isConnecting(mounted) || !isVisible(mounted)) return undefined;
    const isFirst = !mounted.isStarted;
    const started = mounted.start();
    if (isFirst) this.#listeners.tell();
    return this.#waiting.wait(started, () => this.#isLeftOut(operationId));
  }

  /** Whether an operation would not be there even if its source were. */
  #isLeftOut(id: string): boolean {
    return this.#mounted.some(({ source: one }) => isOwner(one, id) && this.policies.leavesOut(id, one.name));
  }

  /** Sources as the config wants them, none of them started. */
  #create(loaded: LoadedConfig): readonly MountedSource[] {
    const { onWarning, onBusCall, propagate, onServerLog } = this.#options;
    const wireOf = (source: string) => this.#traffic.tellerOf(source);
    const { logins } = this;
    const created = createSources(loaded, { onWarning, onBusCall, propagate, onServerLog, wireOf, logins });
    return created.map(
      ({ source, settings }) => new MountedSource(source, settings, () => this.#listeners.tell()),
    );
  }

  #rules({ config }: LoadedConfig, mounted: readonly MountedSource[]): PolicyRules {
    const sources = mounted.map(({ source }) => source);
    return toPolicyRules(config, sources, (id) => this.sourceOf(id));
  }

  #isReserved({ namespace }: AnyOperation, kind: SourceKind): boolean {
    return (kind === "local" || kind === "bus") && this.#reserved.has(namespace);
  }

  #reserve(mounted: readonly MountedSource[]): void {
    const owners = mounted.map(({ source }) => source).filter(hasOneNamespace);
    this.#reserved = new Set(owners.map(({ name }) => name));
  }

  #admitter({ source: { name, kind } }: MountedSource): Admit {
    return (operation) => {
      if (this.#isReserved(operation, kind)) {
        this.#tellOnce(`${name}: "${operation.id}" is left out. ${reservedReason(operation.namespace)}`);
        return undefined;
      }
      const admitted = this.policies.admit(operation, name);
      if (admitted !== undefined) this.#owners.set(admitted, name);
      return admitted;
    };
  }

  /** Takes a source out now, and ends it once the calls under way are done. */
  #leave(old: MountedSource): void {
    old.unmount();
    const left = old.source.close({ timeoutMs: RELOAD_DRAIN_MS }).finally(() => this.#leaving.delete(left));
    this.#leaving.add(left);
  }

  async #close(timeoutMs: number): Promise<void> {
    this.#hurry();
    this.approvals.close();
    await this.#reloading;
    await this.tasks?.close({ timeoutMs: Math.max(timeoutMs, TASKS_END_MS) });
    await Promise.all([...this.sources.map((source) => source.close({ timeoutMs })), ...this.#leaving]);
    for (const mounted of this.#mounted) mounted.unmount();
    this.policies.close();
    await this.state.close();
  }

  #warn(warning: RegistryWarning): void {
    this.#options.onWarning?.(this.#secrets.mask(writeWarning(warning)), warning.cause);
  }

  /** What a source tells again and again is heard once. */
  #tellOnce(message: string): void {
    if (this.#told.has(message) || this.#told.size >= MOST_TOLD) return;
    this.#told.add(message);
    this.#options.onWarning?.(this.#secrets.mask(message));
  }
}

function reservedReason(namespace: string): string {
  return `"${namespace}" is a source of the config, and what stands under that name is its own; choose another namespace.`;
}

/** What the state is made from, as text. */
function stateSettings({ config: { state, tasks, bus, name } }: LoadedConfig): string {
  const { said, policy, mount, secret, ...connection } = bus ?? {};
  return JSON.stringify([state, tasks, bus && connection, name]);
}

/** What answers calls later, as the config wants it. */
function createTasks(
  loaded: LoadedConfig,
  state: GatewayState,
  by: Pick<TasksOptions, "executor" | "isResumable">,
): Tasks | undefined {
  const { tasks = true } = loaded.config;
  if (tasks === false) return undefined;
  const { afterMs = TASK_AFTER_MS, ...limits } = tasks === true ? {} : tasks;
  const isShared = tellsApart(loaded);
  return new Tasks({ ...by, store: state.tasks(), limits, afterMs, isShared });
}

function isSame(a: MountedSource, b: MountedSource): boolean {
  return a.source.name === b.source.name && a.source.kind === b.source.kind && a.settings === b.settings;
}

/** Decides what becomes of an operation before it is registered: it may be changed, or left out. */
export type Admit = (operation: AnyOperation) => AnyOperation | undefined;

/** A source whose operations are registered, as far as they are admitted, for as long as it is mounted. */
class MountedSource {
  readonly source: Source;
  /** What the config says of it: another text is another source. */
  readonly settings: string;
  /** The same for the same settings at every replica. */
  readonly origin: string;
  readonly #stopStates: () => void;
  #stopChanges: () => void = () => {};
  #starting: Promise<void> | undefined;
  /** What was admitted, by what was given: the same stays the same. */
  #admitted = new WeakMap<AnyOperation, { readonly operation: AnyOperation | undefined }>();
  #registered: ReadonlyMap<string, AnyOperation> = new Map();
  #register: ChangeListener = () => {};

  constructor(source: Source, settings: string, onState: () => void) {
    this.source = source;
    this.settings = settings;
    this.origin = createHash("sha256").update(settings).digest("base64url");
    this.#stopStates = source.onState(onState);
  }

  get isStarted(): boolean {
    return this.#starting !== undefined;
  }

  /** Starts the source, once; resolves when the first attempt has ended. */
  start(): Promise<void> {
    this.#starting ??= this.source.start();
    return this.#starting;
  }

  /** Registers what the source has, and from now on what changes; one operation that cannot be registered is left out by itself. */
  mount(registry: OperationRegistry, admit: Admit): void {
    registry.registerAll({
      operations: [],
      onChange: (listener) => {
        this.#register = listener;
        return () => {
          this.#register = () => {};
        };
      },
    });
    this.readmit(admit);
  }

  /** Decides anew which of its operations are registered, and how. */
  readmit(admit: Admit): void {
    this.#stopChanges();
    this.#admitted = new WeakMap();
    const follow = (): void => this.#follow(this.#admitAll(admit));
    this.#stopChanges = this.source.onChange(follow);
    follow();
  }

  /** Takes its operations out; calls under way go on. */
  unmount(): void {
    this.#stopStates();
    this.#stopChanges();
    this.#follow(new Map());
  }

  #admitAll(admit: Admit): ReadonlyMap<string, AnyOperation> {
    const now = new Map<string, AnyOperation>();
    for (const given of this.source.operations) {
      const known = this.#admitted.get(given) ?? { operation: admit(given) };
      this.#admitted.set(given, known);
      if (known.operation !== undefined) now.set(given.id, known.operation);
    }
    return now;
  }

  #follow(now: ReadonlyMap<string, AnyOperation>): void {
    const changes = operationChanges(this.#registered, now);
    this.#registered = now;
    if (changes.length > 0) this.#register(changes);
  }
}

/** Calls that wait at a time. */
const MOST_WAITING = 1_000;

interface WaitingCall {
  readonly isLeftOut: () => boolean;
  readonly leave: () => void;
}

/** Calls that wait for a source to be there for the first time. */
export class WaitingCalls {
  readonly #waiting = new Set<WaitingCall>();

  get isFull(): boolean {
    return this.#waiting.size >= MOST_WAITING;
  }

  /** Waits until a source has started; no longer than until policies leave the operation out, where nothing would come of it. */
  async wait(started: Promise<void>, isLeftOut: () => boolean): Promise<void> {
    let leave = (): void => {};
    const left = new Promise<void>((resolve) => {
      leave = resolve;
    });
    const call = { isLeftOut, leave };
    this.#waiting.add(call);
    try {
      await Promise.race([started, left]);
    } finally {
      this.#waiting.delete(call);
    }
  }

  /** Lets go of those whose operation is left out by now. */
  review(): void {
    for (const { isLeftOut, leave } of this.#waiting) if (isLeftOut()) leave();
  }
}

/** Says what is odd about a call: of which operation, and the first field that is not as it was promised. */
export function writeWarning({ message, operationId, issues = [] }: RegistryWarning): string {
  const about = operationId === undefined || message.includes(operationId) ? "" : `${operationId}: `;
  const [first] = issues;
  if (first === undefined) return `${about}${message}`;
  const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : "";
  return `${about}${message.replace(/\.$/, "")}: ${issueText(first, "it")}${more}.`;
}
