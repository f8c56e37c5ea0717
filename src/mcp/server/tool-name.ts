import { DIGEST_LENGTH, looksEscaped, nameDigest } from "../names.ts";
import type { ToolNaming } from "./mcp-server-options.ts";

/** The longest name of a tool that common hosts take. */
export const MAX_TOOL_NAME = 64;

const PLAIN = /^[A-Za-z0-9_-]+$/;
const DOTTED = /^[A-Za-z0-9_.-]+$/;

/**
 * The name of the tool that stands for an operation, different for different ids: `namespace_name` (or `namespace.name`), or
 * where that would be too long, ambiguous or hold other characters, what can be read of it, `__`, and 65 bits of a hash of the id.
 */
export function toToolName(id: string, { dots = false }: ToolNaming = {}): string {
  const dot = id.indexOf(".");
  const [namespace, name] = [id.slice(0, dot), id.slice(dot + 1)];
  // Names split at their first separator, so a namespace must not hold it; it never holds a dot.
  const isSplittable = dot > 0 && name !== "" && (dots || !namespace.includes("_"));
  const plain = dots ? id : `${namespace}_${name}`;
  return isSplittable && isFree(plain, dots) ? plain : hashedName(dot < 0 ? id : plain, id, dots);
}

/** The name without its namespace, for where nothing else has it; see `assignToolNames`. */
function toBareName(id: string, { dots = false }: ToolNaming = {}): string {
  const name = id.slice(id.indexOf(".") + 1);
  return isFree(name, dots) ? name : hashedName(name, id, dots);
}

/** The name with a hash even where a plain one would do, for where something else has the plain one. */
export function toHashedName(id: string, { dots = false }: ToolNaming = {}): string {
  return hashedName(dots ? id : id.replace(".", "_"), id, dots);
}

/** Names many operations at once: without prefixes, those whose names clash keep their prefixes, all of them. */
export function assignToolNames(ids: Iterable<string>, naming: ToolNaming = {}): Map<string, string> {
  const names = new Map<string, string>();
  if (naming.prefix !== false) {
    for (const id of ids) names.set(id, toToolName(id, naming));
    return names;
  }
  const owners = new Map<string, string[]>();
  const clashing: string[] = [];
  const take = (id: string, name: string): void => {
    names.set(id, name);
    const sharing = owners.get(name);
    if (sharing === undefined) owners.set(name, [id]);
    else {
      sharing.push(id);
      clashing.push(name);
    }
  };
  for (const id of ids) take(id, toBareName(id, naming));
  const prefixed = new Set<string>();
  // A prefix may give one the bare name of another, which then needs its own; each moves once, so this ends.
  for (let name = clashing.pop(); name !== undefined; name = clashing.pop()) {
    const movers = (owners.get(name) ?? []).filter((id) => !prefixed.has(id));
    owners.set(
      name,
      (owners.get(name) ?? []).filter((id) => prefixed.has(id)),
    );
    for (const id of movers) {
      prefixed.add(id);
      take(id, toToolName(id, naming));
    }
  }
  return names;
}

function isFree(name: string, dots: boolean): boolean {
  return name.length <= MAX_TOOL_NAME && (dots ? DOTTED : PLAIN).test(name) && !looksEscaped(name);
}

function hashedName(readable: string, id: string, dots: boolean): string {
  const kept = readable
    .slice(0, MAX_TOOL_NAME - DIGEST_LENGTH - 2)
    .replace(dots ? /[^A-Za-z0-9_.-]/g : /[^A-Za-z0-9_-]/g, "_");
  return `${kept}__${nameDigest(id)}`;
}
