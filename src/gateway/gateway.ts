import type { Hooks } from "../core/execution/hooks.ts";
import type { AnyOperation } from "../core/operation/operation-types.ts";
import type { Executor } from "../core/registry/executor.ts";
import type { LoadedConfig } from "./config/loaded-config.ts";
import type { Source } from "./sources/source.ts";

/** What a gateway may be told beyond its config. */
export interface GatewayOptions {
  /** Which sources to mount, by name. @default all */
  readonly only?: ((name: string) => boolean) | undefined;
  /** Stand around every call, outside of all policies: logs, metrics, traces. @default none */
  readonly observers?: readonly Hooks[] | undefined;
  /** Hears what is odd; secrets are masked. @default nobody does */
  readonly onWarning?: ((message: string, cause?: unknown) => void) | undefined;
}

/** Many sources behind one executor, with policies around every call. */
export interface Gateway {
  /** Where calls go in. An operation of a source that is down fails with `UNAVAILABLE` and the reason, known or not. */
  readonly executor: Executor & { readonly operations: Iterable<AnyOperation> };
  /** In the order of the config. */
  readonly sources: readonly Source[];
  /** Hears when sources were added, removed, or changed their state; returns how to stop. */
  onSources(listener: () => void): () => void;
  /** Mounts what is new or different, drops what is gone, keeps the rest as it is; calls under way go on. */
  reload(loaded: LoadedConfig): Promise<void>;
  /** Ends every source, calls under way first for up to `timeoutMs`. */
  close(options?: { /** @default 0 */ readonly timeoutMs?: number }): Promise<void>;
}
