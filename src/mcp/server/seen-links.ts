/** What is remembered of the links in one server's results. */
export const SEEN_LINKS = {
  links: 10_000,
  /** Characters of one address. */
  length: 8_192,
  /** Characters of all of them. */
  total: 4_194_304,
} as const;

interface Seen {
  readonly uris: Set<string>;
  characters: number;
}

/**
 * Which server's results linked to an address that nobody lists. Each server has room of its own, and nothing is forgotten to
 * make more: an address that a client holds must not come to lead to another server.
 */
export class SeenLinks {
  readonly #seen = new Map<string, Seen>();

  /** Remembers an address as a server's; false where there is no room left, and it has to be qualified instead. */
  note(namespace: string, uri: string): boolean {
    const seen = this.#seen.get(namespace) ?? { uris: new Set(), characters: 0 };
    this.#seen.set(namespace, seen);
    if (seen.uris.has(uri)) return true;
    const { links, length, total } = SEEN_LINKS;
    if (uri.length > length || seen.uris.size >= links || seen.characters + uri.length > total) return false;
    seen.uris.add(uri);
    seen.characters += uri.length;
    return true;
  }

  /** Whose results linked to it; several where more than one claims it. */
  namespacesOf(uri: string): readonly string[] {
    return [...this.#seen].filter(([, { uris }]) => uris.has(uri)).map(([namespace]) => namespace);
  }
}

/** The address a block links to or embeds; nothing for any other block. */
export function linkedUri(block: unknown): string | undefined {
  if (typeof block !== "object" || block === null) return undefined;
  const { type, uri, resource } = block as Readonly<Record<string, unknown>>;
  if (type === "resource_link") return typeof uri === "string" ? uri : undefined;
  if (type !== "resource" || typeof resource !== "object" || resource === null) return undefined;
  const inner = (resource as { readonly uri?: unknown }).uri;
  return typeof inner === "string" ? inner : undefined;
}

/** The same block with another address. */
export function withLinkedUri<T>(block: T, uri: string): T {
  const { resource, type } = block as { readonly resource?: object; readonly type?: unknown };
  return type === "resource" ? { ...block, resource: { ...resource, uri } } : { ...block, uri };
}
