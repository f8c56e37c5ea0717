import type { ResponseEnvelope } from "../../core/envelope/envelope.ts";
import { CallError, isCallError } from "../../core/errors/errors.ts";
import { monotonicNow } from "../../core/execution/deadline.ts";
import type { CallerSide } from "../../core/operation/caller-side.ts";
import type { Metadata, OperationContext } from "../../core/operation/operation-context.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { RegistryChange } from "../../core/registry/executor.ts";
import { callTool, requestOptionsOf, streamOptionsOf, type ToolCall } from "./call-tool.ts";
import { guardCallback } from "./guard-callback.ts";
import type { ImportLimits, ImportOptions } from "./import-options.ts";
import type { ImportedTool, ToolPlan } from "./import-tool.ts";
import { type ImportedTools, importTools } from "./import-tools.ts";
import { listPages, type OversizedEntry } from "./list-pages.ts";
import type { ToolPin } from "./lock/tool-pin.ts";
import type { McpConnection, McpRequestOptions } from "./mcp-connection.ts";
import type { Oddities } from "./oddities.ts";
import { readToolResult } from "./read-tool-result.ts";
import { ToolStream } from "./stream-tool.ts";
import { warnOfFirst } from "./warn-of-first.ts";
import { withStoredBytes, withWhole } from "./whole-result.ts";

/** What a call of a tool by its exact name may be told. */
export interface McpCallOptions {
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
  /** Hears the params of each progress notification. */
  readonly onProgress?: ((progress: Readonly<Record<string, unknown>>) => void) | undefined;
  readonly caller?: CallerSide | undefined;
  /** `traceparent`, `tracestate` and `baggage` go on to the server. */
  readonly metadata?: Metadata | undefined;
}

/** What a set of tools depends on. */
export interface ToolSetOptions {
  readonly connection: McpConnection;
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
    const { reader, recoverJson, timeoutMs } = this.#given.options;
    return await this.#run(
      plan ?? { name: tool, reading: { tool, reader, recoverJson, secrets: this.#given.connection.secrets } },
      { input, metadata },
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
    call: Pick<ToolCall, "input" | "metadata" | "requestId">,
    options: McpRequestOptions,
  ): Promise<ResponseEnvelope> {
    const { name, inputSchema, wrapsInput, reading, definition } = plan;
    if (definition !== undefined) this.#given.pin?.assertApproved(definition);
    const request = { ...call, tool: name, inputSchema, wrapsInput };
    const { connection, warn } = this.#given;
    const until = options.timeoutMs === undefined ? undefined : monotonicNow() + options.timeoutMs;
    const { secrets } = connection;
    const result = await callTool(connection, request, plan.streams ? options : this.#maskProgress(options));
    try {
      if (!reading.isServed || plan.streams)
        return this.#noted(name, secrets.maskEnvelope(readToolResult(result, reading)));
      const timeoutMs = until === undefined ? undefined : Math.max(0, until - monotonicNow());
      const fetching = { tool: name, request: { signal: options.signal, timeoutMs }, warn };
      const held = await withStoredBytes(connection, result, fetching);
      const { result: read, whole } = await withWhole(connection, held, fetching);
      return this.#noted(name, secrets.maskEnvelope(readToolResult(read, reading, whole)));
    } catch (thrown) {
      throw secrets.maskError(thrown);
    }
  }

  #maskProgress(options: McpRequestOptions): McpRequestOptions {
    const { onProgress } = options;
    const { secrets } = this.#given.connection;
    if (onProgress === undefined) return options;
    return { ...options, onProgress: (progress) => onProgress(secrets.maskResult(progress)) };
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

/** What one call of a tool sends; a server of Waybill is told the request id as well. */
function toCall(
  { reading }: ToolPlan,
  input: unknown,
  context: OperationContext,
): Pick<ToolCall, "input" | "metadata" | "requestId"> {
  const { metadata } = context;
  return reading.isServed ? { input, metadata, requestId: context.requestId } : { input, metadata };
}

function noTool(tool: string): CallError {
  const message = `There is no tool ${JSON.stringify(tool.slice(0, 200))} among those imported.`;
  return new CallError("OPERATION_NOT_FOUND", message, { details: { tool } });
}

function refusedOf({ tools, unapproved }: ImportedTools): readonly ImportedTool[] {
  return [...tools.values(), ...unapproved.values()].filter(({ change }) => change !== undefined);
}

function isSameList<T>(one: readonly T[], other: readonly T[]): boolean {
  return one.length === other.length && one.every((member, at) => member === other[at]);
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
