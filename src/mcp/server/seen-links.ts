/** Links that results hold are remembered up to so many; the oldest go first. */
export const MAX_SEEN_LINKS = 10_000;

/** Which server's results linked to an address that nobody lists. */
export class SeenLinks {
  readonly #namespaces = new Map<string, readonly string[]>();

  /** Remembers the addresses that blocks of a result name. */
  note(namespace: string, content: readonly unknown[]): void {
    for (const block of content) {
      const uri = linkedUri(block);
      if (uri === undefined) continue;
      const known = this.#namespaces.get(uri) ?? [];
      this.#namespaces.delete(uri);
      this.#namespaces.set(uri, known.includes(namespace) ? known : [...known, namespace]);
      if (this.#namespaces.size > MAX_SEEN_LINKS) this.#forgetOldest();
    }
  }

  /** Whose results linked to it; several where more than one claims it. */
  namespacesOf(uri: string): readonly string[] {
    return this.#namespaces.get(uri) ?? [];
  }

  #forgetOldest(): void {
    for (const oldest of this.#namespaces.keys()) {
      this.#namespaces.delete(oldest);
      return;
    }
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
