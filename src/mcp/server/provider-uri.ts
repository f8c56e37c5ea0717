import type { McpProvider } from "../provider.ts";

const SCHEME = /^waybill\+([A-Za-z0-9.-]*):/;

/**
 * An address that names its provider: it reaches a resource whoever else has the same one. Namespaces hold `_`, which the scheme of
 * a URI may not, and no dots.
 */
export function toProviderUri(provider: McpProvider, uri: string): string {
  return `waybill+${provider.namespace.replaceAll("_", ".")}:${uri}`;
}

/** Finds the provider such an address names, and the address there; nothing for any other address. */
export function readProviderUri(
  uri: string,
  providers: readonly McpProvider[],
): { readonly provider: McpProvider; readonly uri: string } | undefined {
  const [start, scheme] = SCHEME.exec(uri) ?? [];
  if (start === undefined || scheme === undefined) return undefined;
  const namespace = scheme.replaceAll(".", "_");
  const provider = providers.find((candidate) => candidate.namespace === namespace);
  return provider && { provider, uri: uri.slice(start.length) };
}
