import type { Identity } from "../../../core/access/identity.ts";
import { Linked, LinkedSet } from "../../../core/collections/linked-set.ts";
import { CallError } from "../../../core/errors/errors.ts";
import { isPlainObject, isSameList } from "../../../core/json/json-value.ts";
import type { AnyOperation } from "../../../core/operation/operation-types.ts";
import { checkOptionsObject, describeValue } from "../../../core/options/check-options.ts";
import type { Executor } from "../../../core/registry/executor.ts";
import type { ResultFormat } from "../../../core/result/result-reader.ts";
import { OperationSearch } from "../../../core/search/operation-search.ts";
import type { Tasks } from "../../../core/tasks/tasks.ts";
import { DIGEST_LENGTH, nameDigest } from "../../names.ts";
import { invalidParams, quoted } from "../../protocol/messages.ts";
import { type Era, META_KEYS } from "../../protocol/revisions.ts";
import type { McpProviderOptions } from "../../provider.ts";
import type { McpServerLimits, McpServerOptions, ToolNaming } from "../mcp-server-options.ts";
import type { PeerRequest } from "../peer-request.ts";
import { plainFormat } from "../results/plain-format.ts";
import type { GivenResults, StoredResults } from "../results/stored-results.ts";
import type { TaskSupport } from "../tasks/task-calls.ts";
import { type DescribedTool, describeTool, type ToolTableOptions } from "./describe-tool.ts";

/** The key of a request's `_meta` under which a client names the format it wants. */
export const FORMAT_META_KEY = "dev.waybill/format";

/** Bounds with their defaults filled in. */
type ServerLimits = { readonly [K in keyof McpServerLimits]-?: number };

const DEFAULT_LIMITS: ServerLimits = {
  pageSize: 1_000,
  inlineCharacters: 200_000,
  streamItems: 1_000,
  waitingCalls: 1_000,
  waitingMs: 600_000,
};

/** The longest a timer can wait. */
const MAX_MS = 2 ** 31 - 1;

/** What all peers of one server share of its tools. */
export interface ServedTools {
  readonly executor: ServedExecutor;
  readonly table: ToolTable;
  /** What finds operations for the catalogue. */
  readonly search: OperationSearch;
  readonly limits: ServerLimits;
  readonly running: RunningCalls;
  readonly stored: StoredResults | undefined;
  /** What keeps calls that are tasks; nothing where none can be. */
  readonly tasks: Tasks | undefined;
  /** Whether calls of an operation may be tasks. */
  taskSupportOf(operationId: string): TaskSupport;
  /** Whether a call is worth a look, as far as can be told at a glance. */
  mayBeTask(request: PeerRequest, params: Readonly<Record<string, unknown>>): boolean;
  /** Who was given which results that imported servers keep. */
  readonly given: GivenResults;
  /** The blocks of an imported tool's result, with links that lead back to its server. */
  ownLinks<T>(namespace: string, content: readonly T[], options: McpProviderOptions): Promise<readonly T[]>;
  /** The `_meta` of such a result, with addresses of user interfaces that lead back to its server. */
  ownMeta<T>(namespace: string, meta: T): T;
  /** The format a request asks for, or the usual one of its client; throws -32602 for one nobody offers. */
  formatFor(request: PeerRequest): ResultFormat;
  /** How many characters of a result of this operation are sent whole. */
  inlineCharactersOf(operationId: string): number;
  /** Why there is no tool of that name, where that is known. */
  explainMissing(toolName: string, identity: Identity | undefined): CallError | undefined;
  /** Hears what a handler threw, which clients are told nothing about. */
  onUnexpected(message: string, cause?: unknown): void;
}

interface ServedParts
  extends Pick<ServedTools, "stored" | "given" | "ownLinks" | "ownMeta" | "onUnexpected">,
    ToolTableOptions {}

/** Prepares the tools of an executor. */
export function serveTools(
  executor: ServedExecutor,
  options: McpServerOptions,
  { warn, isProvided, ...parts }: ServedParts,
): ServedTools {
  const { format: usual = plainFormat, formats = [], formatOf } = options;
  const limits = readServerLimits(options.limits);
  const { tasks } = options;
  const taskSupportOf = (id: string): TaskSupport =>
    tasks === undefined ? "forbidden" : (options.taskSupportOf?.(id) ?? "optional");
  const namedFormats = nameFormats(usual, typeof formats === "function" ? formats : () => formats);
  return {
    executor,
    table: new ToolTable(executor, options.names ?? {}, { warn, isProvided, taskSupportOf }),
    search: new OperationSearch(),
    limits,
    running: new RunningCalls(),
    ...parts,
    tasks,
    taskSupportOf,
    mayBeTask({ peer, meta }, params) {
      if (tasks === undefined) return false;
      if (options.taskSupportOf !== undefined) return true;
      if (peer.era === "legacy") return params["task"] !== undefined;
      const declared = meta?.[META_KEYS.clientCapabilities];
      return isPlainObject(declared) && declared["extensions"] !== undefined;
    },
    inlineCharactersOf: (id) => options.inlineCharactersOf?.(id) ?? limits.inlineCharacters,
    explainMissing: (name, identity) => options.explainMissing?.(name, identity),
    formatFor(request) {
      const byName = namedFormats();
      const wanted: unknown = request.meta?.[FORMAT_META_KEY];
      if (wanted === undefined) return byName.get(formatOf?.(request.client) ?? usual.name) ?? usual;
      const format = typeof wanted === "string" ? byName.get(wanted) : undefined;
      if (format !== undefined) return format;
      const known = [...byName.keys()].join(", ");
      const none =
        typeof wanted === "string" ? `There is no format ${quoted(wanted)}` : "A format has a name";
      throw invalidParams(`${none}; ask for one of these in _meta["${FORMAT_META_KEY}"]: ${known}.`);
    },
  };
}

/** The formats there are by name, put together again only when there are others. */
function nameFormats(
  usual: ResultFormat,
  read: () => readonly ResultFormat[],
): () => ReadonlyMap<string, ResultFormat> {
  let known: readonly ResultFormat[] | undefined;
  let byName: ReadonlyMap<string, ResultFormat> = new Map();
  return () => {
    const formats = read();
    if (formats !== known) {
      known = formats;
      byName = new Map([...formats, usual].map((format) => [format.name, format]));
    }
    return byName;
  };
}

/** Fills in defaults; throws a `TypeError` for a bound that is none. */
export function readServerLimits(given: McpServerLimits = {}): ServerLimits {
  checkOptionsObject(given, Object.keys(DEFAULT_LIMITS), "limits.");
  const limits: Record<string, number> = { ...DEFAULT_LIMITS };
  for (const name of Object.keys(DEFAULT_LIMITS) as (keyof McpServerLimits)[]) {
    const value = given[name];
    if (value === undefined) continue;
    const least = name === "pageSize" ? 1 : 0;
    if (!Number.isSafeInteger(value) || value < least || (name === "waitingMs" && value > MAX_MS)) {
      throw new TypeError(`limits.${name} must be an integer from ${least}, and is ${showBound(value)}.`);
    }
    limits[name] = value;
  }
  return limits as ServerLimits;
}

/** Shows what was given for a bound, texts in quotes. */
export function showBound(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value.slice(0, 80)) : describeValue(value);
}

/** A call under way. */
class RunningCall extends Linked {
  readonly giveUp: (reason: CallError) => void;

  constructor(giveUp: (reason: CallError) => void) {
    super();
    this.giveUp = giveUp;
  }
}

/** Calls under way that can be given up together: each is answered, whatever becomes of its handler. */
class RunningCalls {
  readonly #calls = new LinkedSet<RunningCall>();

  /** What a call comes to, or a rejection with `UNAVAILABLE` where it is given up before. */
  orGivenUp<T>(call: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const running = new RunningCall(reject);
      this.#calls.add(running);
      call.then(
        (ended) => {
          this.#calls.delete(running);
          resolve(ended);
        },
        (thrown) => {
          this.#calls.delete(running);
          reject(thrown);
        },
      );
    });
  }

  /** Gives up all of them. */
  giveUp(): void {
    const reason = new CallError(
      "UNAVAILABLE",
      "The server closed before the call was done; try again later.",
      { stack: false },
    );
    for (const { giveUp } of this.#calls.toArray()) giveUp(reason);
  }
}

/** What can run operations and, where it can, show all of them. */
export type ServedExecutor = Executor & { readonly operations?: Iterable<AnyOperation> };

interface Prepared {
  readonly tool: DescribedTool;
  json: string | undefined;
}

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

/** Which tool stands for which operation, and how each is described: worked out once for all callers. */
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
      isSameList(page.operations, operations);
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

/** The longest name of a tool that common hosts take. */
export const MAX_TOOL_NAME = 64;

interface ToolNames {
  readonly byId: ReadonlyMap<string, string>;
  /** The names in use, and those that nobody has because several ids would have them. */
  readonly taken: ReadonlySet<string>;
}

/**
 * Names the tools of a set of operations. A name is the operation's id with `_` for what a tool's name may not hold, without the namespace
 * if `prefix` is false. An id whose name would be too long, or would be another's too, has a longer form of it or one with a digest.
 *
 * A name that two ids would have is given to neither, so names depend on the set alone, not on its order, and an id that joins the set
 * never gets a name that another one had.
 */
export function assignToolNames(ids: Iterable<string>, naming: ToolNaming = {}): ToolNames {
  const claims = new Map<string, string | typeof SHARED>();
  const forms = new Map<string, Iterator<string>>();
  const byId = new Map<string, string>();
  const waiting = [...ids];
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
    const form = forms.get(id) ?? nameForms(id, naming);
    forms.set(id, form);
    const name: string = form.next().value;
    const claimed = claims.get(name);
    if (claimed === undefined) {
      claims.set(name, id);
      byId.set(id, name);
      continue;
    }
    claims.set(name, SHARED);
    waiting.push(id);
    if (claimed !== SHARED) waiting.push(claimed);
  }
  return { byId, taken: new Set(claims.keys()) };
}

/** Marks a name that several ids would have. */
const SHARED = Symbol("shared");

/**
 * Names the tool of an operation that is not in the set, because only some callers may see it. Its plain name is used only if no other id
 * can have the same one, and if it is free in the set.
 */
export function nameBesides(id: string, taken: ReadonlySet<string>, naming: ToolNaming = {}): string {
  const plain = prefixedName(id, naming);
  const [namespace = "", name = ""] = [id.slice(0, id.indexOf(".")), id.slice(id.indexOf(".") + 1)];
  // Read back, it splits at its first separator.
  const isOnlyOne =
    (naming.dots === true || !namespace.includes("_")) && plain.endsWith(name) && !HAS_DIGEST.test(name);
  if (isOnlyOne && plain.length <= MAX_TOOL_NAME && !taken.has(plain)) return plain;
  const forms = digestForms(plain, id);
  let form = forms.next().value;
  while (taken.has(form)) form = forms.next().value;
  return form;
}

const HAS_DIGEST = /__[a-z2-7]{13}$/;

/** The names that an id may have, the plainest first, without end. */
function* nameForms(id: string, naming: ToolNaming): Generator<string, never> {
  const prefixed = prefixedName(id, naming);
  const bare = naming.prefix === false ? legalName(id.slice(id.indexOf(".") + 1), naming) : prefixed;
  if (bare.length > MAX_TOOL_NAME) return yield* digestForms(bare, id);
  yield bare;
  if (bare !== prefixed && prefixed.length <= MAX_TOOL_NAME) yield prefixed;
  return yield* digestForms(prefixed, id);
}

/** A name cut to leave room for `__` and 65 bits of a hash of the id; other hashes follow for an id that imitates another's. */
function* digestForms(name: string, id: string): Generator<string, never> {
  const readable = name.slice(0, MAX_TOOL_NAME - DIGEST_LENGTH - 2);
  for (let text = id; ; text += "\n") yield `${readable}__${nameDigest(text)}`;
}

function prefixedName(id: string, naming: ToolNaming): string {
  return legalName(naming.dots === true ? id : id.replace(".", "_"), naming);
}

function legalName(name: string, { dots = false }: ToolNaming): string {
  return name.replace(dots ? /[^A-Za-z0-9_.-]/g : /[^A-Za-z0-9_-]/g, "_");
}
