import type { Source, SourceKind, SourceReport, SourceState } from "./source.ts";

/** What an idle source is known by. */
export interface IdlePlan {
  readonly name: string;
  readonly kind: SourceKind;
  readonly target: string;
  /** Why it cannot work as it is configured, fit to be shown; absent for one that is turned off. */
  readonly fault?: string | undefined;
}

const CLOSED: SourceState = Object.freeze({ status: "closed" });

/** A source that is turned off, or that nothing but another config can mend: there is nothing to start. */
export class IdleSource implements Source {
  readonly name: string;
  readonly kind: SourceKind;
  readonly operations: readonly never[] = Object.freeze([]);
  readonly #target: string;
  readonly #listeners = new Set<(state: SourceState) => void>();
  #state: SourceState;

  constructor({ name, kind, target, fault }: IdlePlan) {
    this.name = name;
    this.kind = kind;
    this.#target = target;
    this.#state = Object.freeze(
      fault === undefined
        ? { status: "disabled" }
        : { status: "down", since: Date.now(), reason: fault, cause: "it cannot work as it is configured." },
    );
  }

  get state(): SourceState {
    return this.#state;
  }

  async start(): Promise<void> {}

  async retry(): Promise<void> {}

  report(): SourceReport {
    const { name, kind } = this;
    return { name, kind, target: this.#target, state: this.#state, operations: 0, unusable: [], notes: [] };
  }

  onChange(): () => void {
    return () => {};
  }

  onState(listener: (state: SourceState) => void): () => void {
    const own = (state: SourceState): void => listener(state);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  async close(): Promise<void> {
    if (this.#state === CLOSED) return;
    this.#state = CLOSED;
    for (const listener of [...this.#listeners]) listener(CLOSED);
    this.#listeners.clear();
  }
}
