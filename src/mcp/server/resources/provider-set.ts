import { Listeners } from "../../../core/collections/listeners.ts";
import { CallError, isCallError } from "../../../core/errors/errors.ts";
import { isPlainObject } from "../../../core/json/json-value.ts";
import type { LogLine } from "../../../core/operation/operation-context.ts";
import { cleanText } from "../../../core/text/clean-text.ts";
import { encodeBase64 } from "../../../core/wire/base64.ts";
import type {
  McpCompletion,
  McpCompletionRequest,
  McpLogLevel,
  McpPrompt,
  McpPromptMessages,
  McpProvider,
  McpProviderEvent,
  McpProviderOptions,
  McpResource,
  McpResourceContents,
  McpResourceTemplate,
} from "../../provider.ts";
import type { ServerCapabilities } from "../mcp-server.ts";
import {
  type Completer,
  isLive,
  type LiveMcpProviders,
  type LocalPrompt,
  type LocalResource,
  type LocalResourceTemplate,
  type McpRequestContext,
  type McpServerOptions,
  type ResourceValue,
} from "../mcp-server-options.ts";
import { parseUriTemplate, type UriMatcher } from "./resource-directory.ts";

/** All that has resources and prompts: this process, and the providers given, be they fixed or coming and going. */
export class ProviderSet {
  readonly #local: LocalProvider;
  readonly #live: LiveMcpProviders | undefined;
  readonly #fixed: readonly McpProvider[];

  constructor(options: McpServerOptions) {
    const { providers = [] } = options;
    this.#local = new LocalProvider(options);
    this.#live = isLive(providers) ? providers : undefined;
    const given = isLive(providers) ? providers.current : providers;
    const namespaces = new Set(given.map(({ namespace }) => namespace));
    if (namespaces.size < given.length || namespaces.has("")) {
      throw new TypeError("Every provider needs a namespace of its own.");
    }
    this.#fixed = [this.#local, ...given];
  }

  /** Those there are now, this process first. */
  get current(): readonly McpProvider[] {
    return this.#live === undefined ? this.#fixed : [this.#local, ...this.#live.current];
  }

  /** Hears when they have changed; returns how to stop. */
  onChange(listener: () => void): () => void {
    return this.#live?.onChange(listener) ?? (() => {});
  }

  /** Says exactly what is there, or may come: a list is said to change where somebody could change it. */
  capabilities({ store, catalogue = false }: McpServerOptions): ServerCapabilities {
    const mayCome = this.#live !== undefined;
    const some = (what: keyof McpProvider["capabilities"]): readonly McpProvider[] =>
      this.#fixed.filter(({ capabilities }) => capabilities[what]);
    const changes = (owners: readonly McpProvider[]): { listChanged?: true } =>
      mayCome || owners.some(({ namespace }) => namespace !== "") ? { listChanged: true } : {};
    const resources = some("resources");
    const prompts = some("prompts");
    const subscribe = mayCome || some("resourceSubscriptions").length > 0;
    return {
      tools: catalogue ? {} : { listChanged: true },
      logging: {},
      ...((mayCome || resources.length > 0 || store) && {
        resources: { ...changes(resources), ...(subscribe && { subscribe }) },
      }),
      ...((mayCome || prompts.length > 0) && { prompts: changes(prompts) }),
      ...((mayCome || some("completions").length > 0) && { completions: {} }),
    };
  }
}

/** How long a list is good for finding out who owns a name; what clients list is asked for anew each time. */
const FRESH_MS = 5_000;

/** Hears of a provider that could not be asked. */
export type ProviderWarning = (message: string, cause: unknown) => void;

interface ProviderListsOptions<T> {
  /** What warnings call the things listed. */
  readonly what: string;
  readonly list: (provider: McpProvider, options: McpProviderOptions) => Promise<readonly T[]>;
  readonly warn: ProviderWarning;
}

interface Kept<T> {
  readonly at: number;
  readonly items: readonly T[];
}

/** Those that are there for who is asking. */
export function providersFor(
  providers: readonly McpProvider[],
  { identity }: McpProviderOptions,
): readonly McpProvider[] {
  return providers.filter((provider) => provider.isFor?.(identity) ?? true);
}

/** Lists by provider; of those that list by caller, for one caller. */
interface KeptLists<T> {
  get(provider: McpProvider): Kept<T> | undefined;
  set(provider: McpProvider, kept: Kept<T>): unknown;
  delete(provider: McpProvider): boolean;
}

/** The same list of every provider, each kept for a moment; a provider that fails is left out, with a warning. */
export class ProviderLists<T> {
  readonly #providers: () => readonly McpProvider[];
  readonly #list: (provider: McpProvider, options: McpProviderOptions) => Promise<readonly T[]>;
  readonly #warn: ProviderWarning;
  readonly #what: string;
  readonly #kept: KeptLists<T> = new Map();
  /** Those of callers, each known again by the same object alone. */
  #ofCallers = new WeakMap<object, KeptLists<T>>();

  constructor(providers: () => readonly McpProvider[], { what, list, warn }: ProviderListsOptions<T>) {
    this.#providers = providers;
    this.#what = what;
    this.#list = list;
    this.#warn = warn;
  }

  /** Asks every provider that is there for the caller. */
  async all(options: McpProviderOptions = {}): Promise<readonly (readonly [McpProvider, readonly T[]])[]> {
    return await Promise.all(
      providersFor(this.#providers(), options).map(
        async (provider) => [provider, await this.#ask(provider, options)] as const,
      ),
    );
  }

  /** The same, from memory where it is recent. */
  async recent(options: McpProviderOptions = {}): Promise<readonly (readonly [McpProvider, readonly T[]])[]> {
    const since = Date.now() - FRESH_MS;
    return await Promise.all(
      providersFor(this.#providers(), options).map(async (provider) => {
        const kept = this.#keptFor(provider, options)?.get(provider);
        const items =
          kept !== undefined && kept.at >= since ? kept.items : await this.#ask(provider, options);
        return [provider, items] as const;
      }),
    );
  }

  /** Forgets what a provider listed: it has said that it changed. */
  forget(provider: McpProvider): void {
    this.#kept.delete(provider);
    if (provider.listsByCaller === true) this.#ofCallers = new WeakMap();
  }

  /** Where the list of a provider is kept for a caller; nowhere for an anonymous one, where it depends on that. */
  #keptFor(provider: McpProvider, { identity }: McpProviderOptions): KeptLists<T> | undefined {
    if (provider.listsByCaller !== true) return this.#kept;
    if (identity === undefined) return undefined;
    const kept = this.#ofCallers.get(identity) ?? new WeakMap<McpProvider, Kept<T>>();
    this.#ofCallers.set(identity, kept);
    return kept;
  }

  async #ask(provider: McpProvider, options: McpProviderOptions): Promise<readonly T[]> {
    try {
      const items = (await this.#list(provider, options)).map(withShownTexts);
      this.#keptFor(provider, options)?.set(provider, { at: Date.now(), items });
      return items;
    } catch (cause) {
      this.#warn(`The ${this.#what} of "${provider.namespace}" could not be listed.`, cause);
      return this.#keptFor(provider, options)?.get(provider)?.items ?? [];
    }
  }
}

/** What of a resource, a prompt or its arguments is for models and people; names of prompts and addresses say which one is meant. */
const SHOWN = ["title", "description"];

/** What a provider lists, without what hides in its texts; the same where nothing does. */
function withShownTexts<T>(item: T): T {
  if (!isPlainObject(item)) return item;
  const isAddressed = typeof item["uri"] === "string" || typeof item["uriTemplate"] === "string";
  const changed: Record<string, unknown> = {};
  for (const key of isAddressed ? [...SHOWN, "name"] : SHOWN) {
    const text = item[key];
    const clean = typeof text === "string" ? cleanText(text).text : text;
    if (clean !== text) changed[key] = clean;
  }
  const { arguments: given } = item as { readonly arguments?: unknown };
  if (Array.isArray(given)) {
    const shown = given.map(withShownTexts);
    if (shown.some((argument, index) => argument !== given[index])) changed["arguments"] = shown;
  }
  return Object.keys(changed).length === 0 ? item : ({ ...(item as object), ...changed } as T);
}

/** What a request to what this process offers may be told, beyond what any provider may. */
export interface LocalRequestOptions extends McpProviderOptions {
  readonly onLog?: ((line: LogLine) => void) | undefined;
}

/** The most suggestions that MCP lets one completion hold. */
const MAX_COMPLETIONS = 100;

/** The resources and prompts of this process, as a provider. */
export class LocalProvider implements McpProvider {
  readonly namespace: string = "";
  readonly capabilities;
  readonly #resources: ReadonlyMap<string, LocalResource>;
  readonly #templates: readonly { readonly given: LocalResourceTemplate; readonly matcher: UriMatcher }[];
  readonly #prompts: ReadonlyMap<string, LocalPrompt>;
  readonly #listeners = new Listeners<McpProviderEvent>();
  /** How to stop following the resources that somebody is subscribed to. */
  readonly #followed = new Map<string, (() => void) | undefined>();

  constructor({ resources = [], resourceTemplates = [], prompts = [] }: McpServerOptions) {
    this.#resources = byKey(resources, ({ uri }) => uri, "resource");
    byKey(resourceTemplates, ({ uriTemplate }) => uriTemplate, "resource template");
    this.#templates = resourceTemplates.map((given) => ({
      given,
      matcher: parseUriTemplate(given.uriTemplate),
    }));
    this.#prompts = byKey(prompts, ({ name }) => name, "prompt");
    this.capabilities = {
      resources: resources.length + resourceTemplates.length > 0,
      resourceSubscriptions: resources.length + resourceTemplates.length > 0,
      prompts: prompts.length > 0,
      completions:
        resourceTemplates.some(({ complete }) => complete !== undefined) ||
        prompts.some((prompt) => prompt.arguments?.some(({ complete }) => complete !== undefined)),
      logging: false,
    };
  }

  async listResources(): Promise<readonly McpResource[]> {
    return [...this.#resources.values()].map(({ read: _, onUpdate: __, ...shown }) => shown);
  }

  async listResourceTemplates(): Promise<readonly McpResourceTemplate[]> {
    return this.#templates.map(({ given: { read: _, complete: __, ...shown } }) => shown);
  }

  async readResource(uri: string, options: LocalRequestOptions = {}): Promise<McpResourceContents> {
    const context = toContext(options);
    const resource = this.#resources.get(uri);
    if (resource !== undefined) {
      return toContents(uri, resource.mimeType, await guarded(() => resource.read(uri, context)));
    }
    for (const { given, matcher } of this.#templates) {
      const variables = matcher.match(uri);
      const value = variables && (await guarded(() => given.read(uri, variables, context)));
      if (value !== undefined) return toContents(uri, given.mimeType, value);
    }
    throw new CallError("NOT_FOUND", "There is no such resource.");
  }

  /** Being subscribed to what does not tell when it changes is hearing nothing. */
  async subscribeResource(uri: string): Promise<void> {
    const resource = this.#resources.get(uri);
    if (resource === undefined && !this.#templates.some(({ matcher }) => matcher.match(uri) !== undefined)) {
      throw new CallError("NOT_FOUND", "There is no such resource.");
    }
    if (resource?.onUpdate === undefined || this.#followed.has(uri)) return;
    const tell = (): void => this.#listeners.tell({ type: "resource-updated", uri });
    this.#followed.set(uri, await guarded(() => resource.onUpdate?.(tell)));
  }

  async unsubscribeResource(uri: string): Promise<void> {
    const stop = this.#followed.get(uri);
    this.#followed.delete(uri);
    await guarded(() => stop?.());
  }

  async listPrompts(): Promise<readonly McpPrompt[]> {
    return [...this.#prompts.values()].map(toListed);
  }

  async getPrompt(
    name: string,
    args: Readonly<Record<string, string>> = {},
    options: LocalRequestOptions = {},
  ): Promise<McpPromptMessages> {
    const prompt = this.#prompts.get(name);
    if (prompt === undefined) throw new CallError("NOT_FOUND", "There is no such prompt.");
    const missing = prompt.arguments?.find(
      (argument) => argument.required && !Object.hasOwn(args, argument.name),
    );
    if (missing !== undefined) {
      throw new CallError("VALIDATION_ERROR", `The prompt needs the argument "${missing.name}".`);
    }
    const value = await guarded(() => prompt.get(args, toContext(options)));
    if (typeof value !== "string") return value;
    return { messages: [{ role: "user", content: { type: "text", text: value } }] };
  }

  async complete({ ref, argument, context }: McpCompletionRequest): Promise<McpCompletion> {
    const complete =
      ref.type === "ref/prompt"
        ? this.#promptCompleter(ref.name, argument.name)
        : this.#templateCompleter(ref.uri, argument.name);
    const found = await guarded(() => complete?.(argument.value, { arguments: { ...context?.arguments } }));
    const values = found ?? [];
    const isLong = values.length > MAX_COMPLETIONS;
    return {
      completion: { values: values.slice(0, MAX_COMPLETIONS), total: values.length, hasMore: isLong },
    };
  }

  async setLogLevel(_level: McpLogLevel): Promise<void> {}

  onEvent(listener: (event: McpProviderEvent) => void): () => void {
    const leave = this.#listeners.add(listener);
    return () => {
      leave();
      if (this.#listeners.size > 0) return;
      for (const stop of this.#followed.values()) stop?.();
      this.#followed.clear();
    };
  }

  #promptCompleter(name: string, argument: string): Completer | undefined {
    const prompt = this.#prompts.get(name);
    if (prompt === undefined) throw new CallError("NOT_FOUND", "There is no such prompt.");
    return prompt.arguments?.find((candidate) => candidate.name === argument)?.complete;
  }

  #templateCompleter(uri: string, variable: string): Completer | undefined {
    const template = this.#templates.find(({ given }) => given.uriTemplate === uri);
    if (template === undefined) throw new CallError("NOT_FOUND", "There is no such resource template.");
    const { complete = {} } = template.given;
    return Object.hasOwn(complete, variable) ? complete[variable] : undefined;
  }
}

function toListed({ get: _, arguments: args, ...shown }: LocalPrompt): McpPrompt {
  if (args === undefined) return shown;
  const listed = args.map(({ complete: __, required = false, ...argument }) => ({ ...argument, required }));
  return { ...shown, arguments: listed };
}

function byKey<T>(items: readonly T[], keyOf: (item: T) => string, what: string): ReadonlyMap<string, T> {
  const map = new Map<string, T>();
  for (const item of items) {
    const key = keyOf(item);
    if (map.has(key)) throw new TypeError(`There are two ${what}s ${JSON.stringify(key)}.`);
    map.set(key, item);
  }
  return map;
}

/** What our own code throws may hold anything, so only what is meant for callers leaves. */
async function guarded<T>(run: () => T | Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (thrown) {
    if (isCallError(thrown)) throw thrown;
    throw new CallError("EXECUTION_ERROR", "It could not be read.", { cause: thrown });
  }
}

function toContents(uri: string, mimeType: string | undefined, value: ResourceValue): McpResourceContents {
  const facts = { uri, ...(mimeType !== undefined && { mimeType }) };
  if (typeof value === "string") return { contents: [{ ...facts, text: value }] };
  if (value instanceof Uint8Array) return { contents: [{ ...facts, blob: encodeBase64(value) }] };
  return value;
}

function toContext({ identity, signal, onLog, onProgress, caller }: LocalRequestOptions): McpRequestContext {
  const effective = signal ?? new AbortController().signal;
  return {
    identity,
    signal: effective,
    log: (level, message, data) => onLog?.({ level, message, data }),
    progress: (value) => onProgress?.(value),
    elicit: (request, asked) => answerOf("elicit", caller?.elicit?.(request, effective, asked?.key)),
    sample: (request, asked) => answerOf("sample", caller?.sample?.(request, effective, asked?.key)),
    roots: (asked) => answerOf("roots", caller?.roots?.(effective, asked?.key)),
  };
}

async function answerOf<A>(what: string, answer: Promise<A> | undefined): Promise<A> {
  if (answer !== undefined) return await answer;
  throw new CallError("NOT_IMPLEMENTED", `The caller cannot be asked (${what}).`);
}
