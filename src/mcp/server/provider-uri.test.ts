import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../../test/runs.ts";
import type { McpProvider } from "../provider.ts";
import { readProviderUri, toProviderUri, withProviderUi } from "./provider-uri.ts";

const namespace = fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9_-]{0,20}$/);
const uri = fc.oneof(
  fc.string().map((rest) => `ui://${rest}`),
  fc.webUrl(),
  fc.string(),
);
const provider = (name: string) => ({ namespace: name }) as McpProvider;

describe("addresses that name their provider", () => {
  it("Mcp: lead back through any number of hops, and no two meet", () => {
    fc.assert(
      fc.property(
        uri,
        uri,
        fc.array(namespace, { minLength: 1, maxLength: 4 }),
        namespace,
        (one, two, hops, last) => {
          const through = (address: string): string =>
            hops.reduce((at, hop) => toProviderUri(provider(hop), at), address);
          let at = through(one);
          expect(at.startsWith("ui://")).toBe(one.startsWith("ui://"));
          if (one !== two) expect(through(two)).not.toBe(at);
          const other = toProviderUri(provider(last), one);
          if (hops[0] !== last) expect(toProviderUri(provider(hops[0] as string), one)).not.toBe(other);
          for (const hop of [...hops].reverse())
            at = readProviderUri(at, [provider(last), provider(hop)])?.uri ?? "";
          expect(at).toBe(one);
        },
      ),
      runs(500),
    );
  });

  it("Mcp: are found in a _meta up to 8 levels deep, and the rest stays the same object", () => {
    const nested = (depth: number): object => (depth === 1 ? { at: "ui://x" } : { in: nested(depth - 1) });
    const a = provider("a");
    expect(withProviderUi(nested(8), a)).toEqual(
      JSON.parse(JSON.stringify(nested(8)).replace("ui://", "ui://waybill+a/")),
    );
    expect(withProviderUi(nested(9), a)).toEqual(nested(9));
    const plain = { ui: { visibility: ["app"] }, text: "see ui://x", none: null };
    expect(withProviderUi(plain, a)).toBe(plain);
    const odd = JSON.parse('{"__proto__":"ui://x"}');
    expect(JSON.stringify(withProviderUi(odd, a))).toBe('{"__proto__":"ui://waybill+a/x"}');
  });
});
