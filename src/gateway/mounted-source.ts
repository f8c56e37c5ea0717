import type { OperationRegistry } from "../core/registry/registry.ts";
import { type Admit, OperationFeed } from "./operation-feed.ts";
import type { Source } from "./sources/source.ts";

/** A source whose operations are registered for as long as it is mounted. */
export class MountedSource {
  readonly source: Source;
  /** What the config says of it: another text is another source. */
  readonly settings: string;
  readonly #feed: OperationFeed;
  readonly #stops: readonly (() => void)[];
  #starting: Promise<void> | undefined;

  constructor(source: Source, settings: string, onState: () => void) {
    this.source = source;
    this.settings = settings;
    this.#feed = new OperationFeed(source);
    this.#stops = [source.onState(onState)];
  }

  get isStarted(): boolean {
    return this.#starting !== undefined;
  }

  /** Starts the source, once; resolves when the first attempt has ended. */
  start(): Promise<void> {
    this.#starting ??= this.source.start();
    return this.#starting;
  }

  /** Registers what the source has, and from now on what changes. */
  mount(registry: OperationRegistry, admit: Admit): void {
    registry.registerAll(this.#feed);
    this.#feed.open(admit);
  }

  /** Decides anew which of its operations are registered, and how. */
  readmit(admit: Admit): void {
    this.#feed.open(admit);
  }

  /** Takes its operations out; calls under way go on. */
  unmount(): void {
    for (const stop of this.#stops) stop();
    this.#feed.close();
  }
}
