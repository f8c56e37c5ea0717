import { CallError, isCallError } from "../../core/errors/errors.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { describeFindings } from "../../core/text/clean-text.ts";
import { findHidden } from "../../core/text/find-hidden.ts";
import { type McpExtensions, readExtensions } from "../extensions.ts";
import {
  MCP_LOG_LEVELS,
  type McpCompletion,
  type McpCompletionRequest,
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
  readServerLog,
  type ServerLog,
} from "../provider.ts";
import type { ImportLimits } from "./import-options.ts";
import type { ToolNote } from "./import-tools.ts";
import { listPages } from "./list-pages.ts";
import type { McpConnection } from "./mcp-connection.ts";
import { toPlainLine } from "./plain-line.ts";
import { warnOfFirst } from "./warn-of-first.ts";

/** What an imported provider depends on. */
export interface ImportedProviderOptions {
  readonly namespace: string;
  readonly limits: ImportLimits;
  /** Whether what the server tells models is passed on. */
  readonly passesInstructions: boolean;
  warn(message: string): void;
}

/** What an imported server offers besides tools; answers go on as they came once their outline is right. */
export class ImportedProvider implements McpProvider {
  readonly namespace: string;
  readonly #connection: McpConnection;
  readonly #options: ImportedProviderOptions;
  readonly #subscribed = new Set<string>();
  readonly #notes = new Map<string, readonly ToolNote[]>();
  #level: McpLogLevel | undefined;

  constructor(connection: McpConnection, options: ImportedProviderOptions) {
    this.namespace = options.namespace;
    this.#connection = connection;
    this.#options = options;
  }

  get capabilities(): McpProviderCapabilities {
    const { resources, prompts, completions, logging } = this.#connection.server.capabilities;
    return {
      resources: isPlainObject(resources),
      resourceSubscriptions: isPlainObject(resources) && resources["subscribe"] === true,
      prompts: isPlainObject(prompts),
      completions: isPlainObject(completions),
      logging: isPlainObject(logging),
    };
  }

  get instructions(): string | undefined {
    const { instructions } = this.#connection.server;
    if (instructions === undefined || !this.#options.passesInstructions) return undefined;
    return this.#secrets.mask(instructions);
  }

  get extensions(): McpExtensions {
    return readExtensions(this.#connection.server.capabilities);
  }

  /** What hides in the server's instructions, which are passed on without it, and in what was last listed, which is passed on as it came. */
  get notes(): readonly ToolNote[] {
    const { instructions } = this.#connection.server;
    const told = noteOn("instructions", instructions, "they are left out");
    return [...(told === undefined ? [] : [told]), ...Array.from(this.#notes.values()).flat()];
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
      await this.#connection.request("logging/setLevel", { level });
    } catch (thrown) {
      if (!isCallError(thrown) || thrown.code !== "OPERATION_NOT_FOUND") throw thrown;
    }
  }

  onEvent(listener: (event: McpProviderEvent) => void): () => void {
    return this.#connection.onEvent((event) => {
      if (event.type !== "notification") return;
      const told = toProviderEvent(event.method, event.params);
      if (told !== undefined && this.#isWanted(told)) listener(told);
    });
  }

  /** Asks again for what a new connection does not know yet; what fails is said. */
  async restore(): Promise<void> {
    const level = this.#level;
    const uris = [...this.#subscribed];
    const asked = [
      ...(level === undefined ? [] : [this.setLogLevel(level)]),
      ...uris.map((uri) => this.#connection.request("resources/subscribe", { uri })),
    ];
    for (const outcome of await Promise.allSettled(asked)) {
      if (outcome.status === "rejected")
        this.#options.warn("What a lost connection followed is not followed any more.");
    }
  }

  /** Notes what hides in the entries of a list, and warns of what was not noted before. */
  #flag<T>(kind: string, entries: readonly T[], nameOf: (entry: T) => string): void {
    const notes = entries.flatMap((entry) => noteOn(`${kind} ${nameOf(entry)}`, entry) ?? []);
    const before = new Set(this.#notes.get(kind)?.map(({ tool, note }) => `${tool} ${note}`));
    this.#notes.set(kind, notes);
    const fresh = notes.filter(({ tool, note }) => !before.has(`${tool} ${note}`));
    const messages = fresh.map(({ tool, note }) => `The ${tool} is to be looked at. ${note}`);
    warnOfFirst(messages, (message) => this.#options.warn(message));
  }

  #isWanted(event: McpProviderEvent): boolean {
    if (event.type !== "log" || this.#level === undefined) return true;
    return MCP_LOG_LEVELS.indexOf(event.level) >= MCP_LOG_LEVELS.indexOf(this.#level);
  }

  get #secrets() {
    return this.#connection.secrets;
  }

  async #request(
    method: string,
    params: Readonly<Record<string, unknown>>,
    options: McpProviderOptions = {},
  ): Promise<Readonly<Record<string, unknown>>> {
    const { onServerLog } = options;
    const named = (log: ServerLog): void => onServerLog?.({ ...log, logger: this.#loggerOf(log) });
    const heard = onServerLog === undefined ? options : { ...options, onServerLog: named };
    return this.#secrets.maskResult(await this.#connection.request(method, params, heard));
  }

  #loggerOf({ logger }: ServerLog): string {
    return logger === undefined ? this.namespace : `${this.namespace}.${logger}`;
  }

  async #list(method: string, field: string, options?: McpProviderOptions): Promise<unknown[]> {
    const { limits, warn } = this.#options;
    const entries = await listPages(this.#connection, { method, field, limits, request: options, warn });
    return this.#secrets.maskResult(entries);
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
