import type { McpProvider } from "../../mcp/provider.ts";
import type { LiveMcpProviders } from "../../mcp/server/mcp-server-options.ts";
import type { Gateway } from "../gateway.ts";
import type { ProviderGuard, SourceProvider } from "../sources/source-provider.ts";

/** What the sources of a gateway offer besides tools, as they come and go, under their policies. */
export function liveProviders(
  gateway: Pick<Gateway, "sources" | "onSources" | "policies">,
  onRead: ProviderGuard["onRead"] = () => {},
): LiveMcpProviders {
  const { policies } = gateway;
  const guarded = new WeakMap<SourceProvider, SourceProvider>();
  const guard = (provider: SourceProvider): SourceProvider => {
    const known = guarded.get(provider) ?? provider.under({ policies, onRead });
    guarded.set(provider, known);
    return known;
  };
  const read = (): readonly McpProvider[] =>
    gateway.sources.flatMap(({ name, provider }) =>
      provider !== undefined && policies.ofSource(name).isEnabled ? [guard(provider)] : [],
    );
  const stateOf = (providers: readonly McpProvider[]): string =>
    JSON.stringify(
      providers.map(({ capabilities, namespace }) => [capabilities, policies.ofSource(namespace)]),
    );
  return {
    get current() {
      return read();
    },
    onChange(listener) {
      let known = read();
      let states = stateOf(known);
      return gateway.onSources(() => {
        const now = read();
        const present = stateOf(now);
        const isSame =
          present === states && now.length === known.length && now.every((one, i) => one === known[i]);
        known = now;
        states = present;
        // Sources tell of much that is nobody's business who reads resources.
        if (!isSame) listener();
      });
    },
  };
}
