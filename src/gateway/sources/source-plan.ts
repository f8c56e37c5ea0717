import type { SecretMask } from "../../core/secrets/secret-mask.ts";
import type { ReconnectOptions } from "../../mcp/client/connection-options.ts";
import type { McpProvider } from "../../mcp/provider.ts";
import type { Backing, BackingWatcher } from "./backing.ts";
import type { Wording } from "./shown-text.ts";
import type { SourceKind, SourceState } from "./source.ts";

/** What a source is made of. */
export interface SourcePlan {
  readonly name: string;
  readonly kind: SourceKind;
  readonly target: string;
  readonly secrets: SecretMask;
  /** Times between attempts. @default 500 ms, doubled up to 30 s */
  readonly reconnect?: ReconnectOptions | undefined;
  readonly provider?: McpProvider | undefined;
  /** Whether trying again what is up makes it anew, rather than listing it again. @default false */
  readonly isMadeAnew?: boolean | undefined;
  /** What is said of it and of its calls in better words. @default nothing */
  readonly wording?: Wording | undefined;
  /** Never throws. */
  warn(message: string, cause?: unknown): void;
  /** Makes what stands behind it; leaves nothing behind where that fails, or soon after the signal. */
  open(signal: AbortSignal, watcher: BackingWatcher): Promise<Backing>;
  /** Hears of every change of the source's state, before anybody else. */
  onState?(state: SourceState): void;
}
