import { HeldIdentity, type Identity } from "../access/identity.ts";
import { Listeners } from "../collections/listeners.ts";
import type { ResponseEnvelope } from "../envelope/envelope.ts";
import type { CallError } from "../errors/errors.ts";
import { belongsTo, CallContext, checkExecuteOptions, inheritFrom } from "../execution/call-context.ts";
import { toDeadline } from "../execution/cancellation.ts";
import { type CallHook, dispatch, type Hooks, type SubscribeHook } from "../execution/dispatch.ts";
import { subscribe } from "../execution/subscription.ts";
import { toOperation } from "../operation/operation.ts";
import type { OperationContext } from "../operation/operation-context.ts";
import type { EnvOptions, EnvWithin, OperationEnv } from "../operation/operation-env-types.ts";
import type {
  AnyOperation,
  CallArguments,
  Callable,
  IdIn,
  OperationIn,
  OperationSpec,
  OutputOf,
  OutputPolicy,
  TargetIn,
} from "../operation/operation-types.ts";
import {
  type AnySchema,
  DEFAULT_SCHEMA_OPTIONS,
  type OperationSchema,
  type SchemaDirection,
  toOperationSchema,
} from "../schema/any-schema.ts";
import type { SchemaOptions } from "../schema/compile-schema.ts";
import type { SchemaLimits } from "../schema/limits.ts";
import { issueText } from "../schema/schema-issue.ts";
import type {
  ChangeListener,
  ExecuteOptions,
  Executor,
  ListOptions,
  OperationSource,
  RegistryChange,
  SubscribeOptions,
} from "./executor.ts";
import { type EntrySettings, OperationEntry } from "./operation-entry.ts";
import { type EnvExecute, operationEnv, readNamespaces } from "./operation-env.ts";
import {
  type LogRecord,
  type ProgressRecord,
  type RegistryHost,
  type RegistryWarning,
  warnOfListener,
} from "./registry-host.ts";

/** Marks an executor that hands calls on to a registry as they came. */
export const VIEWS_REGISTRY = Symbol("waybill.viewsRegistry");

/** Tells whether an executor takes light signals: a registry of ours does, and what hands calls on to one. */
export function takesLightSignals(executor: Executor & { readonly [VIEWS_REGISTRY]?: boolean }): boolean {
  return executor instanceof OperationRegistry || executor[VIEWS_REGISTRY] === true;
}

/** How operations are registered. */
export interface RegisterOptions {
  /** Take the place of an operation with the same id. @default false, which makes a duplicate an error */
  readonly replace?: boolean;
}

/**
 * Holds operations and runs them.
 *
 * What an operation looks like from outside follows from its visibility and access rules, in `list()` and in calls alike:
 * an internal one does not exist, one that asks for more than the caller has is not listed and refuses the call.
 * `operations`, `get`, `has` and `size` are the view of who owns the registry and show everything.
 */
export class OperationRegistry<const Ops extends readonly AnyOperation[] = readonly AnyOperation[]>
  implements Executor
{
  /** Exists for the type checker alone: the operations known when the registry was made. */
  declare readonly "~operations"?: Ops;
  readonly #core: RegistryCore;

  constructor(operations?: Ops, options: RegistryOptions = {}) {
    if (operations !== undefined && !(Symbol.iterator in operations)) {
      throw new TypeError(
        "The first argument lists operations; options come second: new OperationRegistry([], options).",
      );
    }
    this.#core = new RegistryCore(options);
    if (operations !== undefined) this.registerAll(operations);
  }

  get size(): number {
    return this.#core.table.byId.size;
  }

  /** Everything registered, internal operations included, sorted by id. */
  get operations(): readonly AnyOperation[] {
    return this.#core.table.sorted().map((entry) => entry.operation);
  }

  /** Adds one operation, whose schemas are vetted now; throws a `TypeError` that names what is wrong. */
  register(operation: OperationSpec, options?: RegisterOptions): void {
    this.#add([operation], options, undefined);
  }

  /** Adds all operations or, when one of them cannot be, none; follows the changes of a source until told to stop. */
  registerAll(from: OperationSource, options?: RegisterOptions): () => void {
    assertSource(from);
    this.#add(Symbol.iterator in from ? from : from.operations, options, from);
    const stop = from.onChange?.((changes) => applySourceChanges(this.#core, from, changes));
    return stop ?? (() => {});
  }

  /** Takes an operation out and tells whether it was there; calls under way go on. */
  remove(id: string): boolean {
    const change = this.#core.table.delete(id);
    if (change === undefined) return false;
    this.#core.announce([change]);
    return true;
  }

  get(id: string): AnyOperation | undefined {
    return this.#core.table.byId.get(id)?.operation;
  }

  has(id: string): boolean {
    return this.#core.table.byId.has(id);
  }

  /** What this caller, anonymous unless given, can call from outside with some input; sorted by id. */
  list({ identity }: ListOptions = {}): AnyOperation[] {
    const held = identity === undefined ? undefined : HeldIdentity.of(identity);
    const visible = this.#core.table.sorted().filter((entry) => !entry.internal && entry.admits(held));
    return visible.map((entry) => entry.operation);
  }

  onChange(listener: ChangeListener): () => void {
    return this.#core.listeners.add(listener);
  }

  /** Adds a hook around calls, or around subscriptions too; returns how to take it out again. */
  use(hook: CallHook | Hooks): () => void {
    return this.#core.addHooks(typeof hook === "function" ? { execute: hook } : hook);
  }

  /**
   * Runs an operation, given itself or by id, and resolves with its envelope; rejects with a `CallError`. Ids of the operations the registry
   * was made with are typed; in their namespaces, a literal id must be one of them.
   */
  execute<const Id extends IdIn<Ops>>(
    id: Id,
    ...rest: CallArguments<OperationIn<Ops, Id>, ExecuteOptions>
  ): Promise<ResponseEnvelope<OutputOf<OperationIn<Ops, Id>>>>;
  execute<const T extends AnyOperation | string>(
    target: Callable<Ops, T>,
    ...rest: CallArguments<TargetIn<Ops, T>, ExecuteOptions>
  ): Promise<ResponseEnvelope<OutputOf<TargetIn<Ops, T>>>>;
  execute(target: unknown, input?: unknown, options?: ExecuteOptions): Promise<ResponseEnvelope> {
    return this.#core.execute(target, input, options, undefined);
  }

  /** Runs a subscription while it is read: nothing starts before, and leaving the loop stops the handler. */
  subscribe<const Id extends IdIn<Ops>>(
    id: Id,
    ...rest: CallArguments<OperationIn<Ops, Id>, SubscribeOptions>
  ): AsyncIterableIterator<ResponseEnvelope<OutputOf<OperationIn<Ops, Id>>>, undefined>;
  subscribe<const T extends AnyOperation | string>(
    target: Callable<Ops, T>,
    ...rest: CallArguments<TargetIn<Ops, T>, SubscribeOptions>
  ): AsyncIterableIterator<ResponseEnvelope<OutputOf<TargetIn<Ops, T>>>, undefined>;
  subscribe(target: unknown, input?: unknown, options?: SubscribeOptions): AsyncIterable<ResponseEnvelope> {
    return this.#core.subscribe(target, input, options, undefined);
  }

  /**
   * The operations as functions, called within a handler's context or, with options, from outside; those of some namespaces alone,
   * where `namespaces` says so.
   */
  buildEnv<Self extends Pick<OperationRegistry, "~operations">, const Namespace extends string = string>(
    this: Self,
    caller?: OperationContext | ExecuteOptions,
    options?: EnvOptions<Namespace>,
  ): EnvWithin<OperationEnv<NonNullable<Self["~operations"]>>, Namespace>;
  buildEnv(caller?: OperationContext | ExecuteOptions, options?: EnvOptions): OperationEnv {
    const core = this.#core;
    const namespaces = readNamespaces(options);
    const isHeld = (entry: OperationEntry) => namespaces?.has(entry.operation.namespace) !== false;
    if (caller instanceof CallContext) {
      if (!belongsTo(caller, core)) throw new TypeError("The context belongs to a call of another registry.");
      const { identity } = inheritFrom(caller);
      const call: EnvExecute = (id, input, options) => core.execute(id, input, options, caller);
      return operationEnv(core.table, call, (entry) => entry.admits(identity), isHeld);
    }
    const base: ExecuteOptions = { ...caller };
    if (Object.hasOwn(base, "namespaces")) {
      throw new TypeError("namespaces are the second argument: buildEnv(options, { namespaces }).");
    }
    checkExecuteOptions(base);
    const identity = base.identity === undefined ? undefined : HeldIdentity.of(base.identity);
    const call: EnvExecute = (id, input, options) =>
      core.execute(id, input, { ...base, ...options, identity }, undefined);
    return operationEnv(
      core.table,
      call,
      (entry) => entry.admits(identity),
      (entry) => !entry.internal && isHeld(entry),
    );
  }

  #add(operations: Iterable<OperationSpec>, options: RegisterOptions = {}, source?: OperationSource): void {
    const { table } = this.#core;
    const entries = new Map<string, OperationEntry>();
    // Read first: an iterable may run code of its own, which may register things.
    for (const operation of [...operations]) {
      const entry = new OperationEntry(toOperation(operation), this.#core, source);
      if (entries.has(entry.id) || (table.byId.has(entry.id) && options.replace !== true)) {
        throw new TypeError(
          `Operation "${entry.id}" is registered already; pass { replace: true } to take its place.`,
        );
      }
      entries.set(entry.id, entry);
    }
    this.#core.announce([...entries.values()].map((entry) => table.put(entry)));
  }
}

function assertSource(from: unknown): void {
  const { operations, then } = Object(from) as { readonly operations?: unknown; readonly then?: unknown };
  if (typeof then === "function") {
    throw new TypeError("registerAll takes operations, not a promise of them: registerAll(await source).");
  }
  const held: unknown = Symbol.iterator in Object(from) ? from : operations;
  if (typeof held !== "object" || held === null || !(Symbol.iterator in held)) {
    throw new TypeError("registerAll takes a list of operations, or a source that holds one.");
  }
}

const POLICIES: readonly unknown[] = ["off", "warn", "strict"];
const CALL_DEPTH = 64;

/** The state of a registry, shared with the calls that run in it and out of reach for everybody else. */
export class RegistryCore implements RegistryHost, EntrySettings {
  readonly table = new EntryTable();
  readonly outputPolicy: OutputPolicy;
  readonly defaultTimeoutMs: number | undefined;
  readonly maxDepth: number;
  readonly bringMissing: RegistryHost["bringMissing"];
  readonly explainMissing: RegistryHost["explainMissing"];
  readonly onLog: RegistryHost["onLog"];
  readonly onProgress: RegistryHost["onProgress"];
  /** Replaced and never changed, so that calls under way keep theirs. */
  executeHooks: readonly CallHook[] = [];
  readonly isTimed: boolean;
  subscribeHooks: readonly SubscribeHook[] = [];
  readonly listeners = new Listeners<readonly RegistryChange[]>((cause) => warnOfListener(this, cause));
  readonly #onWarning: (warning: RegistryWarning) => void;
  /** One object for all schemas: the key under which compiled ones are kept. */
  readonly #schemaOptions: SchemaOptions;

  constructor(options: RegistryOptions) {
    const { outputPolicy = "warn", defaultTimeoutMs, limits = {}, codegen = true, timing = false } = options;
    if (!POLICIES.includes(outputPolicy))
      throw new TypeError('outputPolicy must be "off", "warn" or "strict".');
    if (defaultTimeoutMs !== undefined) toDeadline(defaultTimeoutMs, 0);
    const { callDepth = CALL_DEPTH, ...schemaLimits } = limits;
    if (!Number.isInteger(callDepth) || callDepth < 0)
      throw new TypeError("limits.callDepth must be 0 or more.");
    this.outputPolicy = outputPolicy;
    this.defaultTimeoutMs = defaultTimeoutMs;
    this.maxDepth = callDepth;
    this.bringMissing = options.bringMissing;
    this.explainMissing = options.explainMissing;
    this.onLog = options.onLog;
    this.onProgress = options.onProgress;
    this.isTimed = timing;
    this.#onWarning = options.onWarning ?? warnOnce();
    const isUsual = codegen && Object.keys(schemaLimits).length === 0;
    this.#schemaOptions = isUsual ? DEFAULT_SCHEMA_OPTIONS : { limits: schemaLimits, codegen };
  }

  readonly execute: RegistryHost["execute"] = (target, input, options, parent) =>
    dispatch(this, target, input, options, parent);

  readonly subscribe: RegistryHost["subscribe"] = (target, input, options, parent) =>
    subscribe(this, target, input, options, parent);

  compile(schema: AnySchema, direction: SchemaDirection): OperationSchema {
    return toOperationSchema(schema, direction, this.#schemaOptions);
  }

  warn(warning: RegistryWarning): void {
    try {
      this.#onWarning(warning);
    } catch {
      // There is nobody left to tell.
    }
  }

  /** Adds hooks inside those already there; returns how to take them out again. */
  addHooks(hooks: Hooks): () => void {
    // Functions of their own, so that hooks added twice run twice and are taken out one by one.
    const execute = hooks.execute && asynchronous(hooks.execute.bind(hooks));
    const subscribe = hooks.subscribe?.bind(hooks);
    if (execute !== undefined) this.executeHooks = [...this.executeHooks, execute];
    if (subscribe !== undefined) this.subscribeHooks = [...this.subscribeHooks, subscribe];
    return () => {
      this.executeHooks = this.executeHooks.filter((hook) => hook !== execute);
      this.subscribeHooks = this.subscribeHooks.filter((hook) => hook !== subscribe);
    };
  }

  announce(changes: readonly RegistryChange[]): void {
    if (changes.length > 0) this.listeners.tell(changes);
  }
}

/** What a hook throws reaches the one outside it as a rejection, always. */
function asynchronous(hook: CallHook): CallHook {
  return (call, next) => {
    try {
      const ended: unknown = hook(call, next);
      return ended instanceof Promise ? ended : Promise.resolve(ended as ResponseEnvelope);
    } catch (thrown) {
      return Promise.reject(thrown);
    }
  };
}

/** A warning that comes with every call would drown the rest. */
function warnOnce(): (warning: RegistryWarning) => void {
  const given = new Set<string>();
  return ({ type, operationId, message, issues = [], cause }) => {
    const key = `${type} ${operationId}`;
    if (given.has(key)) return;
    given.add(key);
    const [first] = issues;
    const reason = first === undefined ? "" : ` The first issue: ${issueText(first, "the value")}.`;
    const rest = cause === undefined ? [] : [cause];
    console.warn(`[waybill] ${message}${reason} (Shown once; set onWarning to hear of every case.)`, ...rest);
  };
}

/** The operations of a registry, found by id or by namespace and name in constant time. */
export class EntryTable {
  readonly #byId = new Map<string, OperationEntry>();
  readonly #byNamespace = new Map<string, Map<string, OperationEntry>>();
  #sorted: readonly OperationEntry[] | undefined;

  get byId(): ReadonlyMap<string, OperationEntry> {
    return this.#byId;
  }

  get byNamespace(): ReadonlyMap<string, ReadonlyMap<string, OperationEntry>> {
    return this.#byNamespace;
  }

  /** Puts an entry in, in place of one with the same id. */
  put(entry: OperationEntry): RegistryChange {
    const { id, operation } = entry;
    const type = this.#byId.has(id) ? "replaced" : "added";
    this.#byId.set(id, entry);
    const names = this.#byNamespace.get(operation.namespace);
    if (names === undefined) this.#byNamespace.set(operation.namespace, new Map([[operation.name, entry]]));
    else names.set(operation.name, entry);
    this.#sorted = undefined;
    return { type, operation };
  }

  /** Takes an entry out, if it is there. */
  delete(id: string): RegistryChange | undefined {
    const operation = this.#byId.get(id)?.operation;
    if (operation === undefined) return undefined;
    this.#byId.delete(id);
    const names = this.#byNamespace.get(operation.namespace);
    names?.delete(operation.name);
    if (names?.size === 0) this.#byNamespace.delete(operation.namespace);
    this.#sorted = undefined;
    return { type: "removed", operation };
  }

  /** Every entry by id in code unit order, whatever order they were registered in. */
  sorted(): readonly OperationEntry[] {
    this.#sorted ??= [...this.#byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
    return this.#sorted;
  }
}

/**
 * Does to a registry what happened to a source. A source changes what came from it and nothing else: an operation that
 * cannot be registered, or whose id belongs to somebody else, is left out with a warning.
 */
function applySourceChanges(
  core: RegistryCore,
  source: OperationSource,
  changes: readonly RegistryChange[],
): void {
  const done: RegistryChange[] = [];
  for (const change of changes) {
    try {
      const applied = applyChange(core, source, change);
      if (applied !== undefined) done.push(applied);
    } catch (cause) {
      const message = `A change of a source was not followed. ${cause instanceof Error ? cause.message : ""}`;
      core.warn({ type: "source-change-refused", message, operationId: String(change.operation?.id), cause });
    }
  }
  core.announce(done);
}

function applyChange(
  core: RegistryCore,
  source: OperationSource,
  { type, operation }: RegistryChange,
): RegistryChange | undefined {
  const current = core.table.byId.get(operation.id);
  if (type === "removed") return current?.source === source ? core.table.delete(operation.id) : undefined;
  if (current !== undefined && current.source !== source) {
    throw new TypeError(`Operation "${operation.id}" is registered already, and not by this source.`);
  }
  return core.table.put(new OperationEntry(toOperation(operation), core, source));
}

/** Bounds a registry keeps: those of schemas, and how deep calls may nest. */
export interface RegistryLimits extends SchemaLimits {
  /** Calls within calls. @default 64 */
  readonly callDepth: number;
}

/** How a registry behaves. */
export interface RegistryOptions {
  /** What to do with data that misses its `outputSchema`, where an operation does not say. @default "warn" */
  readonly outputPolicy?: OutputPolicy;
  /** For calls from outside that set no `timeoutMs`. @default no limit */
  readonly defaultTimeoutMs?: number;
  /** Puts `durationMs` into `meta.waybill` of every result. @default false */
  readonly timing?: boolean;
  /** Compile schemas to code where the platform allows it; results are the same without. @default true */
  readonly codegen?: boolean;
  /** Those left out keep their default. */
  readonly limits?: Partial<RegistryLimits>;
  /**
   * Fetches an operation that is not there, such as from a source that is not started yet: a call of it waits until the promise settles and
   * then looks again; nothing where there is nothing to wait for. Subscriptions do not wait. @default nothing is fetched
   */
  readonly bringMissing?:
    | ((operationId: string, identity: Identity | undefined) => Promise<void> | undefined)
    | undefined;
  /** Says why an operation is not there, where that is known and this caller may know it: what a call of it fails with. @default `OPERATION_NOT_FOUND` */
  readonly explainMissing?:
    | ((operationId: string, identity: Identity | undefined) => CallError | undefined)
    | undefined;
  /** Hears of what went wrong without failing a call. @default `console.warn`, once for each operation and kind */
  readonly onWarning?: (warning: RegistryWarning) => void;
  /** Hears what handlers log. @default nobody */
  readonly onLog?: (record: LogRecord) => void;
  /** Hears what handlers report with `progress()`, besides the caller. @default nobody */
  readonly onProgress?: (record: ProgressRecord) => void;
}
