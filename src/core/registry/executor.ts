import type { Identity } from "../access/identity.ts";
import type { StartedTask, StartOptions } from "../client/started-task.ts";
import type { ResponseEnvelope } from "../envelope/envelope.ts";
import type { CallerSide } from "../operation/caller-side.ts";
import type { CallOrigin, NestedCallOptions } from "../operation/operation-context.ts";
import type { AnyOperation, CallArguments, OperationSpec, OutputOf } from "../operation/operation-types.ts";

/** What a transport knows of the calls above this one, in another process. */
export interface CallAbove {
  /** The call whose handler made this one. */
  readonly parent?: Omit<CallOrigin, "parent"> | undefined;
  /** How many calls are above this one; it counts towards the limit on calls within calls. */
  readonly depth: number;
}

/** What a call from outside may be told. */
export interface ExecuteOptions extends NestedCallOptions {
  /** Who is asking, from the transport that authenticated them. @default an anonymous caller */
  readonly identity?: Identity | undefined;
  /** What a transport knows of the calls above this one, in another process; no rights come with it. */
  readonly origin?: CallAbove | undefined;
  /** What the handler, and those it calls, may ask the caller. @default nothing */
  readonly caller?: CallerSide | undefined;
}

/** What a subscription from outside may be told; `timeoutMs` is for the whole of it. */
export type SubscribeOptions = ExecuteOptions;

/** Whose view of the operations is asked for. */
export interface ListOptions {
  /** @default an anonymous caller */
  readonly identity?: Identity | undefined;
}

/** One change to a set of operations; `operation` is the new one, or the one that went. */
export interface RegistryChange {
  readonly type: "added" | "replaced" | "removed";
  readonly operation: AnyOperation;
}

/** Hears of changes, those made in one go together. */
export type ChangeListener = (changes: readonly RegistryChange[]) => void;

/** What can run operations: a registry here, or one behind a bus. */
export interface Executor {
  execute<const T extends AnyOperation | string>(
    target: T,
    ...rest: CallArguments<T, ExecuteOptions>
  ): Promise<ResponseEnvelope<OutputOf<T>>>;
  /** Starts when first asked for a value; leaving the loop stops the handler. */
  subscribe<const T extends AnyOperation | string>(
    target: T,
    ...rest: CallArguments<T, SubscribeOptions>
  ): AsyncIterable<ResponseEnvelope<OutputOf<T>>>;
  /** Starts a call that goes on without this process; nothing where it can only be run here. @default all calls are run here */
  start?(
    target: AnyOperation | string,
    input: unknown,
    options: StartOptions,
  ): Promise<StartedTask | undefined>;
  /** The operations this caller may call, sorted by id. */
  list(options?: ListOptions): readonly AnyOperation[];
  get(id: string): AnyOperation | undefined;
  /** Returns how to stop listening. */
  onChange(listener: ChangeListener): () => void;
}

/** Something whose operations may change over time. */
export interface Changing {
  /** Returns how to stop listening. */
  onChange?(listener: ChangeListener): () => void;
}

/** Operations from elsewhere: a list of them, or something that holds one; their changes are followed. */
export type OperationSource =
  | (Iterable<OperationSpec> & Changing)
  | (Changing & { readonly operations: Iterable<OperationSpec> });
