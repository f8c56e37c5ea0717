import type { Identity } from "../access/identity.ts";
import type { ResponseEnvelope } from "../envelope/envelope.ts";
import type { CallError } from "../errors/errors.ts";
import type { CallContext } from "../execution/call-context.ts";
import type { CallHook, SubscribeHook } from "../execution/dispatch.ts";
import type { LogLevel } from "../operation/operation-context.ts";
import type { SchemaIssue } from "../schema/schema-issue.ts";
import type { ExecuteOptions } from "./executor.ts";
import type { EntryTable } from "./registry.ts";

/** One line a handler logged. */
export interface LogRecord {
  readonly level: LogLevel;
  readonly message: string;
  readonly data: unknown;
  readonly operationId: string;
  readonly requestId: string;
}

/** One step a handler reported. */
export interface ProgressRecord {
  readonly value: unknown;
  readonly operationId: string;
  readonly requestId: string;
}

/** Something that went wrong without failing a call. */
export interface RegistryWarning {
  /**
   * Output or error details that miss their schema, a change of a source that was not followed, a listener that threw, data that looks
   * like a result and lost its mark, a `render` that threw.
   */
  readonly type:
    | "output-invalid"
    | "error-details-invalid"
    | "source-change-refused"
    | "listener-failed"
    | "result-unmarked"
    | "render-failed";
  readonly message: string;
  readonly operationId?: string;
  readonly issues?: readonly SchemaIssue[];
  readonly cause?: unknown;
}

/** What calls need from the registry they run in. */
export interface RegistryHost {
  readonly table: EntryTable;
  readonly executeHooks: readonly CallHook[];
  readonly subscribeHooks: readonly SubscribeHook[];
  /** Whether every result says how long its call took, hooks included. */
  readonly isTimed: boolean;
  readonly defaultTimeoutMs: number | undefined;
  readonly maxDepth: number;
  /** Fetches an operation that is not there, where that can be. */
  readonly bringMissing:
    | ((operationId: string, identity: Identity | undefined) => Promise<void> | undefined)
    | undefined;
  /** Says why an operation is not there, where that is known. */
  readonly explainMissing:
    | ((operationId: string, identity: Identity | undefined) => CallError | undefined)
    | undefined;
  readonly onLog: ((record: LogRecord) => void) | undefined;
  readonly onProgress: ((record: ProgressRecord) => void) | undefined;
  warn(warning: RegistryWarning): void;
  execute(
    target: unknown,
    input: unknown,
    options: ExecuteOptions | undefined,
    parent: CallContext | undefined,
  ): Promise<ResponseEnvelope>;
  subscribe(
    target: unknown,
    input: unknown,
    options: ExecuteOptions | undefined,
    parent: CallContext | undefined,
  ): AsyncIterable<ResponseEnvelope>;
}

/** Warns of what a listener threw. */
export function warnOfListener(host: Pick<RegistryHost, "warn">, cause: unknown): void {
  host.warn({ type: "listener-failed", message: "A listener of the registry threw.", cause });
}

/** Calls a listener, if there is one; what it throws, now or later, is a warning and never reaches the call. */
export function notify<T>(host: RegistryHost, listener: ((value: T) => unknown) | undefined, value: T): void {
  const failed = (cause: unknown): void => warnOfListener(host, cause);
  try {
    const later = listener?.(value);
    if (later instanceof Promise) later.catch(failed);
  } catch (cause) {
    failed(cause);
  }
}
