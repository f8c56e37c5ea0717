import type { Identity } from "../access/identity.ts";
import type { ResponseEnvelope } from "../envelope/envelope.ts";
import type {
  AskOptions,
  ElicitAnswer,
  ElicitRequest,
  Root,
  SampleAnswer,
  SampleRequest,
} from "./caller-side.ts";
import type { OperationEnv } from "./operation-env-types.ts";
import type { AnyOperation, CallArguments, OutputOf } from "./operation-types.ts";

/** How much a log line matters. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** What a handler said. */
export interface LogLine {
  readonly level: LogLevel;
  readonly message: string;
  readonly data?: unknown;
}

/** Anything the caller wants handlers to see; it never decides access. */
export type Metadata = Readonly<Record<string, unknown>>;

/** A call above this one. */
export interface CallOrigin {
  readonly requestId: string;
  readonly operationId: string;
  readonly parent: CallOrigin | undefined;
}

/** What one call may be told when a handler makes it; who it runs as is not among it. */
export interface NestedCallOptions {
  /** Aborts this call; the signals above it count as well. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds the caller will wait; what is left to the parent, when that is less. */
  readonly timeoutMs?: number | undefined;
  /** At most 200 printable characters. @default a random UUID */
  readonly requestId?: string | undefined;
  /** @default that of the parent */
  readonly metadata?: Metadata | undefined;
  /** Hears what the handler reports with `progress()`. */
  readonly onProgress?: ((value: unknown) => void) | undefined;
  /** Hears what the handler says with `log()`, besides the registry's own listener. */
  readonly onLog?: ((line: LogLine) => void) | undefined;
}

/** What a handler knows about its call; every member also works taken out of the object. */
export interface OperationContext {
  readonly requestId: string;
  readonly operationId: string;
  /** The call whose handler made this one. */
  readonly parent: CallOrigin | undefined;
  /** Who is asking; nothing for an anonymous caller. */
  readonly identity: Identity | undefined;
  /** Aborts when the caller leaves, a deadline passes, or the call above it is aborted or runs out of time. */
  readonly signal: AbortSignal;
  /** On the clock of `performance.now()`. */
  readonly deadline: number | undefined;
  readonly metadata: Metadata;
  /** The other operations as functions: `env.namespace.name(input)`. */
  readonly env: OperationEnv;
  /** Calls another operation on behalf of this call's caller, or of the operation's own `authority`. */
  readonly execute: <const T extends AnyOperation | string>(
    target: T,
    ...rest: CallArguments<T, NestedCallOptions>
  ) => Promise<ResponseEnvelope<OutputOf<T>>>;
  /** Subscribes to another operation, in the same way. */
  readonly subscribe: <const T extends AnyOperation | string>(
    target: T,
    ...rest: CallArguments<T, NestedCallOptions>
  ) => AsyncIterable<ResponseEnvelope<OutputOf<T>>>;
  /**
   * Tells how far the work has come, in whatever form the caller understands; MCP clients understand `{ progress, total?, message? }`,
   * and `{ done, of?, message? }` is the same to them. Ignored once the call is over.
   */
  readonly progress: (value: unknown) => void;
  /** Throws `UPGRADE_REQUIRED` when the caller's plan lacks a feature the operation declares. */
  readonly requireFeature: (feature: string) => void;
  readonly log: (level: LogLevel, message: string, data?: unknown) => void;
  /** Asks the person behind the call; `NOT_IMPLEMENTED` where the caller cannot be asked. */
  readonly elicit: (request: ElicitRequest, options?: AskOptions) => Promise<ElicitAnswer>;
  /** Asks the language model of the caller's side; `NOT_IMPLEMENTED` where it has none to ask. */
  readonly sample: (request: SampleRequest, options?: AskOptions) => Promise<SampleAnswer>;
  /** Asks where the caller's side works; `NOT_IMPLEMENTED` where it does not tell. */
  readonly roots: (options?: AskOptions) => Promise<readonly Root[]>;
}
