import { Listeners } from "../../core/collections/listeners.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { ChangeListener, RegistryChange } from "../../core/registry/executor.ts";
import type { ImportedOperation } from "./imported-operation.ts";
import type { IndexedApi, UnusableOperation } from "./plan.ts";
import type { HttpTransport } from "./transport/create-transport.ts";

/** What is odd about one operation of a document. */
export interface OperationNote {
  readonly operationId: string;
  readonly note: string;
}

/** A document that was read, and the operations made of it. */
export interface ImportedApi {
  readonly api: IndexedApi;
  /** By id. */
  readonly operations: ReadonlyMap<string, ImportedOperation>;
}

/** What a source is made of; `fromOpenApi` puts it together. */
export interface OpenApiSourceParts {
  readonly transport: HttpTransport;
  readonly first: ImportedApi;
  /** Reads the document again. */
  read(): Promise<ImportedApi>;
  /** Never throws. */
  warn(message: string, cause?: unknown): void;
}

/** An HTTP API as a source of operations: `registry.registerAll(source)`. */
export interface OpenApiSource extends Iterable<AnyOperation> {
  /** Every operation of the document that can be called, sorted by id. */
  readonly operations: readonly AnyOperation[];
  /** What of the document could not be made an operation, and why. */
  readonly unusable: readonly UnusableOperation[];
  /** What the document gets wrong about its operations and was left out or mended. Reads all of them, which may take a while. */
  readonly notes: readonly OperationNote[];
  /** What the document calls the API. */
  readonly title: string;
  /** The version of the API, as a semantic version. */
  readonly version: string;
  readonly description: string | undefined;
  /** Returns how to stop listening. */
  onChange(listener: ChangeListener): () => void;
  /** Reads the document again and tells registries what changed; when it cannot be read, everything stays as it is. */
  refresh(): Promise<void>;
  /** Ends every connection; calls under way fail. */
  close(): Promise<void>;
}

/** What `fromOpenApi` resolves with. */
export class LiveSource implements OpenApiSource {
  readonly #parts: OpenApiSourceParts;
  readonly #listeners: Listeners<readonly RegistryChange[]>;
  #now: ImportedApi;
  /** The reading under way and those after it, one at a time: an older document never follows a newer one. */
  #reading: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(parts: OpenApiSourceParts) {
    this.#parts = parts;
    this.#now = parts.first;
    this.#listeners = new Listeners((cause) => parts.warn("A listener of changes threw.", cause));
  }

  get operations(): readonly AnyOperation[] {
    const operations = Array.from(this.#now.operations.values(), ({ operation }) => operation);
    return operations.sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  [Symbol.iterator](): Iterator<AnyOperation> {
    return this.operations[Symbol.iterator]();
  }

  get unusable(): readonly UnusableOperation[] {
    return this.#now.api.unusable;
  }

  get notes(): readonly OperationNote[] {
    return Array.from(this.#now.operations.values()).flatMap((imported) =>
      imported.notes.map((note) => ({ operationId: imported.operation.id, note })),
    );
  }

  get title(): string {
    return this.#now.api.title;
  }

  get version(): string {
    return this.#now.api.version;
  }

  get description(): string | undefined {
    return this.#now.api.description;
  }

  onChange(listener: ChangeListener): () => void {
    return this.#listeners.add(listener);
  }

  async refresh(): Promise<void> {
    const reading = this.#reading.then(() => this.#refresh());
    this.#reading = reading.catch(() => {});
    await reading;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#listeners.clear();
    await this.#parts.transport.close();
  }

  async #refresh(): Promise<void> {
    if (this.#closed) throw new TypeError("This source is closed.");
    const next = await this.#parts.read();
    if (this.#closed) return;
    const changes = changesBetween(this.#now, next);
    this.#now = next;
    this.#listeners.tell(changes);
  }
}

/** What stays is replaced: its schemas may be others now, and to compare them all would be to read them all. */
function changesBetween(before: ImportedApi, after: ImportedApi): readonly RegistryChange[] {
  const changes: RegistryChange[] = [];
  for (const [id, { operation }] of before.operations) {
    if (!after.operations.has(id)) changes.push({ type: "removed", operation });
  }
  for (const [id, { operation }] of after.operations) {
    changes.push({ type: before.operations.has(id) ? "replaced" : "added", operation });
  }
  return changes;
}
