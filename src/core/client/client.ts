import { isErrorEnvelope, type ResponseEnvelope } from "../envelope/envelope.ts";
import { EXECUTE_OPTIONS } from "../execution/call-context.ts";
import { idOf } from "../execution/dispatch.ts";
import { isNamespace } from "../operation/operation.ts";
import type {
  AnyOperation,
  CallArguments,
  Callable,
  IdIn,
  NamespaceIn,
  OperationIn,
  OutputOf,
  TargetIn,
} from "../operation/operation-types.ts";
import { checkNames, checkOptionsObject } from "../options/check-options.ts";
import type { ExecuteOptions, Executor, SubscribeOptions } from "../registry/executor.ts";
import { Tasks } from "../tasks/tasks.ts";
import { nearestName } from "../text/nearest-name.ts";
import { CURSOR_PAGER, followPages } from "./pager.ts";
import { type StartedTask, type StartOptions, startTask, type TaskWaitOptions } from "./started-task.ts";
import { ToolResultError } from "./tool-result-error.ts";

/** What following pages may be told. */
export interface PagesOptions extends ExecuteOptions {
  /** Pages to read before giving up with an error. @default 1_000 */
  readonly maxPages?: number | undefined;
}

/** Calls operations for their data; an answer that says no is thrown as a `ToolResultError`. */
interface ClientCalls<Ops extends readonly AnyOperation[]> {
  call<const Id extends IdIn<Ops>>(
    id: Id,
    ...rest: CallArguments<OperationIn<Ops, Id>, ExecuteOptions>
  ): Promise<OutputOf<OperationIn<Ops, Id>>>;
  call<const T extends AnyOperation | string>(
    target: Callable<Ops, T>,
    ...rest: CallArguments<TargetIn<Ops, T>, ExecuteOptions>
  ): Promise<OutputOf<TargetIn<Ops, T>>>;
  /** Starts a call that goes on by itself, and gives a handle on it; see `TaskHandle`. */
  start<const Id extends IdIn<Ops>>(
    id: Id,
    ...rest: CallArguments<OperationIn<Ops, Id>, StartOptions>
  ): Promise<TaskHandle<OutputOf<OperationIn<Ops, Id>>>>;
  start<const T extends AnyOperation | string>(
    target: Callable<Ops, T>,
    ...rest: CallArguments<TargetIn<Ops, T>, StartOptions>
  ): Promise<TaskHandle<OutputOf<TargetIn<Ops, T>>>>;
  /** The data of one page after the other, as the operation's `pager` or `meta.waybill.page` leads. */
  pages<const Id extends IdIn<Ops>>(
    id: Id,
    ...rest: CallArguments<OperationIn<Ops, Id>, PagesOptions>
  ): AsyncIterable<OutputOf<OperationIn<Ops, Id>>>;
  pages<const T extends AnyOperation | string>(
    target: Callable<Ops, T>,
    ...rest: CallArguments<TargetIn<Ops, T>, PagesOptions>
  ): AsyncIterable<OutputOf<TargetIn<Ops, T>>>;
  /** The data of each yield. */
  subscribe<const Id extends IdIn<Ops>>(
    id: Id,
    ...rest: CallArguments<OperationIn<Ops, Id>, SubscribeOptions>
  ): AsyncIterable<OutputOf<OperationIn<Ops, Id>>>;
  subscribe<const T extends AnyOperation | string>(
    target: Callable<Ops, T>,
    ...rest: CallArguments<TargetIn<Ops, T>, SubscribeOptions>
  ): AsyncIterable<OutputOf<TargetIn<Ops, T>>>;
}

/** A call that goes on when nobody waits for it; iterating gives its states until it has ended. */
export interface TaskHandle<T = unknown> extends Omit<StartedTask, "result"> {
  /** The data of the result; an answer that says no is thrown as a `ToolResultError`. */
  result(options?: TaskWaitOptions): Promise<T>;
}

/** What goes with every call of a client that does not say otherwise. */
export interface ClientOptions extends ExecuteOptions {
  /** Keeps the calls that `start` makes of what runs in this process. @default in memory: they end with the process */
  readonly tasks?: Tasks | undefined;
}

/** Names that JavaScript itself looks for on any object, and those of the client's own functions: never a namespace or an operation. */
type OwnName = keyof ClientCalls<readonly []> | BuiltinName;
type BuiltinName =
  | "then"
  | "toJSON"
  | "__proto__"
  | "constructor"
  | "toString"
  | "valueOf"
  | "toLocaleString"
  | "hasOwnProperty"
  | "isPrototypeOf"
  | "propertyIsEnumerable";

/** The operations as functions: a subscription gives the data of each yield, anything else promises its data. */
type ClientNamespaces<Ops extends readonly AnyOperation[]> = {
  readonly [NS in Exclude<NamespaceIn<Ops>, OwnName>]: ClientNamespace<
    Extract<Ops[number], { readonly namespace: NS }>
  >;
};

type ClientNamespace<Op extends AnyOperation> = {
  readonly [Each in Op as Exclude<Each["name"], BuiltinName>]: (
    ...args: CallArguments<Each, ExecuteOptions>
  ) => Each["type"] extends "subscription" ? AsyncIterable<OutputOf<Each>> : Promise<OutputOf<Each>>;
};

/**
 * Calls operations for their data: `client.call("math.add", input)`, and `client.math.add(input)` for those that the registry was made with.
 * Namespaces called `call`, `start`, `pages` or `subscribe`, and names that every object has or that `await` looks for (`then`), are reached by `call`.
 */
export type Client<Ops extends readonly AnyOperation[] = readonly AnyOperation[]> = ClientCalls<Ops> &
  ClientNamespaces<Ops>;

/** The operations that an executor is known to have been made with. */
type OperationsOf<E> = E extends { readonly "~operations"?: infer Ops }
  ? NonNullable<Ops> extends readonly AnyOperation[]
    ? NonNullable<Ops>
    : readonly AnyOperation[]
  : readonly AnyOperation[];

const MAX_PAGES = 1_000;

type Target = AnyOperation | string;

/**
 * Makes a client of whatever runs operations; the defaults go with every call that does not say otherwise. The executor refuses names of
 * options that it does not know.
 */
export function createClient<E extends Executor>(
  executor: E,
  defaults: ClientOptions = {},
): Client<OperationsOf<E>> {
  const { tasks: given, ...settings } = withDefaults<ClientOptions>({}, defaults);
  let tasks = given;
  const client = {
    async call(target: Target, input?: unknown, options?: ExecuteOptions): Promise<unknown> {
      return dataOf(await executor.execute(target, input, withDefaults(settings, options)), target);
    },

    async start(target: Target, input?: unknown, options?: StartOptions): Promise<TaskHandle> {
      const { signal: _, ...told } = withDefaults<StartOptions & ExecuteOptions>(settings, options);
      const elsewhere = await executor.start?.(target, input, told);
      if (elsewhere !== undefined) return toHandle(elsewhere, target);
      tasks ??= new Tasks();
      return toHandle(
        await startTask(tasks, executor, { operationId: idOf(target), input, options: told }),
        target,
      );
    },

    async *pages(target: Target, input?: unknown, options?: PagesOptions): AsyncGenerator<unknown> {
      const { maxPages = MAX_PAGES, ...rest } = withDefaults(settings, options);
      checkMaxPages(rest);
      const operationId = idOf(target);
      const declared =
        executor.get(operationId)?.pager ?? (typeof target === "string" ? undefined : target.pager);
      const fetch = async (page: unknown) => {
        const envelope = await executor.execute(target, page, rest);
        dataOf(envelope, target);
        return envelope;
      };
      const pages = followPages(input, { operationId, pager: declared ?? CURSOR_PAGER, maxPages, fetch });
      for await (const envelope of pages) yield envelope.data;
    },

    async *subscribe(target: Target, input?: unknown, options?: SubscribeOptions): AsyncGenerator<unknown> {
      const envelopes = executor.subscribe(target, input, withDefaults(settings, options));
      for await (const envelope of envelopes) yield dataOf(envelope, target);
    },
  };
  return withNamespaces(client, executor) as Client<OperationsOf<E>>;
}

type Calls = Pick<ClientCalls<readonly AnyOperation[]>, "call" | "subscribe">;

/** Adds the namespaces: `client.math.add` calls `math.add` when it is called, whether that is there by then or not. */
function withNamespaces(client: object, executor: Executor): object {
  const calls = client as Calls;
  const own: object = Object.freeze(Object.assign(Object.create(null), client));
  return new Proxy(own, {
    get(_, namespace) {
      if (typeof namespace === "symbol" || Object.hasOwn(own, namespace)) return Reflect.get(own, namespace);
      return isBuiltin(namespace) || !isNamespace(namespace)
        ? undefined
        : toNamespace(namespace, calls, executor);
    },
  });
}

function toNamespace(namespace: string, calls: Calls, executor: Executor): object {
  return new Proxy(NOTHING, {
    get(_, name) {
      if (typeof name === "symbol" || isBuiltin(name)) return undefined;
      const id = `${namespace}.${name}`;
      return (input?: unknown, options?: ExecuteOptions): unknown =>
        executor.get(id)?.type === "subscription"
          ? calls.subscribe(id, input, options)
          : calls.call(id, input, options);
    },
  });
}

const NOTHING: object = Object.freeze(Object.create(null));

/** Tells whether JavaScript looks for that name by itself: to wait for a value, to write it as JSON, or on any object. */
function isBuiltin(name: string): boolean {
  return name === "then" || name === "toJSON" || name in Object.prototype;
}

/** Copies options over the defaults; what is no object is refused, because a copy would lose it. */
function withDefaults<O extends ExecuteOptions>(defaults: ExecuteOptions, options: O | undefined): O {
  if (options !== undefined && typeof options !== "object") checkOptionsObject(options, EXECUTE_OPTIONS);
  return { ...defaults, ...options } as O;
}

function toHandle(task: StartedTask, target: Target): TaskHandle {
  return {
    id: task.id,
    status: () => task.status(),
    result: async (options) => dataOf(await task.result(options), target),
    cancel: () => task.cancel(),
    [Symbol.asyncIterator]: () => task[Symbol.asyncIterator](),
  };
}

/** Refuses a slip of `maxPages`, which the executor cannot suggest because it does not know it. */
function checkMaxPages(options: object): void {
  const slip = Object.keys(options).find((name) => nearestName(name, ["maxPages"]) !== undefined);
  if (slip !== undefined) checkNames({ [slip]: true }, ["maxPages"]);
}

function dataOf(envelope: ResponseEnvelope, target: Target): unknown {
  if (isErrorEnvelope(envelope)) throw new ToolResultError(envelope, idOf(target));
  return envelope.data;
}
