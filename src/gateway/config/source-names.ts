import type { GatewayConfig } from "./gateway-config.ts";

/** The most characters of a namespace. */
const MOST_CHARACTERS = 64;

/**
 * Gives every source of a config the namespace of its operations, by `mcpServers.X` and `openapi.Y`, in the order of the config:
 * letters, digits, `_` and `-` stay, anything else becomes `_`, and a name that is taken gets `_2`, `_3` and so on.
 */
export function sourceNames(
  config: Pick<GatewayConfig, "mcpServers" | "openapi">,
): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  const taken = new Set<string>();
  const next = new Map<string, number>();
  for (const kind of ["mcpServers", "openapi"] as const) {
    for (const key of Object.keys(config[kind] ?? {})) {
      const name = toFreeName(
        key.replace(/[^A-Za-z0-9_-]/gu, "_").slice(0, MOST_CHARACTERS) || "_",
        taken,
        next,
      );
      taken.add(name);
      names.set(`${kind}.${key}`, name);
    }
  }
  return names;
}

/** `next` keeps where the numbers of a name have come to, so that many of the same name take no longer than others. */
function toFreeName(wanted: string, taken: ReadonlySet<string>, next: Map<string, number>): string {
  if (!taken.has(wanted)) return wanted;
  for (let number = next.get(wanted) ?? 2; ; number++) {
    const name = `${wanted.slice(0, MOST_CHARACTERS - `_${number}`.length)}_${number}`;
    if (taken.has(name)) continue;
    next.set(wanted, number + 1);
    return name;
  }
}
