import { Listeners } from "../../core/collections/listeners.ts";
import type { MCPResponseMeta, ResponseEnvelope } from "../../core/envelope/envelope.ts";
import { CallError, isCallError } from "../../core/errors/errors.ts";
import { monotonicNow } from "../../core/execution/cancellation.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { ChangeListener, RegistryChange } from "../../core/registry/executor.ts";
import { describeFindings, findHidden } from "../../core/text/clean-text.ts";
import {
  MCP_LOG_LEVELS,
  type McpCompletion,
  type McpCompletionRequest,
  type McpExtensions,
  type McpLogLevel,
  type McpPrompt,
  type McpPromptMessages,
  type McpProvider,
  type McpProviderCapabilities,
  type McpProviderEvent,
  type McpProviderOptions,
  type McpResource,
  type McpResourceContents,
  type McpResourceTemplate,
  readExtensions,
  readServerLog,
  type ServerLog,
} from "../provider.ts";
import { listPages } from "./list-pages.ts";
import type { DefinitionChange, ToolDefinition, ToolLock } from "./lock/tool-lock.ts";
import {
  checkRequestOptions,
  type McpConnectionEvent,
  type McpConnectionState,
  type McpRequestOptions,
  type McpServerFacts,
} from "./mcp-connection.ts";
import { toPlainLine } from "./plain-line.ts";
import {
  type McpCallOptions,
  type ToolNote,
  type ToolSet,
  type ToolSetOptions,
  type UnusableTool,
  warnOfFirst,
} from "./tool-set.ts";

/** What a tool answers is always from MCP. */
type ToolEnvelope = ResponseEnvelope & { readonly meta: MCPResponseMeta };

const STALE = "The tools could not be listed again; they stay as they were.";

interface McpSourceParts extends Pick<ToolSetOptions, "connection" | "pin" | "limits" | "oddities" | "warn"> {
  readonly tools: ToolSet;
  readonly namespace: string;
  /** Whether what the server tells models is passed on. */
  readonly passesInstructions: boolean;
}

/**
 * An MCP server as a live source of operations: `registry.registerAll(source)` follows it. Resources, prompts, completions and logs
 * are passed on by `toMcpServer({ providers: [source] })`.
 */
export class McpSource implements McpProvider, Iterable<AnyOperation> {
  readonly #parts: McpSourceParts;
  readonly #listeners = new Listeners<readonly RegistryChange[]>((cause) =>
    this.#parts.warn("A listener of changes threw.", cause),
  );
  readonly #stopListening: () => void;
  readonly #listings: ListingScheduler;
  readonly #subscribed = new Set<string>();
  readonly #notes = new Map<string, readonly ToolNote[]>();
  #level: McpLogLevel | undefined;
  #wasDown = false;
  #closed = false;

  constructor(parts: McpSourceParts) {
    this.#parts = parts;
    this.#listings = new ListingScheduler(
      () => this.#refresh(),
      (cause) => parts.warn(STALE, cause),
    );
    this.#stopListening = parts.connection.onEvent((event) => this.#hear(event));
  }

  /** Every tool that can be called, as listed last, sorted by id; with a pin, those that were approved, as they were approved. */
  get operations(): readonly AnyOperation[] {
    const operations = Array.from(this.#parts.tools.now.tools.values(), ({ operation }) => operation);
    return operations.sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  [Symbol.iterator](): Iterator<AnyOperation> {
    return this.operations[Symbol.iterator]();
  }

  /** Tools that cannot be called, and why. */
  get unusable(): readonly UnusableTool[] {
    return this.#parts.tools.now.unusable;
  }

  /** What was taken over less than whole of tools that can be called, and what hides in prompts, resources and instructions. */
  get notes(): readonly ToolNote[] {
    const told = noteOn("instructions", this.server.instructions, "they are left out");
    return [
      ...this.#parts.tools.now.notes,
      ...(told === undefined ? [] : [told]),
      ...Array.from(this.#notes.values()).flat(),
    ];
  }

  /** Tools as listed last that the pin refuses, and why; nothing without a pin. */
  get refused(): readonly DefinitionChange[] | undefined {
    const { pin, tools } = this.#parts;
    return pin && tools.refused.flatMap(({ change }) => change ?? []);
  }

  /** How often the server did what nobody understands: noise, answers nobody asked for, results of no known shape. Each kind is a warning once. */
  get oddities(): number {
    return this.#parts.oddities.count;
  }

  /** What the server said about itself. */
  get server(): McpServerFacts {
    return this.#parts.connection.server;
  }

  get state(): McpConnectionState {
    return this.#parts.connection.state;
  }

  get namespace(): string {
    return this.#parts.namespace;
  }

  get listsByCaller(): boolean {
    return this.#parts.connection.listsByCaller === true;
  }

  get capabilities(): McpProviderCapabilities {
    const { resources, prompts, completions, logging } = this.#parts.connection.server.capabilities;
    return {
      resources: isPlainObject(resources),
      resourceSubscriptions: isPlainObject(resources) && resources["subscribe"] === true,
      prompts: isPlainObject(prompts),
      completions: isPlainObject(completions),
      logging: isPlainObject(logging),
    };
  }

  /** What the server tells models about itself, as it is passed on; nothing where that is turned off. */
  get instructions(): string | undefined {
    const { instructions } = this.#parts.connection.server;
    if (instructions === undefined || !this.#parts.passesInstructions) return undefined;
    return this.#secrets.mask(instructions);
  }

  get extensions(): McpExtensions {
    return readExtensions(this.#parts.connection.server.capabilities);
  }

  /** Hears of changes of `operations`, and, with no change, that `refused` is other than before; returns how to stop. */
  onChange(listener: ChangeListener): () => void {
    return this.#listeners.add(listener);
  }

  /** Calls a tool by its exact name, listed or not; the result is not checked against any schema. */
  async call(toolName: string, input?: unknown, options?: McpCallOptions): Promise<ToolEnvelope> {
    checkRequestOptions(options);
    return (await this.#parts.tools.call(toolName, input, options)) as ToolEnvelope;
  }

  /** Lists the tools again now, or right after the listing under way, as a server that tells of no changes needs it; reads the lock file again. */
  refresh(): Promise<void> {
    const { pin } = this.#parts;
    return pin === undefined ? this.#listings.now() : pin.reread().then(() => this.#listings.now());
  }

  /** Approves tools as they are listed now, all or those named, and lists again; see `approveTools`. */
  async approve(toolNames?: Iterable<string>): Promise<ToolLock> {
    const { pin, tools } = this.#parts;
    if (pin === undefined) throw new TypeError("There is no lock to approve tools in; give fromMcp a pin.");
    const definitions: ToolDefinition[] = [];
    if (typeof toolNames === "string" || typeof (toolNames ?? [])[Symbol.iterator] !== "function") {
      throw new TypeError(`The tools to approve must be a list of names, such as ["read_file"].`);
    }
    const listed = new Map([...tools.now.tools, ...tools.now.unapproved]);
    for (const name of toolNames ?? listed.keys()) {
      const tool = listed.get(name);
      if (tool === undefined) throw new TypeError(`There is no tool "${name}" to approve.`);
      definitions.push(tool.definition);
    }
    const lock = await pin.approve(definitions);
    await this.#listings.now().catch((cause: unknown) => this.#parts.warn(STALE, cause));
    return lock;
  }

  async listResources(options?: McpProviderOptions): Promise<readonly McpResource[]> {
    const found = await this.#list("resources/list", "resources", options);
    const resources = found.filter((entry): entry is McpResource => hasStrings(entry, "uri", "name"));
    this.#flag("resource", resources, ({ uri }) => uri);
    return resources;
  }

  async listResourceTemplates(options?: McpProviderOptions): Promise<readonly McpResourceTemplate[]> {
    const found = await this.#list("resources/templates/list", "resourceTemplates", options);
    const templates = found.filter((entry): entry is McpResourceTemplate =>
      hasStrings(entry, "uriTemplate", "name"),
    );
    this.#flag("resource template", templates, ({ uriTemplate }) => uriTemplate);
    return templates;
  }

  async readResource(uri: string, options?: McpProviderOptions): Promise<McpResourceContents> {
    const result = await this.#request("resources/read", { uri }, options);
    assertList("resources/read", result, "contents");
    return result as unknown as McpResourceContents;
  }

  async subscribeResource(uri: string, options?: McpProviderOptions): Promise<void> {
    await this.#request("resources/subscribe", { uri }, options);
    this.#subscribed.add(uri);
  }

  async unsubscribeResource(uri: string, options?: McpProviderOptions): Promise<void> {
    this.#subscribed.delete(uri);
    await this.#request("resources/unsubscribe", { uri }, options);
  }

  async listPrompts(options?: McpProviderOptions): Promise<readonly McpPrompt[]> {
    const found = await this.#list("prompts/list", "prompts", options);
    const prompts = found.filter((entry): entry is McpPrompt => hasStrings(entry, "name"));
    this.#flag("prompt", prompts, ({ name }) => name);
    return prompts;
  }

  async getPrompt(
    name: string,
    args: Readonly<Record<string, string>> | undefined,
    options?: McpProviderOptions,
  ): Promise<McpPromptMessages> {
    const result = await this.#request("prompts/get", { name, ...(args && { arguments: args }) }, options);
    assertList("prompts/get", result, "messages");
    return result as unknown as McpPromptMessages;
  }

  async complete(request: McpCompletionRequest, options?: McpProviderOptions): Promise<McpCompletion> {
    const { ref, argument, context } = request;
    const params = { ref, argument, ...(context && { context }) };
    const result = await this.#request("completion/complete", params, options);
    const { completion } = result;
    const values = isPlainObject(completion) ? completion["values"] : undefined;
    if (!Array.isArray(values) || !values.every((value) => typeof value === "string")) {
      throw invalid("completion/complete", "a completion with a list of values", result);
    }
    return result as unknown as McpCompletion;
  }

  /** Newer revisions have no such request: what is less important is then left out on this side. */
  async setLogLevel(level: McpLogLevel): Promise<void> {
    this.#level = level;
    try {
      await this.#parts.connection.request("logging/setLevel", { level });
    } catch (thrown) {
      if (!isCallError(thrown) || thrown.code !== "OPERATION_NOT_FOUND") throw thrown;
    }
  }

  onEvent(listener: (event: McpProviderEvent) => void): () => void {
    return this.#parts.connection.onEvent((event) => {
      if (event.type !== "notification") return;
      const told = toProviderEvent(event.method, event.params);
      if (told !== undefined && this.#isWanted(told)) listener(told);
    });
  }

  /** Ends the connection and stops following; every process of a stdio server is gone when it resolves. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#listings.stop();
    this.#parts.tools.stop();
    this.#stopListening();
    await this.#parts.connection.close();
    this.#listeners.clear();
  }

  #hear(event: McpConnectionEvent): void {
    if (event.type === "notification" && event.method === "notifications/tools/list_changed")
      this.#listings.soon();
    if (event.type === "oddity") this.#parts.oddities.add(event.message);
    if (event.type !== "state") return;
    if (event.state.status === "down") this.#wasDown = true;
    if (event.state.status !== "ready" || !this.#wasDown) return;
    this.#wasDown = false;
    // It may be another version of the server that came back.
    this.#listings.soon();
    this.#restore().catch(() => {});
  }

  async #refresh(): Promise<void> {
    const changes = await this.#parts.tools.refresh();
    if (changes !== undefined && !this.#closed) this.#listeners.tell(changes);
  }

  /** Asks again for what a new connection does not know yet; what fails is said. */
  async #restore(): Promise<void> {
    const level = this.#level;
    const uris = [...this.#subscribed];
    const asked = [
      ...(level === undefined ? [] : [this.setLogLevel(level)]),
      ...uris.map((uri) => this.#parts.connection.request("resources/subscribe", { uri })),
    ];
    for (const outcome of await Promise.allSettled(asked)) {
      if (outcome.status === "rejected")
        this.#parts.warn("What a lost connection followed is not followed any more.");
    }
  }

  /** Notes what hides in the entries of a list, and warns of what was not noted before. */
  #flag<T>(kind: string, entries: readonly T[], nameOf: (entry: T) => string): void {
    const notes = entries.flatMap((entry) => noteOn(`${kind} ${nameOf(entry)}`, entry) ?? []);
    const before = new Set(this.#notes.get(kind)?.map(({ tool, note }) => `${tool} ${note}`));
    this.#notes.set(kind, notes);
    const fresh = notes.filter(({ tool, note }) => !before.has(`${tool} ${note}`));
    const messages = fresh.map(({ tool, note }) => `The ${tool} is to be looked at. ${note}`);
    warnOfFirst(messages, (message) => this.#parts.warn(message));
  }

  #isWanted(event: McpProviderEvent): boolean {
    if (event.type !== "log" || this.#level === undefined) return true;
    return MCP_LOG_LEVELS.indexOf(event.level) >= MCP_LOG_LEVELS.indexOf(this.#level);
  }

  get #secrets() {
    return this.#parts.connection.secrets;
  }

  async #request(
    method: string,
    params: Readonly<Record<string, unknown>>,
    options: McpProviderOptions = {},
  ): Promise<Readonly<Record<string, unknown>>> {
    const { onServerLog } = options;
    const named = (log: ServerLog): void => onServerLog?.({ ...log, logger: this.#loggerOf(log) });
    const asked = ofCaller(options);
    const heard = onServerLog === undefined ? asked : { ...asked, onServerLog: named };
    return this.#secrets.maskResult(await this.#parts.connection.request(method, params, heard));
  }

  #loggerOf({ logger }: ServerLog): string {
    return logger === undefined ? this.namespace : `${this.namespace}.${logger}`;
  }

  async #list(method: string, field: string, options?: McpProviderOptions): Promise<unknown[]> {
    const { limits, warn } = this.#parts;
    const walk = { method, field, limits, request: options && ofCaller(options), warn };
    const entries = await listPages(this.#parts.connection, walk).catch((error: unknown) => {
      // Servers announce resources or prompts, and have no method to list them: they have none.
      if (isCallError(error) && error.code === "OPERATION_NOT_FOUND") return [];
      throw error;
    });
    return this.#secrets.maskResult(entries);
  }
}

/** Says whose request it is to functions that give credentials. */
function ofCaller(options: McpProviderOptions): McpRequestOptions {
  const { identity } = options;
  return identity === undefined ? options : { ...options, call: { identity } };
}

/** Milliseconds between being told of a change and listing: changes that come closer together are listed once. */
export const LISTING_WAITS = {
  first: 50,
  /** Where changes are told of without end, the wait is doubled up to this. */
  most: 5_000,
} as const;

/** Decides when a list is read again: one reading runs at a time, and at most one more waits, which everybody shares. */
export class ListingScheduler {
  readonly #list: () => Promise<void>;
  readonly #onFailure: (cause: unknown) => void;
  #running: Promise<void> | undefined;
  #waiting: Promise<void> | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #wait: number = LISTING_WAITS.first;
  #endedAt = Number.NEGATIVE_INFINITY;
  #stopped = false;

  /** `onFailure` hears of readings that nobody waits for. */
  constructor(list: () => Promise<void>, onFailure: (cause: unknown) => void) {
    this.#list = list;
    this.#onFailure = onFailure;
  }

  /** Reads the list, once the reading under way is over; resolves after a reading that began after this was called. */
  now(): Promise<void> {
    if (this.#running === undefined) return this.#start();
    this.#waiting ??= this.#running
      .catch(() => {})
      .then(() => {
        this.#waiting = undefined;
        return this.#start();
      });
    return this.#waiting;
  }

  /** Reads the list soon; the sooner after the last time this is called, the later. */
  soon(): void {
    if (this.#stopped || this.#timer !== undefined || this.#waiting !== undefined) return;
    const isCalm = monotonicNow() - this.#endedAt >= 2 * this.#wait && this.#running === undefined;
    this.#wait = isCalm ? LISTING_WAITS.first : Math.min(2 * this.#wait, LISTING_WAITS.most);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.now().catch((cause: unknown) => {
        if (!this.#stopped) this.#onFailure(cause);
      });
    }, this.#wait);
    this.#timer.unref?.();
  }

  /** Starts no more readings of its own accord. */
  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  #start(): Promise<void> {
    const running = this.#list().finally(() => {
      this.#running = undefined;
      this.#endedAt = monotonicNow();
    });
    this.#running = running;
    return running;
  }
}

function noteOn(what: string, value: unknown, so = "it is passed on as it came"): ToolNote | undefined {
  const found = findHidden(value);
  if (found.length === 0) return undefined;
  const note = `It holds hidden characters (${describeFindings(found)}); ${so}.`;
  return { tool: toPlainLine(what, 200), note };
}

/** What a notification tells of resources, prompts and logs; nothing for any other, or one that makes no sense. */
function toProviderEvent(
  method: string,
  params: Readonly<Record<string, unknown>>,
): McpProviderEvent | undefined {
  switch (method) {
    case "notifications/resources/list_changed":
      return { type: "resources-changed" };
    case "notifications/prompts/list_changed":
      return { type: "prompts-changed" };
    case "notifications/resources/updated":
      return typeof params["uri"] === "string" ? { type: "resource-updated", uri: params["uri"] } : undefined;
    case "notifications/message": {
      const log = readServerLog(params);
      return log && { type: "log", ...log };
    }
    default:
      return undefined;
  }
}

function hasStrings(entry: unknown, ...fields: readonly string[]): boolean {
  return isPlainObject(entry) && fields.every((field) => typeof entry[field] === "string");
}

function assertList(method: string, result: unknown, field: string): void {
  const list = isPlainObject(result) ? result[field] : undefined;
  if (!Array.isArray(list) || !list.every(isPlainObject)) throw invalid(method, `a list of ${field}`, result);
}

function invalid(method: string, wanted: string, cause: unknown): CallError {
  return new CallError("OUTPUT_INVALID", `The answer to ${method} is not what it should be: ${wanted}.`, {
    cause,
  });
}
