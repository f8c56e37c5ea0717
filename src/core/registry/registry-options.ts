import type { Identity } from "../access/identity.ts";
import type { CallError } from "../errors/errors.ts";
import type { OutputPolicy } from "../operation/operation-types.ts";
import type { SchemaLimits } from "../schema/limits.ts";
import type { LogRecord, ProgressRecord, RegistryWarning } from "./registry-host.ts";

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
