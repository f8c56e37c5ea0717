import { relative } from "node:path";
import { Listeners } from "../../core/collections/listeners.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { toOperation } from "../../core/operation/operation.ts";
import type { AnyOperation, OperationSpec } from "../../core/operation/operation-types.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { findDistrust } from "../config/config-files.ts";
import { createPathMatcher, findFiles } from "../glob.ts";
import { loadModule } from "../load-module.ts";
import { RetriedSource } from "./retried-source.ts";
import {
  type Backing,
  type BackingFacts,
  type BackingWatcher,
  NO_FILE_NOTE,
  type Source,
  type SourceContext,
  SourceFault,
  unlessAborted,
} from "./source.ts";

/** Milliseconds that calls of modules have to end once others have taken their place. */
const DRAIN_MS = 30_000;

/** Makes a source of the operations of this process, and of modules by patterns; `retry()` loads the modules anew. */
export function createLocalSource(name: string, patterns: readonly string[], around: SourceContext): Source {
  const { loaded, reconnect } = around;
  const { localOperations = [] } = loaded;
  const target = patterns.length === 0 ? "this process" : patterns.join(", ");
  const warn = around.warnerOf(name);
  return new RetriedSource({
    name,
    kind: "local",
    target: around.shown(target),
    secrets: loaded.secrets,
    reconnect,
    warn,
    open: async (signal, watcher) => {
      const backing = new LocalBacking({ patterns, operations: localOperations, around, watcher, warn });
      await unlessAborted(backing.refresh(), signal, () => backing.close());
      const [failed, ...more] = backing.operations.length > 0 ? [] : backing.facts().unusable;
      if (failed === undefined) return backing;
      await backing.close();
      const others = more.length === 0 ? "" : ` ${more.length} more cannot be used either.`;
      throw new SourceFault(`${failed.name}: ${failed.reason}${others}`);
    },
  });
}

interface LocalPlan {
  readonly patterns: readonly string[];
  /** Those that come from no module. */
  readonly operations: readonly AnyOperation[];
  readonly around: SourceContext;
  readonly watcher: BackingWatcher;
  warn(message: string, cause?: unknown): void;
}

type Unusable = BackingFacts["unusable"][number];

/** What modules hold together. */
interface FoundOperations {
  /** By id; `file` is that of the module, where it is of one. */
  readonly found: Map<string, { readonly operation: AnyOperation; readonly file: string | undefined }>;
  readonly unusable: Unusable[];
}

/** Modules that were loaded, as far as they could be. */
class LocalBacking implements Backing {
  readonly #plan: LocalPlan;
  readonly #listeners = new Listeners();
  /** Those whose place was taken, until their calls have ended. */
  readonly #retired = new Set<readonly LocalModule[]>();
  #modules: readonly LocalModule[] = [];
  #failed: readonly Unusable[] = [];
  /** Patterns that find no file. */
  #empty: readonly string[] = [];
  #facts: BackingFacts = { unusable: [], notes: [] };
  #operations: readonly AnyOperation[] = [];
  #turn: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(plan: LocalPlan) {
    this.#plan = plan;
  }

  get operations(): readonly AnyOperation[] {
    return this.#operations;
  }

  facts(): BackingFacts {
    return this.#facts;
  }

  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** Loads everything anew, one time after the other. */
  refresh(): Promise<void> {
    const turn = this.#turn.then(() => this.#load());
    this.#turn = turn.catch(() => {});
    return turn;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#turn;
    for (const modules of [...this.#retired, this.#modules]) await this.#end(modules);
    this.#retired.clear();
  }

  async #load(): Promise<void> {
    const { patterns, around, watcher } = this.#plan;
    const files = await findFiles(patterns, around.loaded.baseDir);
    const modules: LocalModule[] = [];
    const failed: Unusable[] = [];
    // One after the other: what they do while they are loaded happens in the order of their names.
    for (const file of files) {
      try {
        modules.push(await LocalModule.load(file));
      } catch (thrown) {
        // An edit that is not finished takes nothing away.
        const old = this.#modules.find((module) => module.file === file);
        if (old !== undefined) modules.push(old);
        const said = `It cannot be loaded${old === undefined ? "" : ", the old one stays"}. ${describeThrown(thrown)}`;
        failed.push(this.#describe(file, said));
        this.#plan.warn(`${this.#nameOf(file)}: ${said}`);
      }
    }
    const before = this.#modules.filter((module) => !modules.includes(module));
    const fresh = modules.filter((module) => !this.#modules.includes(module));
    this.#modules = modules;
    this.#failed = failed;
    this.#empty = patterns.filter((pattern) => findsNone(pattern, files, around.loaded.baseDir));
    for (const module of fresh) module.onChange(() => this.#modules.includes(module) && this.#read());
    this.#read();
    this.#retired.add(before);
    void watcher.idle(DRAIN_MS).then(async () => {
      if (this.#retired.delete(before)) await this.#end(before);
    });
  }

  /** Looks at what the modules hold now. */
  #read(): void {
    if (this.#isClosed) return;
    const { operations, around } = this.#plan;
    const unusable = [...this.#failed];
    const notes: { name: string; note: string }[] = [];
    const found: FoundOperations["found"] = new Map();
    for (const operation of operations) found.set(operation.id, { operation, file: undefined });
    for (const module of this.#modules) {
      const read = module.read();
      for (const { name, reason } of read.unusable) {
        unusable.push(this.#describe(module.file, `The export "${name}" cannot be used. ${reason}`));
      }
      if (read.operations.length === 0 && read.unusable.length === 0) {
        notes.push({ name: this.#nameOf(module.file), note: "It exports no operation." });
      }
      this.#take(module, read.operations, { found, unusable });
    }
    for (const pattern of this.#empty) notes.push({ name: around.shown(pattern), note: NO_FILE_NOTE });
    this.#operations = Array.from(found.values(), ({ operation }) => operation).sort((a, b) =>
      a.id < b.id ? -1 : 1,
    );
    this.#facts = { unusable, notes };
    this.#listeners.tell();
  }

  /** The first to have an id keeps it. */
  #take(
    module: LocalModule,
    operations: readonly AnyOperation[],
    { found, unusable }: FoundOperations,
  ): void {
    for (const operation of operations) {
      const other = found.get(operation.id);
      if (other === undefined) found.set(operation.id, { operation, file: module.file });
      else {
        const where = other.file === undefined ? "this process" : this.#nameOf(other.file);
        unusable.push(this.#describe(module.file, `The operation "${operation.id}" is in ${where} already.`));
      }
    }
  }

  async #end(modules: readonly LocalModule[]): Promise<void> {
    for (const module of modules) {
      try {
        await module.close();
      } catch (cause) {
        this.#plan.warn(`The close of ${this.#nameOf(module.file)} failed.`, cause);
      }
    }
  }

  #describe(file: string, reason: string): Unusable {
    return { name: this.#nameOf(file), reason: this.#plan.around.shown(reason) };
  }

  #nameOf(file: string): string {
    const { shown, loaded } = this.#plan.around;
    return shown(relative(loaded.baseDir, file));
  }
}

/** Whether a pattern has no part in what was found; one that excludes needs none. */
function findsNone(pattern: string, files: readonly string[], baseDir: string): boolean {
  if (pattern.startsWith("!")) return false;
  const { matches } = createPathMatcher([pattern], baseDir);
  return !files.some((file) => matches(file));
}

/** Syntax errors of Node say where in the first line of their stack only. */
function describeThrown(thrown: unknown): string {
  if (!(thrown instanceof Error)) return `It threw ${typeof thrown === "string" ? thrown : typeof thrown}.`;
  const line =
    thrown instanceof SyntaxError ? /^[^\n]*?:(\d+)(?::\d+)?\n/.exec(thrown.stack ?? "")?.[1] : undefined;
  return line === undefined ? thrown.message : `Line ${line}: ${thrown.message}`;
}

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
class LocalModule {
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
