import { isPlainObject } from "../../core/json/json-value.ts";
import { toOperation } from "../../core/operation/operation.ts";
import type { AnyOperation, OperationSpec } from "../../core/operation/operation-types.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { findDistrust } from "../config/file-trust.ts";
import { loadModule } from "../load-module.ts";

/** Something that holds operations, as `fromMcp` and `fromOpenApi` give it. */
interface ExportedSource {
  readonly operations: Iterable<unknown>;
  onChange?(listener: () => void): unknown;
  close?(): unknown;
}

/** What cannot be used of a module, and why. */
export interface UnusableExport {
  /** The name of the export. */
  readonly name: string;
  readonly reason: string;
}

/** A module of operations that was loaded. */
export class LocalModule {
  readonly file: string;
  readonly #exports: Readonly<Record<string, unknown>>;
  readonly #sources: ReadonlySet<ExportedSource>;
  /** Made once, so that the same operation stays the same. */
  readonly #made = new WeakMap<object, AnyOperation>();

  private constructor(file: string, exports: Readonly<Record<string, unknown>>) {
    this.file = file;
    this.#exports = exports;
    this.#sources = new Set(Object.values(exports).filter(isSource));
  }

  /** Rejects with what the module threw, or with why it must not run. */
  static async load(file: string): Promise<LocalModule> {
    const distrust = await findDistrust(file);
    if (distrust !== undefined) throw new Error(`It ${distrust}.`);
    return new LocalModule(file, await loadModule(file));
  }

  /** What it exports now: operations, lists of them, and what sources it exports hold. */
  read(): { readonly operations: readonly AnyOperation[]; readonly unusable: readonly UnusableExport[] } {
    const operations = new Set<AnyOperation>();
    const unusable: UnusableExport[] = [];
    for (const [name, value] of Object.entries(this.#exports)) {
      for (const spec of specsIn(value)) {
        try {
          operations.add(this.#toOperation(spec));
        } catch (thrown) {
          unusable.push({ name, reason: thrown instanceof Error ? thrown.message : String(thrown) });
        }
      }
    }
    return { operations: [...operations], unusable };
  }

  /** Hears that sources it exports hold other operations. */
  onChange(listener: () => void): void {
    for (const source of this.#sources) {
      if (typeof source.onChange === "function") source.onChange(() => listener());
    }
  }

  /** Calls the `close` it exports, or else those of the sources it exports. */
  async close(): Promise<void> {
    const { close } = this.#exports;
    if (typeof close === "function") return void (await close());
    for (const source of this.#sources) {
      if (typeof source.close === "function") await source.close();
    }
  }

  /** Refuses what no registry would take. */
  #toOperation(spec: OperationSpec): AnyOperation {
    const known = this.#made.get(spec);
    if (known !== undefined) return known;
    const operation = toOperation(spec);
    new OperationRegistry([operation], { codegen: false });
    this.#made.set(spec, operation);
    return operation;
  }
}

function isSource(value: unknown): value is ExportedSource {
  if (typeof value !== "object" || value === null || isSpec(value)) return false;
  const { operations } = value as { readonly operations?: unknown };
  return typeof operations === "object" && operations !== null && Symbol.iterator in operations;
}

function isSpec(value: unknown): value is OperationSpec {
  if (typeof value !== "object" || value === null) return false;
  const { namespace, name, handler } = value as Record<string, unknown>;
  return typeof namespace === "string" && typeof name === "string" && typeof handler === "function";
}

function specsIn(value: unknown): readonly OperationSpec[] {
  if (isSpec(value)) return [value];
  if (Array.isArray(value)) return value.filter(isSpec);
  if (isSource(value)) return [...value.operations].filter(isSpec);
  // CommonJS, whose exports are one object.
  return isPlainObject(value) && Object.values(value).some(isSpec) ? Object.values(value).filter(isSpec) : [];
}
