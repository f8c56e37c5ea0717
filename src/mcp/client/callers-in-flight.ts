import type { CallerSide } from "../../core/operation/caller-side.ts";

/** What a server may want to ask something about. */
const CALLS: ReadonlySet<string> = new Set([
  "tools/call",
  "prompts/get",
  "resources/read",
  "completion/complete",
]);

/** Whose question it must be: the 2025 revisions do not say, so only what all calls in flight agree on is certain. */
export type CallerInFlight =
  | { readonly kind: "one"; readonly caller: CallerSide | undefined }
  | { readonly kind: "none" }
  | { readonly kind: "several" };

/** The calls in flight over one connection, by caller. */
export class CallersInFlight {
  readonly #counts = new Map<CallerSide | undefined, number>();

  /** Returns how to take the call out again. */
  enter(method: string, caller: CallerSide | undefined): () => void {
    if (!CALLS.has(method)) return () => {};
    this.#counts.set(caller, (this.#counts.get(caller) ?? 0) + 1);
    let left = false;
    return () => {
      if (left) return;
      left = true;
      const count = (this.#counts.get(caller) ?? 1) - 1;
      if (count > 0) this.#counts.set(caller, count);
      else this.#counts.delete(caller);
    };
  }

  /** Finds the one whom a question of the server must be for. */
  find(): CallerInFlight {
    if (this.#counts.size === 0) return { kind: "none" };
    if (this.#counts.size > 1) return { kind: "several" };
    const [caller] = this.#counts.keys();
    return { kind: "one", caller };
  }
}
