import { HeldIdentity } from "../access/identity.ts";
import type { ResponseEnvelope } from "../envelope/envelope.ts";
import { belongsTo, CallContext, inheritFrom } from "../execution/call-context.ts";
import { checkExecuteOptions } from "../execution/call-scope.ts";
import type { CallHook, Hooks } from "../execution/hooks.ts";
import { toOperation } from "../operation/operation.ts";
import type { OperationContext } from "../operation/operation-context.ts";
import type { EnvOptions, EnvWithin, OperationEnv } from "../operation/operation-env-types.ts";
import type { AnyOperation, CallArguments, OperationSpec, OutputOf } from "../operation/operation-types.ts";
import type {
  ChangeListener,
  ExecuteOptions,
  Executor,
  ListOptions,
  OperationSource,
  SubscribeOptions,
} from "./executor.ts";
import { OperationEntry } from "./operation-entry.ts";
import { type EnvExecute, operationEnv, readNamespaces } from "./operation-env.ts";
import { RegistryCore } from "./registry-core.ts";
import type { RegistryOptions } from "./registry-options.ts";
import { applySourceChanges } from "./source-changes.ts";

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
    return this.#core.addListener(listener);
  }

  /** Adds a hook around calls, or around subscriptions too; returns how to take it out again. */
  use(hook: CallHook | Hooks): () => void {
    return this.#core.addHooks(typeof hook === "function" ? { execute: hook } : hook);
  }

  /** Runs an operation, given itself or by id, and resolves with its envelope; rejects with a `CallError`. */
  execute<const T extends AnyOperation | string>(
    target: T,
    ...rest: CallArguments<T, ExecuteOptions>
  ): Promise<ResponseEnvelope<OutputOf<T>>>;
  execute(target: unknown, input?: unknown, options?: ExecuteOptions): Promise<ResponseEnvelope> {
    return this.#core.execute(target, input, options, undefined);
  }

  /** Runs a subscription while it is read: nothing starts before, and leaving the loop stops the handler. */
  subscribe<const T extends AnyOperation | string>(
    target: T,
    ...rest: CallArguments<T, SubscribeOptions>
  ): AsyncIterableIterator<ResponseEnvelope<OutputOf<T>>, undefined>;
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
