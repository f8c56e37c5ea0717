import { isPlainObject } from "../../../core/json/json-value.ts";
import { linkedUri, withLinkedUri } from "../../content-blocks.ts";
import { invalidParams, resourceNotFound } from "../../protocol/messages.ts";
import type {
  McpPromptMessages,
  McpProvider,
  McpProviderOptions,
  McpResource,
  McpResourceContents,
  McpResourceTemplate,
} from "../../provider.ts";
import { SeenLinks } from "../results/stored-results.ts";
import { ProviderLists, type ProviderWarning, providersFor } from "./provider-set.ts";

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
    return pageOf(items, ({ uri }) => uri, { cursor, pageSize });
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
    return pageOf(items, ({ uriTemplate }) => uriTemplate, { cursor, pageSize });
  }

  /** Reads a resource from the provider that has it. */
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

const SCHEME = /^waybill\+([A-Za-z0-9.-]*):/;
const UI = "ui://";
const QUALIFIED_UI = /^ui:\/\/waybill\+([A-Za-z0-9_-]+)\//;
/** Nested objects and lists of a `_meta` in which addresses are looked for; those that are known stand in the first two. */
const META_DEPTH = 8;

/** Tells whether an address is one of a user interface, which MCP Apps have begin with `ui://`. */
function isUiUri(uri: string): boolean {
  return uri.startsWith(UI);
}

/**
 * An address that names its provider: it reaches a resource even where others have the same one. Namespaces hold `_`, which the scheme of
 * a URI may not, and no dots. An address of a user interface stays one.
 */
export function toProviderUri({ namespace }: Pick<McpProvider, "namespace">, uri: string): string {
  return isUiUri(uri)
    ? `${UI}waybill+${namespace}/${uri.slice(UI.length)}`
    : `waybill+${namespace.replaceAll("_", ".")}:${uri}`;
}

/** Finds the provider such an address names, and the address there; nothing for any other address. */
export function readProviderUri(
  uri: string,
  providers: readonly McpProvider[],
): { readonly provider: McpProvider; readonly uri: string } | undefined {
  const isUi = isUiUri(uri);
  const [start, named] = (isUi ? QUALIFIED_UI : SCHEME).exec(uri) ?? [];
  if (start === undefined || named === undefined) return undefined;
  const namespace = named.replaceAll(".", "_");
  const provider = providers.find((candidate) => candidate.namespace === namespace);
  return provider && { provider, uri: `${isUi ? UI : ""}${uri.slice(start.length)}` };
}

/** The `_meta` of a provider's tool, result, resource or block with its `ui://` addresses qualified; the same one where it names none. */
export function withProviderUi<T>(meta: T, provider: Pick<McpProvider, "namespace">): T {
  return qualifyUi(meta, provider, META_DEPTH) as T;
}

function qualifyUi(value: unknown, provider: Pick<McpProvider, "namespace">, depth: number): unknown {
  if (typeof value === "string") return isUiUri(value) ? toProviderUri(provider, value) : value;
  if (depth === 0) return value;
  if (Array.isArray(value)) {
    const items = value.map((item: unknown) => qualifyUi(item, provider, depth - 1));
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  if (!isPlainObject(value)) return value;
  const members = Object.entries(value).map(
    ([key, member]) => [key, qualifyUi(member, provider, depth - 1)] as const,
  );
  return members.some(([key, member]) => member !== value[key]) ? Object.fromEntries(members) : value;
}

/** A URI template that URIs can be matched with. */
export interface UriMatcher {
  /** The values of the variables, decoded; nothing for a URI of another form. */
  match(uri: string): Readonly<Record<string, string>> | undefined;
  readonly variables: readonly string[];
}

interface Part {
  readonly literal: string;
  readonly variable: string;
  readonly isPath: boolean;
}

const EXPRESSION = /\{([^{}]*)\}/g;
const SUPPORTED = /^(\+?)([A-Za-z0-9_][A-Za-z0-9_.]*)$/;
/** Characters of an address; longer ones are nobody's. */
export const MAX_URI = 65_536;

/** Reads a template of RFC 6570, level 1 and `{+path}`; throws a `TypeError` for anything else. */
export function parseUriTemplate(template: string): UriMatcher {
  const parts: Part[] = [];
  let end = 0;
  for (const found of template.matchAll(EXPRESSION)) {
    const [, plus, variable] = SUPPORTED.exec(found[1] ?? "") ?? [];
    if (variable === undefined) {
      throw new TypeError(`The URI template ${JSON.stringify(template)} uses more than {name} and {+name}.`);
    }
    parts.push({ literal: template.slice(end, found.index), variable, isPath: plus === "+" });
    end = found.index + found[0].length;
  }
  const tail = template.slice(end);
  return {
    variables: parts.map(({ variable }) => variable),
    match: (uri) => (uri.length > MAX_URI ? undefined : matchParts(uri, parts, tail)),
  };
}

/** Tells whether a URI may come from a template of any level: whether it begins as the template does. */
export function mayMatch(template: string, uri: string): boolean {
  const [prefix = ""] = template.split("{", 1);
  try {
    return parseUriTemplate(template).match(uri) !== undefined;
  } catch {
    return prefix !== "" && uri.startsWith(prefix);
  }
}

/** Each variable ends where the text after it first appears, so that matching takes one pass, whatever the template. */
function matchParts(uri: string, parts: readonly Part[], tail: string): Record<string, string> | undefined {
  const values: Record<string, string> = Object.create(null);
  let at = 0;
  for (const [i, { literal, variable, isPath }] of parts.entries()) {
    if (!uri.startsWith(literal, at)) return undefined;
    at += literal.length;
    const next = parts[i + 1]?.literal;
    const end = next === undefined ? uri.length - tail.length : next === "" ? at : uri.indexOf(next, at);
    if (end < at) return undefined;
    const value = decode(uri.slice(at, end), isPath);
    if (value === undefined || value === "") return undefined;
    values[variable] = value;
    at = end;
  }
  return at === uri.length - tail.length && uri.endsWith(tail) ? values : undefined;
}

function decode(text: string, isPath: boolean): string | undefined {
  if (!isPath && /[/?#]/.test(text)) return undefined;
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** One page of a list, and where the next one begins. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly nextCursor?: string;
}

interface PageOptions {
  /** What the page before ended with, as its reader sent it back. @default the first page */
  readonly cursor?: unknown;
  readonly pageSize: number;
}

/** A cursor longer than this was not made here. */
const MAX_CURSOR = 20_000;

/**
 * Takes one page out of a list that is sorted by key. The cursor holds the last key of the page before, so it stays good when
 * items come and go between two pages: nothing that stays is skipped or repeated.
 */
export function pageOf<T>(
  sorted: readonly T[],
  keyOf: (item: T) => string,
  { cursor, pageSize }: PageOptions,
): Page<T> {
  const start = cursor === undefined ? 0 : indexAfter(sorted, keyOf, readCursor(cursor));
  const items = start === 0 && sorted.length <= pageSize ? sorted : sorted.slice(start, start + pageSize);
  const last = items.at(-1);
  const isEnd = last === undefined || start + items.length >= sorted.length;
  return isEnd ? { items } : { items, nextCursor: toCursor(keyOf(last)) };
}

/** Compares keys as `pageOf` expects them sorted: by UTF-16 units. */
export function compareKeys(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function toCursor(key: string): string {
  return Buffer.from(`w1:${key}`, "utf16le").toString("base64url");
}

function readCursor(cursor: unknown): string {
  if (typeof cursor === "string" && cursor.length <= MAX_CURSOR) {
    const text = Buffer.from(cursor, "base64url").toString("utf16le");
    if (text.startsWith("w1:") && toCursor(text.slice(3)) === cursor) return text.slice(3);
  }
  throw invalidParams("The cursor is not one this server gave; list again from the beginning.");
}

function indexAfter<T>(sorted: readonly T[], keyOf: (item: T) => string, key: string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareKeys(keyOf(sorted[middle] as T), key) <= 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
