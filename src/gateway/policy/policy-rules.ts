import type { GatewayConfig } from "../config/gateway-config.ts";
import { sourceNames } from "../config/source-names.ts";
import type { Source } from "../sources/source.ts";
import type { SourcePolicy } from "./policy.ts";
import type { PolicyRules } from "./policy-book.ts";

/** The rules of a config for the sources that were made of it. */
export function toPolicyRules(
  config: GatewayConfig,
  sources: readonly Source[],
  sourceOf: (operationId: string) => string | undefined,
): PolicyRules {
  const policies = new Map<string, SourcePolicy | undefined>();
  const names = sourceNames(config);
  for (const kind of ["mcpServers", "openapi"] as const) {
    for (const [key, { policy }] of Object.entries(config[kind] ?? {})) {
      policies.set(names.get(`${kind}.${key}`) ?? key, policy);
    }
  }
  for (const { kind, name } of sources) if (kind === "bus") policies.set(name, config.bus?.policy);
  return { sources: policies, sourceOf, policies: config.policies };
}
