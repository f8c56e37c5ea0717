import type { Identity } from "../../core/access/identity.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { Executor } from "../../core/registry/executor.ts";
import type { ResultFormat } from "../../core/result/result-format.ts";
import type { Era } from "../protocol/revisions.ts";
import { type DescribedTool, describeTool, type ToolTableOptions } from "./describe-tool.ts";
import type { ToolNaming } from "./mcp-server-options.ts";
import { assignToolNames, nameBesides, type ToolNames } from "./tool-name.ts";

/** What can run operations and, where it can, show all of them. */
export type ServedExecutor = Executor & { readonly operations?: Iterable<AnyOperation> };

interface Prepared {
  readonly tool: DescribedTool;
  json: string | undefined;
}

/** A page of tools as JSON text. */
interface PreparedPage {
  readonly operations: readonly AnyOperation[];
  readonly names: Names;
  readonly era: Era;
  readonly format: ResultFormat;
  readonly json: string;
}

/** Pages whose text is kept: those of ten thousand tools, in both eras. */
const KEPT_PAGES = 20;

interface Names extends ToolNames {
  readonly byName: ReadonlyMap<string, string>;
}

/** Which tool stands for which operation, and how each is described: worked out once, whoever asks. */
export class ToolTable {
  readonly #executor: ServedExecutor;
  readonly #naming: ToolNaming;
  readonly #options: ToolTableOptions;
  readonly #prepared = new WeakMap<AnyOperation, Map<ResultFormat, Partial<Record<Era, Prepared>>>>();
  readonly #stop: () => void;
  /** Latest first. */
  readonly #pages: PreparedPage[] = [];
  #names: Names | undefined;

  constructor(executor: ServedExecutor, naming: ToolNaming, options: ToolTableOptions = {}) {
    this.#executor = executor;
    this.#naming = naming;
    this.#options = options;
    this.#stop = executor.onChange(() => {
      this.#names = undefined;
    });
  }

  /** The name of the tool of an operation. */
  nameOf({ id }: AnyOperation): string {
    const names = this.#allNames();
    return names.byId.get(id) ?? nameBesides(id, names.taken, this.#naming);
  }

  /** The operation behind a tool; whether this caller may call it is for the call to find out. */
  find(name: string, identity: Identity | undefined): AnyOperation | undefined {
    const id = this.#allNames().byName.get(name);
    if (id !== undefined) return this.#executor.get(id);
    if (this.#executor.operations !== undefined) return undefined;
    // What an executor shows may differ by caller, so nobody else's list settles it.
    return this.#executor.list({ identity }).find((operation) => this.nameOf(operation) === name);
  }

  /** The tool of an operation, described for an era in a format. */
  toolOf(operation: AnyOperation, era: Era, format: ResultFormat): DescribedTool {
    return this.#prepare(operation, era, format).tool;
  }

  /** A list of tools as JSON text; that of pages asked for lately is kept whole. */
  jsonOf(operations: readonly AnyOperation[], era: Era, format: ResultFormat): string {
    const names = this.#allNames();
    const isWanted = (page: PreparedPage): boolean =>
      page.era === era &&
      page.format === format &&
      page.names === names &&
      isSame(page.operations, operations);
    const at = this.#pages.findIndex(isWanted);
    const [known] = at === -1 ? [] : this.#pages.splice(at, 1);
    const page = known ?? { operations, names, era, format, json: this.#join(operations, era, format) };
    this.#pages.unshift(page);
    this.#pages.length = Math.min(this.#pages.length, KEPT_PAGES);
    return page.json;
  }

  /** Stops following the executor. */
  close(): void {
    this.#stop();
  }

  #join(operations: readonly AnyOperation[], era: Era, format: ResultFormat): string {
    const texts = operations.map((operation) => {
      const prepared = this.#prepare(operation, era, format);
      prepared.json ??= JSON.stringify(prepared.tool);
      return prepared.json;
    });
    return `[${texts.join(",")}]`;
  }

  #prepare(operation: AnyOperation, era: Era, format: ResultFormat): Prepared {
    const byFormat = this.#prepared.get(operation) ?? new Map<ResultFormat, Partial<Record<Era, Prepared>>>();
    this.#prepared.set(operation, byFormat);
    const byEra = byFormat.get(format) ?? {};
    byFormat.set(format, byEra);
    const name = this.nameOf(operation);
    const known = byEra[era];
    // A name changes when an operation comes or goes whose name would be the same.
    if (known !== undefined && known.tool.name === name) return known;
    const tool = describeTool(operation, { name, era, format, ...this.#options });
    const prepared = { tool, json: undefined };
    byEra[era] = prepared;
    return prepared;
  }

  #allNames(): Names {
    if (this.#names !== undefined) return this.#names;
    const operations = this.#executor.operations ?? this.#executor.list();
    const ids: string[] = [];
    for (const { id, visibility } of operations) if (visibility !== "internal") ids.push(id);
    const names = assignToolNames(ids, this.#naming);
    const byName = new Map<string, string>();
    for (const [id, name] of names.byId) byName.set(name, id);
    this.#names = { ...names, byName };
    return this.#names;
  }
}

function isSame(a: readonly AnyOperation[], b: readonly AnyOperation[]): boolean {
  return a.length === b.length && a.every((operation, i) => operation === b[i]);
}
