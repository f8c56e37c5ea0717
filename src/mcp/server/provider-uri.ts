import { isPlainObject } from "../../core/json/json-value.ts";
import type { McpProvider } from "../provider.ts";

const SCHEME = /^waybill\+([A-Za-z0-9.-]*):/;
const UI = "ui://";
const QUALIFIED_UI = /^ui:\/\/waybill\+([A-Za-z0-9_-]+)\//;
/** Nested objects and lists of a `_meta` in which addresses are looked for; those that are known stand in the first two. */
const META_DEPTH = 8;

/** Tells whether an address is one of a user interface, which MCP Apps have begin with `ui://`. */
export function isUiUri(uri: string): boolean {
  return uri.startsWith(UI);
}

/**
 * An address that names its provider: it reaches a resource whoever else has the same one. Namespaces hold `_`, which the scheme of
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
