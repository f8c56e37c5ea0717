import type { Identity } from "../../core/access/identity.ts";
import { Listeners } from "../../core/collections/listeners.ts";
import { CallError, toCallError } from "../../core/errors/errors.ts";
import type {
  McpCompletion,
  McpCompletionRequest,
  McpLogLevel,
  McpPrompt,
  McpPromptMessages,
  McpProvider,
  McpProviderCapabilities,
  McpProviderEvent,
  McpProviderOptions,
  McpResource,
  McpResourceContents,
  McpResourceTemplate,
} from "../../mcp/provider.ts";
import { forCallers } from "../missing-operation.ts";
import type { Policies } from "../policy/policies.ts";
import type { ReadRecord } from "../serve/observe/observer.ts";

const NOTHING: McpProviderCapabilities = Object.freeze({
  resources: false,
  resourceSubscriptions: false,
  prompts: false,
  completions: false,
  logging: false,
});
const MOST_NAME_CHARACTERS = 200;

/**
 * The server that a source is connected to now, for what it offers besides tools. While it is away there is nothing in it; what was
 * subscribed to, and the log level, hold for the next one too.
 */
export class ProviderSlot {
  readonly namespace: string;
  readonly #error: () => CallError;
  readonly #listeners = new Listeners<McpProviderEvent>();
  /** How often each resource is subscribed to: by each server of the gateway, and by pages. */
  readonly #subscribed = new Map<string, number>();
  #level: McpLogLevel | undefined;
  #present: McpProvider | undefined;
  #stop: () => void = () => {};
  #isUp = false;

  /** `error` says why there is nothing. */
  constructor(namespace: string, error: () => CallError) {
    this.namespace = namespace;
    this.#error = error;
  }

  /** The server, while it can be reached. */
  get now(): McpProvider | undefined {
    return this.#isUp ? this.#present : undefined;
  }

  /** The same; throws where it cannot be reached. */
  get needed(): McpProvider {
    const { now } = this;
    if (now !== undefined) return now;
    throw this.#error();
  }

  get capabilities(): McpProviderCapabilities {
    return this.now?.capabilities ?? NOTHING;
  }

  /** Puts a server in the place of the one before, or none. */
  put(provider: McpProvider | undefined): void {
    this.#stop();
    this.#stop = provider?.onEvent((event) => this.#listeners.tell(event)) ?? (() => {});
    this.#present = provider;
    if (provider === undefined) return;
    // A server that will not is no reason to do without it.
    const { resourceSubscriptions, logging } = provider.capabilities;
    if (this.#isUp) this.#tellChanged(provider.capabilities);
    if (this.#level !== undefined && logging) provider.setLogLevel(this.#level).catch(() => {});
    if (!resourceSubscriptions) return;
    for (const uri of this.#subscribed.keys()) provider.subscribeResource(uri).catch(() => {});
  }

  /** Takes a server out, unless another one has taken its place. */
  remove(provider: McpProvider): void {
    if (this.#present === provider) this.put(undefined);
  }

  /** Says whether the present one can be reached. */
  setUp(isUp: boolean): void {
    if (isUp === this.#isUp) return;
    const lost = this.capabilities;
    this.#isUp = isUp;
    this.#tellChanged(isUp ? this.capabilities : lost);
  }

  async subscribe(uri: string, options?: McpProviderOptions): Promise<void> {
    const asked = this.needed;
    await asked.subscribeResource(uri, options);
    this.#subscribed.set(uri, (this.#subscribed.get(uri) ?? 0) + 1);
    // Another one may have taken its place meanwhile, before this was known.
    if (this.now !== undefined && this.now !== asked) await this.now.subscribeResource(uri, options);
  }

  async unsubscribe(uri: string, options?: McpProviderOptions): Promise<void> {
    const left = (this.#subscribed.get(uri) ?? 1) - 1;
    if (left > 0) {
      this.#subscribed.set(uri, left);
      return;
    }
    this.#subscribed.delete(uri);
    await this.now?.unsubscribeResource(uri, options);
  }

  async setLogLevel(level: McpLogLevel): Promise<void> {
    this.#level = level;
    await this.now?.setLogLevel(level);
  }

  onEvent(listener: (event: McpProviderEvent) => void): () => void {
    return this.#listeners.add(listener);
  }

  #tellChanged({ resources, prompts }: McpProviderCapabilities): void {
    if (resources) this.#listeners.tell({ type: "resources-changed" });
    if (prompts) this.#listeners.tell({ type: "prompts-changed" });
  }
}

/** The policies that what a source offers is served under, and who hears of what is read. */
export interface ProviderGuard {
  readonly policies: Pick<Policies, "ofSource" | "runOfSource">;
  /** Must not throw. */
  onRead(record: ReadRecord): void;
}

/** What a source offers besides tools, under one object for as long as the source lives; under a policy it is not there for those who lack a scope. */
export class SourceProvider implements McpProvider {
  readonly namespace: string;
  readonly #slot: ProviderSlot;
  readonly #guard: ProviderGuard | undefined;

  constructor(slot: ProviderSlot, guard?: ProviderGuard) {
    this.namespace = slot.namespace;
    this.#slot = slot;
    this.#guard = guard;
  }

  /** The same under policies. */
  under(guard: ProviderGuard): SourceProvider {
    return new SourceProvider(this.#slot, guard);
  }

  get instructions(): McpProvider["instructions"] {
    return this.#slot.now?.instructions;
  }

  get extensions(): McpProvider["extensions"] {
    return this.#slot.now?.extensions;
  }

  get capabilities(): McpProviderCapabilities {
    return this.#slot.capabilities;
  }

  get listsByCaller(): boolean {
    return this.#slot.now?.listsByCaller === true;
  }

  isFor(identity: Identity | undefined): boolean {
    if (this.#guard === undefined) return true;
    const { isEnabled, scopes } = this.#guard.policies.ofSource(this.namespace);
    return isEnabled && scopes.every((scope) => identity?.scopes?.includes(scope) === true);
  }

  async listResources(options: McpProviderOptions = {}): Promise<readonly McpResource[]> {
    return this.#has("resources", options) ? await this.#slot.needed.listResources(options) : [];
  }

  async listResourceTemplates(options: McpProviderOptions = {}): Promise<readonly McpResourceTemplate[]> {
    return this.#has("resources", options) ? await this.#slot.needed.listResourceTemplates(options) : [];
  }

  async listPrompts(options: McpProviderOptions = {}): Promise<readonly McpPrompt[]> {
    return this.#has("prompts", options) ? await this.#slot.needed.listPrompts(options) : [];
  }

  readResource(uri: string, options: McpProviderOptions = {}): Promise<McpResourceContents> {
    return this.#read({ event: "resource", name: uri }, options, (told) =>
      this.#slot.needed.readResource(uri, told),
    );
  }

  getPrompt(
    name: string,
    args: Readonly<Record<string, string>> | undefined,
    options: McpProviderOptions = {},
  ): Promise<McpPromptMessages> {
    return this.#read({ event: "prompt", name }, options, (told) =>
      this.#slot.needed.getPrompt(name, args, told),
    );
  }

  subscribeResource(uri: string, options: McpProviderOptions = {}): Promise<void> {
    return this.#run(uri, options, (told) => this.#slot.subscribe(uri, told));
  }

  /** A caller who may not use it any more may still unsubscribe. */
  unsubscribeResource(uri: string, options?: McpProviderOptions): Promise<void> {
    return this.#slot.unsubscribe(uri, options);
  }

  complete(request: McpCompletionRequest, options: McpProviderOptions = {}): Promise<McpCompletion> {
    const { ref } = request;
    const what = ref.type === "ref/prompt" ? ref.name : ref.uri;
    return this.#run(what, options, (told) => this.#slot.needed.complete(request, told));
  }

  /** Callers ask for more than the gateway's log has, and never for less. */
  setLogLevel(level: McpLogLevel): Promise<void> {
    return this.#slot.setLogLevel(this.#guard === undefined || level === "debug" ? level : "info");
  }

  onEvent(listener: (event: McpProviderEvent) => void): () => void {
    return this.#slot.onEvent(listener);
  }

  #has(what: "resources" | "prompts", { identity }: McpProviderOptions): boolean {
    return this.isFor(identity) && this.capabilities[what];
  }

  async #run<T>(
    what: string,
    options: McpProviderOptions,
    run: (told: McpProviderOptions) => Promise<T>,
  ): Promise<T> {
    if (this.#guard === undefined) return await run(options);
    const { identity, signal } = options;
    if (!this.isFor(identity)) {
      throw new CallError("NOT_FOUND", `The source "${this.namespace}" has no such thing.`, { stack: false });
    }
    const { policies } = this.#guard;
    try {
      return await policies.runOfSource({ source: this.namespace, what, identity, signal }, async (given) =>
        run({ ...options, signal: given }),
      );
    } catch (thrown) {
      throw forCallers(thrown);
    }
  }

  /** What was read is told, however it ended, and never what it holds. */
  async #read<T>(
    { event, name }: Pick<ReadRecord, "event" | "name">,
    options: McpProviderOptions,
    run: (told: McpProviderOptions) => Promise<T>,
  ): Promise<T> {
    const startedAt = performance.now();
    const tell = (ending: Pick<ReadRecord, "outcome" | "code">): void => {
      const { identity } = options;
      this.#guard?.onRead({
        event,
        source: this.namespace,
        name: name.slice(0, MOST_NAME_CHARACTERS),
        ...(identity !== undefined && { subject: identity.subject }),
        ...ending,
        durationMs: Math.round((performance.now() - startedAt) * 1_000) / 1_000,
      });
    };
    try {
      const found = await this.#run(name, options, run);
      tell({ outcome: "ok" });
      return found;
    } catch (thrown) {
      tell({ outcome: "call_error", code: toCallError(thrown).code });
      throw thrown;
    }
  }
}
