import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { SecretMask } from "../../core/secrets/secret-mask.ts";
import type { ReconnectOptions } from "../../mcp/client/connection-options.ts";
import type { Wording } from "./shown-text.ts";
import type { SourceKind, SourceReport, SourceState } from "./source.ts";
import type { SourceProvider } from "./source-provider.ts";

/** What a source is made of. */
export interface SourcePlan {
  readonly name: string;
  readonly kind: SourceKind;
  readonly target: string;
  readonly secrets: SecretMask;
  /** Times between attempts. @default 500 ms, doubled up to 30 s */
  readonly reconnect?: ReconnectOptions | undefined;
  readonly provider?: SourceProvider | undefined;
  /** Whether trying again what is up makes it anew, rather than listing it again. @default false */
  readonly isMadeAnew?: boolean | undefined;
  /** What is said of it and of its calls in better words. @default nothing */
  readonly wording?: Wording | undefined;
  /** Whether words of other sources that come with its errors are passed on. @default true */
  readonly said?: boolean | undefined;
  /** Never throws. */
  warn(message: string, cause?: unknown): void;
  /** Makes what stands behind it; leaves nothing behind where that fails, or soon after the signal. */
  open(signal: AbortSignal, watcher: BackingWatcher): Promise<Backing>;
  /** Hears of every change of the source's state, before anybody else. */
  onState?(state: SourceState): void;
}

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
