import { setImmediate } from "node:timers/promises";
import type { ResponseEnvelope } from "../../core/envelope/envelope.ts";
import { CallError, isCallError } from "../../core/errors/errors.ts";
import { monotonicNow } from "../../core/execution/cancellation.ts";
import { isPlainObject, isSameList } from "../../core/json/json-value.ts";
import type { Metadata, OperationContext } from "../../core/operation/operation-context.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { RegistryChange } from "../../core/registry/executor.ts";
import {
  callTool,
  requestOptionsOf,
  streamOptionsOf,
  type ToolCall,
  ToolStream,
  withStoredBytes,
  withWhole,
} from "./call-tool.ts";
import type { Oddities } from "./from-mcp.ts";
import type { ImportLimits, ImportOptions } from "./import-options.ts";
import { type ImportedTool, importTool, type ToolImport, type ToolPlan } from "./import-tool.ts";
import { listPages, type OversizedEntry } from "./list-pages.ts";
import type { ToolPin } from "./lock/tool-pin.ts";
import type { McpLink, McpRequestOptions } from "./mcp-connection.ts";
import { toPlainLine } from "./plain-line.ts";
import { readToolResult } from "./read-tool-result.ts";
import {
  callAsTask,
  canCallAsTask,
  followTask,
  resumeTask,
  type TaskFollowing,
  TaskNews,
} from "./task-call.ts";

/** What a call of a tool by its exact name may be told. */
export interface McpCallOptions
  extends Pick<McpRequestOptions, "signal" | "timeoutMs" | "onProgress" | "caller"> {
  /** `traceparent`, `tracestate` and `baggage` go on to the server. */
  readonly metadata?: Metadata | undefined;
}

export interface ToolSetOptions {
  readonly connection: McpLink;
  readonly options: ImportOptions & { readonly timeoutMs?: number | undefined };
  readonly limits: ImportLimits;
  readonly pin: ToolPin | undefined;
  /** Counts results of no known shape, and tells of each kind once. */
  readonly oddities: Oddities;
  /** Never throws. */
  warn(message: string, cause?: unknown): void;
}

const NOTHING: ImportedTools = {
  tools: new Map(),
  unapproved: new Map(),
  filtered: new Set(),
  unusable: [],
  notes: [],
};

/** The tools of one server as operations, as they were last listed. */
export class ToolSet {
  readonly #given: ToolSetOptions;
  readonly #onDefinitionChange: NonNullable<ImportOptions["onDefinitionChange"]>;
  readonly #warned = new Set<string>();
  readonly #stopping = new AbortController();
  #now = NOTHING;

  constructor(given: ToolSetOptions) {
    this.#given = given;
    this.#onDefinitionChange = guardCallback("onDefinitionChange", (change) =>
      given.options.onDefinitionChange?.(change),
    );
  }

  get now(): ImportedTools {
    return this.#now;
  }

  /** Tools as listed last that the pin refuses. */
  get refused(): readonly ImportedTool[] {
    return refusedOf(this.#now);
  }

  /**
   * Lists the tools again and says what has changed, with no changes where that is only which tools the pin refuses, and nothing where
   * all is as before; an operation whose tool is the same stays the same.
   */
  async refresh(): Promise<readonly RegistryChange[] | undefined> {
    const oversized: OversizedEntry[] = [];
    const listed = await this.#list((entry) => oversized.push(entry));
    const { connection, options, limits, pin } = this.#given;
    const before = this.#now;
    const imported = await importTools(listed, {
      options,
      limits,
      pin,
      version: connection.server.serverInfo?.["version"],
      mirrorsParams: "url" in options && connection.server.protocolVersion >= "2026",
      known: new Map([...before.tools, ...before.unapproved]),
      signal: this.#stopping.signal,
      secrets: connection.secrets,
      handlerFor: (plan) => this.#handlerFor(plan),
    });
    const tooLarge = oversized.map(({ name, reason }) => ({ tool: name || "without a name", reason }));
    this.#now = { ...imported, unusable: [...imported.unusable, ...tooLarge] };
    this.#report(this.#now);
    const changes = changesBetween(before.tools, imported.tools);
    return changes.length > 0 || !isSameList(refusedOf(before), this.refused) ? changes : undefined;
  }

  /** Imports no more: what is being imported is left, and nothing is listed again. */
  stop(): void {
    this.#stopping.abort(
      new CallError("ABORTED", "The source was closed while its tools were imported.", { stack: false }),
    );
  }

  /** Calls a tool by its exact name, listed or not, and reads its answer; nothing is checked against schemas. */
  async call(tool: string, input: unknown, options: McpCallOptions = {}): Promise<ResponseEnvelope> {
    const { filtered, tools, unapproved } = this.#now;
    const plan = (tools.get(tool) ?? unapproved.get(tool))?.plan;
    if (filtered.has(tool) || (plan === undefined && this.#given.pin !== undefined)) throw noTool(tool);
    const { metadata, ...request } = options;
    const deadline = options.timeoutMs === undefined ? undefined : monotonicNow() + options.timeoutMs;
    const { reader, recoverJson, timeoutMs } = this.#given.options;
    return await this.#run(
      plan ?? { name: tool, reading: { tool, reader, recoverJson, secrets: this.#given.connection.secrets } },
      { input, metadata, deadline },
      { timeoutMs, ...request },
    );
  }

  async #list(onOversized: (entry: OversizedEntry) => void): Promise<readonly unknown[]> {
    const { connection, limits, options, warn } = this.#given;
    const request = { timeoutMs: options.timeoutMs };
    try {
      const question = { method: "tools/list", field: "tools", limits, request, warn, onOversized };
      return connection.secrets.maskResult(await listPages(connection, question));
    } catch (thrown) {
      // A server without tools need not know the question.
      const isWithout = connection.server.capabilities["tools"] === undefined;
      if (isWithout && isCallError(thrown) && thrown.code === "OPERATION_NOT_FOUND") return [];
      throw thrown;
    }
  }

  #handlerFor(plan: ToolPlan): AnyOperation["handler"] {
    if (plan.streams) return (input, context) => this.#stream(plan, input, context);
    const { timeoutMs } = this.#given.options;
    return (input, context) =>
      this.#run(plan, toCall(plan, input, context), requestOptionsOf(context, timeoutMs));
  }

  #stream(plan: ToolPlan, input: unknown, context: OperationContext): ToolStream {
    const options = streamOptionsOf(context);
    return new ToolStream({
      limit: this.#given.limits.waitingValues,
      signal: options.signal,
      mask: (envelope) => this.#given.connection.secrets.maskEnvelope(envelope),
      run: (onProgress, signal) =>
        this.#run(plan, toCall(plan, input, context), { ...options, onProgress, signal }),
    });
  }

  async #run(
    plan: Pick<ToolPlan, "name" | "reading"> & Partial<ToolPlan>,
    call: ToolAsk,
    options: McpRequestOptions,
  ): Promise<ResponseEnvelope> {
    const { name, inputSchema, wrapsInput, reading, definition } = plan;
    if (definition !== undefined) this.#given.pin?.assertApproved(definition);
    const { input, requestId } = call;
    const { propagate } = this.#given.options;
    const metadata = propagate === undefined ? call.metadata : propagate(call.metadata ?? {});
    const request = { tool: name, input, metadata, requestId, wrapsInput };
    const { connection, warn } = this.#given;
    const until = options.timeoutMs === undefined ? undefined : monotonicNow() + options.timeoutMs;
    const { secrets } = connection;
    const onProgress = plan.streams ? options.onProgress : this.#maskedProgress(options.onProgress);
    const sent = { ...options, inputSchema, onProgress };
    const relayed = options.caller?.task;
    const resumed =
      relayed?.handle === undefined
        ? undefined
        : await resumeTask(connection, this.#following(name, call, sent));
    const given =
      resumed ??
      (this.#isTask(plan.taskSupport, relayed !== undefined && relayed.isPossible !== true)
        ? await callAsTask(connection, request, this.#following(name, call, sent))
        : await callTool(connection, request, sent));
    const result =
      isPlainObject(given) && given["resultType"] === "task"
        ? await followTask(connection, given, this.#following(name, call, sent))
        : given;
    try {
      if (!reading.isServed || plan.streams)
        return this.#noted(name, secrets.maskEnvelope(readToolResult(result, reading)));
      const timeoutMs = until === undefined ? undefined : Math.max(0, until - monotonicNow());
      const fetching = {
        tool: name,
        request: { signal: options.signal, timeoutMs, call: options.call },
        warn,
      };
      const held = await withStoredBytes(connection, result, fetching);
      const { result: read, whole } = await withWhole(connection, held, fetching);
      return this.#noted(name, secrets.maskEnvelope(readToolResult(read, reading, whole)));
    } catch (thrown) {
      throw secrets.maskError(thrown);
    }
  }

  /** A call that is a task itself is one at the server too where it may be: another process can then go on with it. */
  #isTask(support: ToolPlan["taskSupport"], isRelayed: boolean): boolean {
    if (support === undefined) return false;
    const { connection, options } = this.#given;
    const isWanted = support === "required" || isRelayed || options.tasks === "optional";
    return isWanted && canCallAsTask(connection.server);
  }

  #following(tool: string, { deadline }: ToolAsk, request: McpRequestOptions): TaskFollowing {
    const watch = new TaskNews(this.#given.connection, request.onProgress);
    return { tool, deadline, request, watch, relayed: request.caller?.task };
  }

  #maskedProgress(onProgress: McpRequestOptions["onProgress"]): McpRequestOptions["onProgress"] {
    if (onProgress === undefined) return undefined;
    const { secrets } = this.#given.connection;
    return (progress) => onProgress(secrets.maskResult(progress));
  }

  /** Tells of a result that is not as MCP has it; it is read all the same. */
  #noted(name: string, envelope: ResponseEnvelope): ResponseEnvelope {
    const { unknown, obtained } = envelope.meta.waybill ?? {};
    if (unknown === undefined && obtained !== "members") return envelope;
    const { oddities } = this.#given;
    const tool = `The tool ${JSON.stringify(name.slice(0, 200))}`;
    const { isError, ...members } = unknown ?? {};
    if (obtained === "members") oddities.add(`${tool} answers without content, its members are the data`);
    if (isError !== undefined) {
      const meaning = isError === null ? "none at all" : "an error";
      oddities.add(`${tool} answers with an isError that is no boolean, which is read as ${meaning}`);
    }
    const names = Object.keys(members).slice(0, 10);
    if (names.length > 0)
      oddities.add(
        `${tool} answers with members that MCP does not define: ${names.map((each) => JSON.stringify(each.slice(0, 80))).join(", ")}`,
      );
    return envelope;
  }

  /** Says once what is wrong with a tool, however often it is listed; of many, with the first ones. */
  #report({ unusable, notes }: ImportedTools): void {
    const { warn } = this.#given;
    const fresh = [
      ...unusable.map(({ tool, reason }) => `The tool "${tool}" cannot be used. ${reason}`),
      ...notes.map(({ tool, note }) => `The tool "${tool}" is not taken over whole. ${note}`),
    ].filter((message) => this.#isNew(message));
    warnOfFirst(fresh, (message) => warn(message));
    for (const { change } of this.refused) if (change !== undefined) this.#onDefinitionChange(change);
  }

  #isNew(message: string): boolean {
    if (this.#warned.has(message) || this.#warned.size >= this.#given.limits.tools) return false;
    this.#warned.add(message);
    return true;
  }
}

/** One call of a tool, and when its caller stops waiting, on the monotonic clock. */
interface ToolAsk extends Pick<ToolCall, "input" | "metadata" | "requestId"> {
  readonly deadline: number | undefined;
}

/** What one call of a tool sends; a server of Waybill is told the request id as well. */
function toCall({ reading }: ToolPlan, input: unknown, context: OperationContext): ToolAsk {
  const { metadata, deadline } = context;
  const requestId = reading.isServed ? context.requestId : undefined;
  return { input, metadata, requestId, deadline };
}

function noTool(tool: string): CallError {
  const message = `There is no tool ${JSON.stringify(tool.slice(0, 200))} among those imported.`;
  return new CallError("OPERATION_NOT_FOUND", message, { details: { tool } });
}

function refusedOf({ tools, unapproved }: ImportedTools): readonly ImportedTool[] {
  return [...tools.values(), ...unapproved.values()].filter(({ change }) => change !== undefined);
}

type Tools = ReadonlyMap<string, ImportedTool>;

/** By id, because a tool may take the place of another. */
function changesBetween(before: Tools, after: Tools): RegistryChange[] {
  const old = byId(before);
  const current = byId(after);
  const changes: RegistryChange[] = [];
  for (const [id, operation] of old) if (!current.has(id)) changes.push({ type: "removed", operation });
  for (const [id, operation] of current) {
    const known = old.get(id);
    if (known !== operation) changes.push({ type: known === undefined ? "added" : "replaced", operation });
  }
  return changes;
}

function byId(tools: Tools): Map<string, AnyOperation> {
  return new Map(Array.from(tools.values(), ({ operation }) => [operation.id, operation]));
}

/** A tool that cannot be called as an operation, and why. */
export interface UnusableTool {
  /** Its name for people; its place in the list where it has none. */
  readonly tool: string;
  readonly reason: string;
}

/** What was taken over less than whole of a tool that works, or hides in something else that a server offers. */
export interface ToolNote {
  /** The tool's name for people; `prompt …`, `resource …`, `resource template …` or `instructions` for what is no tool. */
  readonly tool: string;
  readonly note: string;
}

interface ImportedTools {
  /** By exact name; one that changed since it was approved is there as it was approved. */
  readonly tools: ReadonlyMap<string, ImportedTool>;
  /** Those that a pin never approved: no operations, and for approvers of tools alone. */
  readonly unapproved: ReadonlyMap<string, ImportedTool>;
  /** Names that the filter left out. */
  readonly filtered: ReadonlySet<string>;
  readonly unusable: readonly UnusableTool[];
  readonly notes: readonly ToolNote[];
}

/** Milliseconds that tools are imported in a row while others wait. */
const SLICE_MS = 10;

/** Imports each tool by itself: what is wrong with one never hides another. Thousands are imported bit by bit, until the signal. */
export async function importTools(listed: readonly unknown[], importing: ToolImport): Promise<ImportedTools> {
  const list = new ToolList(importing);
  let until = monotonicNow() + SLICE_MS;
  for (const [place, entry] of listed.entries()) {
    if (monotonicNow() >= until) {
      await setImmediate();
      until = monotonicNow() + SLICE_MS;
    }
    importing.signal?.throwIfAborted();
    list.add(entry, place);
  }
  return list;
}

/** Tools as they are imported one after the other. */
class ToolList implements ImportedTools {
  readonly tools = new Map<string, ImportedTool>();
  readonly unapproved = new Map<string, ImportedTool>();
  readonly filtered = new Set<string>();
  readonly unusable: UnusableTool[] = [];
  readonly notes: ToolNote[] = [];
  readonly #importing: ToolImport;
  readonly #ids = new Set<string>();
  #objects = 0;

  constructor(importing: ToolImport) {
    this.#importing = importing;
  }

  add(entry: unknown, place: number): void {
    const tool = nameForPeople(entry, place);
    try {
      this.#makeRoom(entry);
      const imported = importTool(entry, this.#importing);
      const { name, operation, change } = imported;
      if (this.tools.has(name) || this.unapproved.has(name) || this.filtered.has(name))
        throw new TypeError("Another tool before it has the same name.");
      const isApproved = change?.kind !== "new";
      if (isApproved && this.#ids.has(operation.id))
        throw new TypeError(`Another tool before it is operation "${operation.id}" already.`);
      if (this.#importing.options.filter?.(name, operation) === false) {
        this.filtered.add(name);
        return;
      }
      if (isApproved) this.#ids.add(operation.id);
      (isApproved ? this.tools : this.unapproved).set(name, imported);
      for (const note of imported.notes) this.notes.push({ tool, note });
    } catch (cause) {
      this.unusable.push({ tool, reason: cause instanceof Error ? cause.message : String(cause) });
    }
  }

  /** Every object of a definition may be a schema, and each takes its time; tools that still fit are taken all the same. */
  #makeRoom(entry: unknown): void {
    const { listObjects } = this.#importing.limits;
    const objects = countObjects(entry, listObjects - this.#objects);
    if (this.#objects + objects > listObjects) {
      throw new TypeError(
        `With it, the definitions of all tools would hold more than ${listObjects} objects and lists.`,
      );
    }
    this.#objects += objects;
  }
}

/** Counts the objects and lists of a definition, itself included; stops beyond `most`. */
function countObjects(entry: unknown, most: number): number {
  const left: unknown[] = [entry];
  let count = 0;
  while (left.length > 0 && count <= most) {
    const next = left.pop();
    if (typeof next !== "object" || next === null) continue;
    count += 1;
    for (const member of Object.values(next)) if (typeof member === "object") left.push(member);
  }
  return count;
}

function nameForPeople(tool: unknown, place: number): string {
  const name = isPlainObject(tool) ? tool["name"] : undefined;
  return typeof name === "string" && name !== "" ? toPlainLine(name, 200) : `#${place + 1}`;
}

/** Makes a function of the application safe to call: what it throws is told on the console, the first time. */
export function guardCallback<Args extends readonly unknown[]>(
  name: string,
  callback: (...args: Args) => void,
): (...args: Args) => void {
  let warned = false;
  const warn = (thrown: unknown): void => {
    if (warned) return;
    warned = true;
    const said = toPlainLine(thrown instanceof Error ? thrown.message : undefined, 300);
    console.warn(`[waybill] ${name} threw, which is told once${said === "" ? "." : `: ${said}`}`);
  };
  return (...args) => {
    try {
      // One that was declared async by mistake fails later.
      const returned: unknown = callback(...args);
      if (returned instanceof Promise) returned.catch(warn);
    } catch (thrown) {
      warn(thrown);
    }
  };
}

/** Warnings about one list of a server; of further ones, how many there are. */
const MOST_WARNINGS = 20;

/** Warns of the first things that are odd in a list, and says how many more there are: a server may list ten thousand. */
export function warnOfFirst(messages: readonly string[], warn: (message: string) => void): void {
  for (const message of messages.slice(0, MOST_WARNINGS)) warn(message);
  const left = messages.length - MOST_WARNINGS;
  if (left <= 0) return;
  const what = left === 1 ? "One more such warning is" : `${left} more such warnings are`;
  warn(`${what} left out; "unusable" and "notes" of the source have all of them.`);
}
