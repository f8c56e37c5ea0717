import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { SourceReport } from "./source.ts";

/** What can be told of what stands behind a source. */
export type BackingFacts = Pick<SourceReport, "unusable" | "notes"> &
  Partial<Pick<SourceReport, "protocol" | "title" | "version" | "changed">>;

/** What stands behind a source, once it is there. */
export interface Backing {
  readonly operations: readonly AnyOperation[];
  facts(): BackingFacts;
  /** Hears that `operations` or facts may be others now. */
  onChange(listener: () => void): void;
  /** Lists again; rejects where that cannot be, and everything stays as it was. */
  refresh(): Promise<void>;
  /** Ends it; hears and tells nothing more. */
  close(): Promise<void>;
}

/** What a backing tells of itself after it was opened, where it mends itself. */
export interface BackingWatcher {
  /** It is lost, and makes itself again. */
  down(reason: unknown, retryAt?: number): void;
  /** It is back. */
  up(): void;
  /** Resolves once no call runs, or when the time is up. */
  idle(timeoutMs: number): Promise<void>;
}
