import { CallError, isCallError } from "../../core/errors/errors.ts";
import type { LogLine } from "../../core/operation/operation-context.ts";
import { encodeBase64 } from "../../core/wire/base64.ts";
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
} from "../provider.ts";
import type {
  Completer,
  LocalPrompt,
  LocalResource,
  LocalResourceTemplate,
  McpRequestContext,
  McpServerOptions,
  ResourceValue,
} from "./mcp-server-options.ts";
import { parseUriTemplate, type UriMatcher } from "./uri-template.ts";

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
  readonly #listeners = new Set<(event: McpProviderEvent) => void>();
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
    const tell = (): void => this.#tell({ type: "resource-updated", uri });
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
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      for (const stop of this.#followed.values()) stop?.();
      this.#followed.clear();
    };
  }

  #tell(event: McpProviderEvent): void {
    for (const listener of this.#listeners) listener(event);
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
