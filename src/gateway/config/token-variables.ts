import { isPlainObject } from "../../core/json/json-value.ts";
import { parseReferences, ReferenceMistake } from "./references.ts";

/** Finds the environment variables that tokens of callers are taken from, by who holds them, in a config as it was written. */
export function tokenVariables(config: unknown): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const tokens = memberAt(config, ["serve", "auth", "tokens"]);
  if (!isPlainObject(tokens)) return found;
  for (const [holder, entry] of Object.entries(tokens)) {
    const token = memberAt(entry, ["token"]);
    const name = typeof token === "string" ? variableIn(token) : undefined;
    if (name !== undefined) found.set(holder, name);
  }
  return found;
}

function memberAt(value: unknown, path: readonly string[]): unknown {
  let found = value;
  for (const name of path)
    found = isPlainObject(found) && Object.hasOwn(found, name) ? found[name] : undefined;
  return found;
}

/** The variable a text is, where it is nothing else. */
function variableIn(text: string): string | undefined {
  try {
    const [part, ...more] = parseReferences(text);
    return part !== undefined && "env" in part && more.length === 0 ? part.env : undefined;
  } catch (thrown) {
    if (thrown instanceof ReferenceMistake) return undefined;
    throw thrown;
  }
}
