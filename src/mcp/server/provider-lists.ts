import { isPlainObject } from "../../core/json/json-value.ts";
import { cleanText } from "../../core/text/clean-text.ts";
import type { McpProvider, McpProviderOptions } from "../provider.ts";

/** How long a list is good for finding out who owns a name; what clients list is asked for anew each time. */
const FRESH_MS = 5_000;

/** Hears of a provider that could not be asked. */
export type ProviderWarning = (message: string, cause: unknown) => void;

/** Which list of the providers it is. */
export interface ProviderListsOptions<T> {
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

/** The same list of every provider, each kept for a moment; a provider that fails is left out, with a warning. */
export class ProviderLists<T> {
  readonly #providers: () => readonly McpProvider[];
  readonly #list: (provider: McpProvider, options: McpProviderOptions) => Promise<readonly T[]>;
  readonly #warn: ProviderWarning;
  readonly #what: string;
  readonly #kept = new Map<McpProvider, Kept<T>>();

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
        const kept = this.#kept.get(provider);
        const items =
          kept !== undefined && kept.at >= since ? kept.items : await this.#ask(provider, options);
        return [provider, items] as const;
      }),
    );
  }

  /** Forgets what a provider listed: it has said that it changed. */
  forget(provider: McpProvider): void {
    this.#kept.delete(provider);
  }

  async #ask(provider: McpProvider, options: McpProviderOptions): Promise<readonly T[]> {
    try {
      const items = (await this.#list(provider, options)).map(withShownTexts);
      this.#kept.set(provider, { at: Date.now(), items });
      return items;
    } catch (cause) {
      this.#warn(`The ${this.#what} of "${provider.namespace}" could not be listed.`, cause);
      return this.#kept.get(provider)?.items ?? [];
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
