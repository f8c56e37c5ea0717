import type { AnyOperation } from "../core/operation/operation-types.ts";
import type { ChangeListener } from "../core/registry/executor.ts";
import type { OperationRegistry } from "../core/registry/registry.ts";
import { operationChanges, type Source } from "./sources/source.ts";

/** Decides what becomes of an operation before it is registered: it may be changed, or left out. */
export type Admit = (operation: AnyOperation) => AnyOperation | undefined;

/** A source whose operations are registered, as far as they are admitted, for as long as it is mounted. */
export class MountedSource {
  readonly source: Source;
  /** What the config says of it: another text is another source. */
  readonly settings: string;
  readonly #stopStates: () => void;
  #stopChanges: () => void = () => {};
  #starting: Promise<void> | undefined;
  /** What was admitted, by what was given: the same stays the same. */
  #admitted = new WeakMap<AnyOperation, { readonly operation: AnyOperation | undefined }>();
  #registered: ReadonlyMap<string, AnyOperation> = new Map();
  #register: ChangeListener = () => {};

  constructor(source: Source, settings: string, onState: () => void) {
    this.source = source;
    this.settings = settings;
    this.#stopStates = source.onState(onState);
  }

  get isStarted(): boolean {
    return this.#starting !== undefined;
  }

  /** Starts the source, once; resolves when the first attempt has ended. */
  start(): Promise<void> {
    this.#starting ??= this.source.start();
    return this.#starting;
  }

  /** Registers what the source has, and from now on what changes; one operation that cannot be registered is left out by itself. */
  mount(registry: OperationRegistry, admit: Admit): void {
    registry.registerAll({
      operations: [],
      onChange: (listener) => {
        this.#register = listener;
        return () => {
          this.#register = () => {};
        };
      },
    });
    this.readmit(admit);
  }

  /** Decides anew which of its operations are registered, and how. */
  readmit(admit: Admit): void {
    this.#stopChanges();
    this.#admitted = new WeakMap();
    const follow = (): void => this.#follow(this.#admitAll(admit));
    this.#stopChanges = this.source.onChange(follow);
    follow();
  }

  /** Takes its operations out; calls under way go on. */
  unmount(): void {
    this.#stopStates();
    this.#stopChanges();
    this.#follow(new Map());
  }

  #admitAll(admit: Admit): ReadonlyMap<string, AnyOperation> {
    const now = new Map<string, AnyOperation>();
    for (const given of this.source.operations) {
      const known = this.#admitted.get(given) ?? { operation: admit(given) };
      this.#admitted.set(given, known);
      if (known.operation !== undefined) now.set(given.id, known.operation);
    }
    return now;
  }

  #follow(now: ReadonlyMap<string, AnyOperation>): void {
    const changes = operationChanges(this.#registered, now);
    this.#registered = now;
    if (changes.length > 0) this.#register(changes);
  }
}
