import { isPlainObject } from "../../core/json/json-value.ts";
import type {
  McpPromptMessages,
  McpProvider,
  McpProviderOptions,
  McpResource,
  McpResourceContents,
  McpResourceTemplate,
} from "../provider.ts";
import { compareKeys, type Page, pageOf } from "./page-cursor.ts";
import { resourceNotFound } from "./protocol-errors.ts";
import { ProviderLists, type ProviderWarning, providersFor } from "./provider-lists.ts";
import { isUiUri, readProviderUri, toProviderUri, withProviderUi } from "./provider-uri.ts";
import { linkedUri, SeenLinks, withLinkedUri } from "./seen-links.ts";
import { mayMatch } from "./uri-template.ts";

/** A resource and who has it. */
export interface OwnedResource {
  readonly provider: McpProvider;
  /** Its address there. */
  readonly uri: string;
}

/** Times the links of one result are compared with templates. */
const MAX_MATCHES = 100_000;

/**
 * The resources of all providers under one roof: the same addresses where they are unique, qualified ones where they are not. Those of
 * user interfaces are always qualified, because tools name them before anybody has listed resources.
 */
export class ResourceDirectory {
  readonly #providers: () => readonly McpProvider[];
  readonly #links = new SeenLinks();
  readonly #resources: ProviderLists<McpResource>;
  readonly #templates: ProviderLists<McpResourceTemplate>;

  constructor(providers: () => readonly McpProvider[], warn: ProviderWarning) {
    this.#providers = providers;
    this.#resources = new ProviderLists(() => this.providers, {
      what: "resources",
      list: (provider, asked) => provider.listResources(asked),
      warn,
    });
    this.#templates = new ProviderLists(() => this.providers, {
      what: "resource templates",
      list: (provider, asked) => provider.listResourceTemplates(asked),
      warn,
    });
  }

  /** Those that have resources now. */
  get providers(): readonly McpProvider[] {
    return this.#providers().filter(({ capabilities }) => capabilities.resources);
  }

  /** One page of all resources, sorted by address. */
  async list(cursor: unknown, pageSize: number, options: McpProviderOptions): Promise<Page<McpResource>> {
    const owned = await this.#resources.all(options);
    const items = qualify(
      owned,
      ({ uri }) => uri,
      (resource, uri) => ({ ...resource, uri }),
    );
    return pageOf(items, ({ uri }) => uri, cursor, pageSize);
  }

  /** One page of all templates, in the same way. */
  async listTemplates(
    cursor: unknown,
    pageSize: number,
    options: McpProviderOptions,
  ): Promise<Page<McpResourceTemplate>> {
    const owned = await this.#templates.all(options);
    const items = qualify(
      owned,
      ({ uriTemplate }) => uriTemplate,
      (template, uriTemplate) => ({ ...template, uriTemplate }),
    );
    return pageOf(items, ({ uriTemplate }) => uriTemplate, cursor, pageSize);
  }

  /** Reads a resource from whoever has it. */
  async read(uri: string, options: McpProviderOptions): Promise<McpResourceContents> {
    const owned = await this.find(uri, options);
    const found = await owned.provider.readResource(owned.uri, options);
    if (owned.uri === uri) return found;
    const contents = found.contents.map((part) => {
      const own = withOwnMeta(part, owned.provider);
      if (part["uri"] === owned.uri) return { ...own, uri };
      const isUi = typeof part["uri"] === "string" && isUiUri(part["uri"]);
      return isUi ? { ...own, uri: toProviderUri(owned.provider, part["uri"] as string) } : own;
    });
    return { ...found, contents };
  }

  /** Finds who has a resource; throws "not found" where nobody does, or several do. */
  async find(uri: string, options: McpProviderOptions): Promise<OwnedResource> {
    const named = readProviderUri(uri, this.#for(options));
    if (named !== undefined) return named;
    this.#refuseHidden(uri);
    const owners = await this.#ownersOf(uri, options);
    const [provider, ...others] = owners;
    if (provider === undefined) throw resourceNotFound(uri);
    if (others.length === 0) return { provider, uri };
    const choices = owners.map((owner) => toProviderUri(owner, uri)).join(" or ");
    throw resourceNotFound(uri, `Several servers have one; read ${choices}.`);
  }

  /** Finds the template a completion is asked for. */
  async findTemplate(uriTemplate: string, options: McpProviderOptions): Promise<OwnedResource> {
    const providers = this.#for(options);
    const named = readProviderUri(uriTemplate, providers);
    if (named !== undefined) return named;
    this.#refuseHidden(uriTemplate);
    const lists = await this.#templates.recent(options);
    const [found] = lists.find(([, items]) => items.some((item) => item.uriTemplate === uriTemplate)) ?? [];
    const provider = found ?? (providers.length === 1 ? providers[0] : undefined);
    if (provider === undefined) throw resourceNotFound(uriTemplate);
    return { provider, uri: uriTemplate };
  }

  /** What clients call a resource of a provider: both of its addresses. */
  addressesOf(provider: McpProvider, uri: string): readonly string[] {
    return provider.namespace === "" ? [uri] : [uri, toProviderUri(provider, uri)];
  }

  /**
   * The blocks of a provider's result with addresses that lead back to it: qualified where the plain one would lead elsewhere, or
   * nowhere in particular, and for user interfaces; the others are remembered as its own.
   */
  async ownLinks<T>(
    namespace: string,
    given: readonly T[],
    options: McpProviderOptions,
  ): Promise<readonly T[]> {
    // A plain result is told by its blocks alone.
    if (!given.some(mayNameResource)) return given;
    const content = this.#withOwnUi(namespace, given);
    const providers = this.#for(options);
    const owner = providers.find((provider) => provider.namespace === namespace);
    // With one provider there is nobody else to ask.
    if (owner === undefined || providers.length < 2) return content;
    const uris = new Set(
      content.map(linkedUri).filter((uri) => uri !== undefined && !isUiUri(uri)) as string[],
    );
    if (uris.size === 0) return content;
    const shared = await this.#sharedOf(owner, uris, options);
    const qualified = new Set(
      [...uris].filter((uri) => shared.has(uri) || !this.#links.note(namespace, uri)),
    );
    if (qualified.size === 0) return content;
    return content.map((block) =>
      qualified.has(linkedUri(block) ?? "")
        ? withLinkedUri(block, toProviderUri(owner, linkedUri(block) as string))
        : block,
    );
  }

  /** The same for a `_meta` of its result. */
  ownMeta<T>(namespace: string, meta: T): T {
    return meta !== undefined && this.has(namespace) ? withProviderUi(meta, { namespace }) : meta;
  }

  /** Whether there is a provider of that name besides this process, whatever it has now. */
  has(namespace: string): boolean {
    return namespace !== "" && this.#providers().some((provider) => provider.namespace === namespace);
  }

  /** The same for the messages of a provider's prompt. */
  async ownMessages(
    namespace: string,
    filled: McpPromptMessages,
    options: McpProviderOptions,
  ): Promise<McpPromptMessages> {
    const content = filled.messages.map((message) => message["content"]);
    const own = await this.ownLinks(namespace, content, options);
    if (own === content) return filled;
    return { ...filled, messages: filled.messages.map((message, i) => ({ ...message, content: own[i] })) };
  }

  /** Forgets what a provider listed: it has said that it changed. */
  forget(provider: McpProvider): void {
    this.#resources.forget(provider);
    this.#templates.forget(provider);
  }

  /** The blocks with the addresses of user interfaces qualified, also of a provider that has no resources and embeds what it shows. */
  #withOwnUi<T>(namespace: string, content: readonly T[]): readonly T[] {
    if (!this.has(namespace)) return content;
    const own = content.map((block) => withOwnUi(block, { namespace }));
    return own.some((block, index) => block !== content[index]) ? own : content;
  }

  /** An address that names a provider is that provider's alone, also where it is not there for who is asking. */
  #refuseHidden(uri: string): void {
    if (readProviderUri(uri, this.providers) !== undefined) throw resourceNotFound(uri);
  }

  /** Those of them that are there for who is asking. */
  #for(options: McpProviderOptions): readonly McpProvider[] {
    return providersFor(this.providers, options);
  }

  /** Those who list it, else those with a template for it, else whose results linked to it. */
  async #ownersOf(uri: string, options: McpProviderOptions): Promise<readonly McpProvider[]> {
    const providers = this.#for(options);
    if (providers.length <= 1) return providers;
    const lists = await this.#resources.recent(options);
    const listing = lists.filter(([, items]) => items.some((item) => item.uri === uri));
    if (listing.length > 0) return preferLocal(listing.map(([provider]) => provider));
    const templates = await this.#templates.recent(options);
    const matching = templates.filter(([, items]) => items.some((item) => mayMatch(item.uriTemplate, uri)));
    if (matching.length > 0) return preferLocal(matching.map(([provider]) => provider));
    const linking = this.#links.namespacesOf(uri);
    return providers.filter(({ namespace }) => linking.includes(namespace));
  }

  /** Those addresses under which somebody else would be found, alone or too. */
  async #sharedOf(
    owner: McpProvider,
    uris: ReadonlySet<string>,
    options: McpProviderOptions,
  ): Promise<ReadonlySet<string>> {
    const listed = new Map<string, Set<McpProvider>>();
    for (const [provider, items] of await this.#resources.recent(options)) {
      for (const { uri } of items) {
        if (uris.has(uri)) listed.set(uri, (listed.get(uri) ?? new Set()).add(provider));
      }
    }
    const templates = await this.#templates.recent(options);
    const others = templates.filter(([provider]) => provider !== owner).flatMap(([, items]) => items);
    // A qualified address is right in any case, so what is too much to find out need not be.
    const isTooMuch = uris.size * others.length > MAX_MATCHES;
    const isShared = (uri: string): boolean => {
      if (readProviderUri(uri, this.providers) !== undefined) return true;
      const listing = listed.get(uri);
      if (listing !== undefined) return listing.size > 1 || !listing.has(owner);
      if (isTooMuch || others.some(({ uriTemplate }) => mayMatch(uriTemplate, uri))) return true;
      return this.#links.namespacesOf(uri).some((namespace) => namespace !== owner.namespace);
    };
    return new Set([...uris].filter(isShared));
  }
}

/** A resource, or what was read of it, with the addresses in its `_meta` qualified. */
function withOwnMeta<T>(item: T, provider: Pick<McpProvider, "namespace">): T {
  const { _meta: meta } = item as { readonly _meta?: unknown };
  const own = meta === undefined ? meta : withProviderUi(meta, provider);
  return own === meta ? item : { ...item, _meta: own };
}

function mayNameResource(block: unknown): boolean {
  if (typeof block !== "object" || block === null) return false;
  return "_meta" in block || linkedUri(block) !== undefined;
}

/** The same for a block of content, and for what it links to or embeds. */
function withOwnUi<T>(block: T, provider: Pick<McpProvider, "namespace">): T {
  if (typeof block !== "object" || block === null) return block;
  const uri = linkedUri(block);
  const own = withOwnMeta(block, provider);
  const { resource } = own as { readonly resource?: unknown };
  const inner = isPlainObject(resource) ? withOwnMeta(resource, provider) : resource;
  const shown = inner === resource ? own : { ...own, resource: inner };
  return uri !== undefined && isUiUri(uri) ? withLinkedUri(shown, toProviderUri(provider, uri)) : shown;
}

/** What this process has keeps its plain address. */
function preferLocal(owners: readonly McpProvider[]): readonly McpProvider[] {
  const local = owners.filter(({ namespace }) => namespace === "");
  return local.length > 0 ? local : owners;
}

function qualify<T>(
  owned: readonly (readonly [McpProvider, readonly T[]])[],
  keyOf: (item: T) => string,
  withKey: (item: T, key: string) => T,
): readonly T[] {
  const providers = owned.map(([provider]) => provider);
  const counts = new Map<string, number>();
  for (const [, items] of owned) {
    for (const key of new Set(items.map(keyOf))) counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const qualified = owned.flatMap(([provider, items]) =>
    items.map((item) => {
      if (provider.namespace === "") return item;
      const key = keyOf(item);
      const own = withOwnMeta(item, provider);
      // The qualified address of another gateway would be taken for one of this one.
      const isShared =
        isUiUri(key) || (counts.get(key) ?? 0) > 1 || readProviderUri(key, providers) !== undefined;
      return isShared ? withKey(own, toProviderUri(provider, key)) : own;
    }),
  );
  return qualified.toSorted((a, b) => compareKeys(keyOf(a), keyOf(b)));
}
