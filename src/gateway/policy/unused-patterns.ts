import { didYouMean, nearestName } from "../../core/text/nearest-name.ts";
import type { GatewayConfig } from "../config/gateway-config.ts";
import { type LoadedConfig, sourceNames } from "../config/loaded-config.ts";
import type { Gateway } from "../gateway.ts";
import { matchesPattern } from "../glob.ts";
import type { Source } from "../sources/source.ts";
import { ANY_NAME } from "./policies.ts";
import type { SourcePolicy } from "./policy.ts";

/** Names that are compared with a pattern that fits none. */
const MOST_COMPARED = 2_000;

/**
 * Finds patterns of policies, and of allow and deny lists, that match nothing there is: most likely a slip, which leaves open what was
 * to be closed. Of sources that are not up nothing is known, and nothing is said.
 */
export function unusedPatterns(
  { sources }: Pick<Gateway, "sources">,
  { config }: Pick<LoadedConfig, "config">,
): readonly string[] {
  return [...unusedPolicies(sources, config), ...unusedNames(sources, config)];
}

function unusedPolicies(sources: readonly Source[], { policies = {} }: GatewayConfig): string[] {
  const ids = sources.flatMap(({ operations }) => operations.map(({ id }) => id as string));
  const namespaces = new Set([...sources.map(({ name }) => name), ...ids.map((id) => id.split(".", 1)[0])]);
  const known = [...[...namespaces].map((name) => `${name}.*`), ...ids];
  const isUsed = (pattern: string): boolean =>
    ids.some((id) => matchesPattern(pattern, id)) ||
    sources.some((source) => source.state.status !== "up" && mayFit(pattern, source)) ||
    sources.some(({ name }) => matchesPattern(pattern, `${name}.${ANY_NAME}`));
  return Object.keys(policies)
    .filter((pattern) => !isUsed(pattern))
    .map((pattern) => `policies[${JSON.stringify(pattern)}] matches no operation${hint(pattern, known)}`);
}

function unusedNames(sources: readonly Source[], config: GatewayConfig): string[] {
  return policiesOf(sources, config).flatMap(({ place, source, policy }) => {
    if (source.state.status !== "up") return [];
    const names = source.operations.map(({ name }) => name);
    return (["allow", "deny"] as const).flatMap((list) =>
      (policy[list] ?? [])
        .filter((pattern) => !names.some((name) => matchesPattern(pattern, name)))
        .map((pattern) => {
          const where = `${place}.policy.${list}`;
          return `${JSON.stringify(pattern)} in ${where} matches no operation of it${hint(pattern, names)}`;
        }),
    );
  });
}

function policiesOf(sources: readonly Source[], config: GatewayConfig) {
  const found: { readonly place: string; readonly source: Source; readonly policy: SourcePolicy }[] = [];
  const names = sourceNames(config);
  const add = (place: string, source: Source | undefined, policy: SourcePolicy | undefined): void => {
    if (source !== undefined && policy !== undefined) found.push({ place, source, policy });
  };
  for (const kind of ["mcpServers", "openapi"] as const) {
    for (const [key, { policy }] of Object.entries(config[kind] ?? {})) {
      const place = `${kind}.${key}`;
      const name = names.get(place);
      add(
        place,
        sources.find((source) => source.name === name),
        policy,
      );
    }
  }
  const bus = sources.find(({ kind }) => kind === "bus");
  add("bus", bus, config.bus?.policy);
  return found;
}

/** Whether a pattern may match operations of a source that are not known yet; those of modules and a bus may be called anything. */
function mayFit(pattern: string, { name, kind }: Source): boolean {
  return kind === "local" || kind === "bus" || matchesPattern(pattern.split(".", 1)[0] as string, name);
}

function hint(pattern: string, known: readonly string[]): string {
  return didYouMean(nearestName(pattern, known.slice(0, MOST_COMPARED)));
}
