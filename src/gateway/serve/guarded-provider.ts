import type { Identity } from "../../core/access/identity.ts";
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
import type { Policies } from "../policy/policies.ts";
import { forCallers } from "../source-error.ts";
import type { ReadRecord } from "./observe/read-record.ts";

/** The policies a provider stands under, and who hears of what is read. */
export interface ProviderGuard {
  readonly policies: Pick<Policies, "ofSource" | "runOfSource">;
  /** Must not throw. */
  onRead(record: ReadRecord): void;
}

const MOST_NAME_CHARACTERS = 200;

/** What a source offers besides tools, under its policy: for those who lack a scope it is not there. */
export class GuardedProvider implements McpProvider {
  readonly namespace: string;
  readonly #provider: McpProvider;
  readonly #guard: ProviderGuard;

  constructor(provider: McpProvider, guard: ProviderGuard) {
    this.namespace = provider.namespace;
    this.#provider = provider;
    this.#guard = guard;
  }

  get capabilities(): McpProviderCapabilities {
    return this.#provider.capabilities;
  }

  isFor(identity: Identity | undefined): boolean {
    const { isEnabled, scopes } = this.#guard.policies.ofSource(this.namespace);
    return isEnabled && scopes.every((scope) => identity?.scopes?.includes(scope) === true);
  }

  async listResources(options: McpProviderOptions = {}): Promise<readonly McpResource[]> {
    return this.isFor(options.identity) ? await this.#provider.listResources(options) : [];
  }

  async listResourceTemplates(options: McpProviderOptions = {}): Promise<readonly McpResourceTemplate[]> {
    return this.isFor(options.identity) ? await this.#provider.listResourceTemplates(options) : [];
  }

  async listPrompts(options: McpProviderOptions = {}): Promise<readonly McpPrompt[]> {
    return this.isFor(options.identity) ? await this.#provider.listPrompts(options) : [];
  }

  readResource(uri: string, options: McpProviderOptions = {}): Promise<McpResourceContents> {
    return this.#read("resource", uri, options, (told) => this.#provider.readResource(uri, told));
  }

  getPrompt(
    name: string,
    args: Readonly<Record<string, string>> | undefined,
    options: McpProviderOptions = {},
  ): Promise<McpPromptMessages> {
    return this.#read("prompt", name, options, (told) => this.#provider.getPrompt(name, args, told));
  }

  subscribeResource(uri: string, options: McpProviderOptions = {}): Promise<void> {
    return this.#run(uri, options, (told) => this.#provider.subscribeResource(uri, told));
  }

  /** Whoever may not use it any more may still leave. */
  unsubscribeResource(uri: string, options?: McpProviderOptions): Promise<void> {
    return this.#provider.unsubscribeResource(uri, options);
  }

  complete(request: McpCompletionRequest, options: McpProviderOptions = {}): Promise<McpCompletion> {
    const { ref } = request;
    const what = ref.type === "ref/prompt" ? ref.name : ref.uri;
    return this.#run(what, options, (told) => this.#provider.complete(request, told));
  }

  /** Callers ask for more than the gateway's log has, and never for less. */
  setLogLevel(level: McpLogLevel): Promise<void> {
    return this.#provider.setLogLevel(level === "debug" ? level : "info");
  }

  onEvent(listener: (event: McpProviderEvent) => void): () => void {
    return this.#provider.onEvent(listener);
  }

  async #run<T>(
    what: string,
    options: McpProviderOptions,
    run: (told: McpProviderOptions) => Promise<T>,
  ): Promise<T> {
    const { identity, signal } = options;
    if (!this.isFor(identity)) {
      throw new CallError("NOT_FOUND", `The source "${this.namespace}" has no such thing.`, { stack: false });
    }
    const { policies } = this.#guard;
    try {
      return await policies.runOfSource({ source: this.namespace, what, identity, signal }, (given) =>
        run({ ...options, signal: given }),
      );
    } catch (thrown) {
      throw forCallers(thrown);
    }
  }

  /** What was read is told, however it ended, and never what it holds. */
  async #read<T>(
    event: ReadRecord["event"],
    name: string,
    options: McpProviderOptions,
    run: (told: McpProviderOptions) => Promise<T>,
  ): Promise<T> {
    const startedAt = performance.now();
    const tell = (ending: Pick<ReadRecord, "outcome" | "code">): void => {
      const { identity } = options;
      this.#guard.onRead({
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
