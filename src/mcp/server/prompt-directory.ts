import type { McpPrompt, McpPromptMessages, McpProvider, McpProviderOptions } from "../provider.ts";
import type { ToolNaming } from "./mcp-server-options.ts";
import { compareKeys, type Page, pageOf } from "./page-cursor.ts";
import { invalidParams, quoted } from "./protocol-errors.ts";
import { ProviderLists, type ProviderWarning } from "./provider-lists.ts";
import { assignToolNames, nameBesides } from "./tool-name.ts";

/** A prompt and who has it. */
interface OwnedPrompt {
  readonly provider: McpProvider;
  readonly prompt: McpPrompt;
}

type Lists = readonly (readonly [McpProvider, readonly McpPrompt[]])[];

/** The prompts of all providers: those of this process under their own names, others under names made like those of tools. */
export class PromptDirectory {
  readonly #lists: ProviderLists<McpPrompt>;
  readonly #naming: ToolNaming;

  constructor(providers: () => readonly McpProvider[], naming: ToolNaming, warn: ProviderWarning) {
    this.#naming = naming;
    this.#lists = new ProviderLists(() => providers().filter(({ capabilities }) => capabilities.prompts), {
      what: "prompts",
      list: (provider, options) => provider.listPrompts(options),
      warn,
    });
  }

  /** One page of all prompts, sorted by name. */
  async list(cursor: unknown, pageSize: number, options: McpProviderOptions): Promise<Page<McpPrompt>> {
    const named = this.#name(await this.#lists.all(options));
    const items = [...named].map(([name, { prompt }]) => ({ ...prompt, name }));
    const sorted = items.toSorted((a, b) => compareKeys(a.name, b.name));
    return pageOf(sorted, ({ name }) => name, cursor, pageSize);
  }

  /** Finds the prompt a name stands for; throws -32602 where there is none. */
  async find(name: string, options: McpProviderOptions): Promise<{ provider: McpProvider; name: string }> {
    const found =
      this.#name(await this.#lists.recent(options)).get(name) ??
      this.#name(await this.#lists.all(options)).get(name);
    if (found === undefined) throw invalidParams(`Unknown prompt: ${quoted(name)}.`);
    return { provider: found.provider, name: found.prompt.name };
  }

  /** Fills in a prompt, and says who did. */
  async get(
    name: string,
    args: Readonly<Record<string, string>> | undefined,
    options: McpProviderOptions,
  ): Promise<{ readonly provider: McpProvider; readonly filled: McpPromptMessages }> {
    const { provider, name: own } = await this.find(name, options);
    return { provider, filled: await provider.getPrompt(own, args, options) };
  }

  /** Forgets what a provider listed: it has said that it changed. */
  forget(provider: McpProvider): void {
    this.#lists.forget(provider);
  }

  #name(lists: Lists): ReadonlyMap<string, OwnedPrompt> {
    const named = new Map<string, OwnedPrompt>();
    const foreign = new Map<string, OwnedPrompt>();
    for (const [provider, prompts] of lists) {
      for (const prompt of prompts) {
        if (provider.namespace === "") named.set(prompt.name, { provider, prompt });
        else foreign.set(`${provider.namespace}.${prompt.name}`, { provider, prompt });
      }
    }
    const { byId, taken } = assignToolNames(foreign.keys(), this.#naming);
    const isTaken = new Set([...taken, ...named.keys()]);
    for (const [id, name] of byId) {
      const owned = foreign.get(id) as OwnedPrompt;
      named.set(named.has(name) ? nameBesides(id, isTaken, this.#naming) : name, owned);
    }
    return named;
  }
}
