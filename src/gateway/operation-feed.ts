import type { AnyOperation } from "../core/operation/operation-types.ts";
import type { ChangeListener } from "../core/registry/executor.ts";
import { operationChanges } from "./sources/operation-changes.ts";
import type { Source } from "./sources/source.ts";

/** Decides what becomes of an operation before it is registered: it may be changed, or left out. */
export type Admit = (operation: AnyOperation) => AnyOperation | undefined;

/**
 * The operations of one source as they are registered: what a registry follows with `registerAll`. It starts empty and tells of what
 * is there when it is opened, so that one operation that cannot be registered is left out by itself.
 */
export class OperationFeed {
  /** Nothing is there before `open`. */
  readonly operations: readonly AnyOperation[] = [];
  readonly #source: Source;
  /** What was admitted, by what was given: the same stays the same. */
  #admitted = new WeakMap<AnyOperation, { readonly operation: AnyOperation | undefined }>();
  #offered: ReadonlyMap<string, AnyOperation> = new Map();
  #listener: ChangeListener = () => {};
  #stop: () => void = () => {};

  constructor(source: Source) {
    this.#source = source;
  }

  onChange(listener: ChangeListener): () => void {
    this.#listener = listener;
    return () => {
      this.#listener = () => {};
    };
  }

  /** Tells what is there, and from now on what changes; opening it again is for another way to admit. */
  open(admit: Admit): void {
    this.#stop();
    this.#admitted = new WeakMap();
    const refresh = (): void => this.#tell(this.#admitAll(admit));
    this.#stop = this.#source.onChange(refresh);
    refresh();
  }

  /** Takes everything back and hears no more. */
  close(): void {
    this.#stop();
    this.#tell(new Map());
  }

  #admitAll(admit: Admit): ReadonlyMap<string, AnyOperation> {
    const now = new Map<string, AnyOperation>();
    for (const given of this.#source.operations) {
      const known = this.#admitted.get(given) ?? { operation: admit(given) };
      this.#admitted.set(given, known);
      if (known.operation !== undefined) now.set(given.id, known.operation);
    }
    return now;
  }

  #tell(now: ReadonlyMap<string, AnyOperation>): void {
    const changes = operationChanges(this.#offered, now);
    this.#offered = now;
    if (changes.length > 0) this.#listener(changes);
  }
}
