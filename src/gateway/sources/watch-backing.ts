import type { Backing, BackingWatcher } from "./backing.ts";

/** Who hears of what stands behind a source. */
export interface BackingHearer {
  /** Tells whether it still is what stands there. */
  isInUse(backing: Backing): boolean;
  up(): void;
  down(reason: unknown, retryAt: number | undefined): void;
  idle(timeoutMs: number): Promise<void>;
}

/** Passes on what a backing tells, from `begin` on, when it is in use, until another takes its place. */
export function watchBacking(hearer: BackingHearer): {
  readonly watcher: BackingWatcher;
  begin(backing: Backing): void;
} {
  let own: Backing | undefined;
  let lost: { readonly reason: unknown; readonly retryAt: number | undefined } | undefined;
  const tell = (): void => {
    if (own === undefined || !hearer.isInUse(own)) return;
    if (lost === undefined) hearer.up();
    else hearer.down(lost.reason, lost.retryAt);
  };
  return {
    watcher: {
      down: (reason, retryAt) => {
        lost = { reason, retryAt };
        tell();
      },
      up: () => {
        lost = undefined;
        tell();
      },
      idle: (timeoutMs) => hearer.idle(timeoutMs),
    },
    begin(backing) {
      own = backing;
      tell();
    },
  };
}
