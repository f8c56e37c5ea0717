import { DIGEST_LENGTH, nameDigest } from "../names.ts";
import type { ToolNaming } from "./mcp-server-options.ts";

/** The longest name of a tool that common hosts take. */
export const MAX_TOOL_NAME = 64;

/** The names of a set of tools. */
export interface ToolNames {
  readonly byId: ReadonlyMap<string, string>;
  /** The names in use, and those that nobody has because several ids would have them. */
  readonly taken: ReadonlySet<string>;
}

/**
 * Names the tools of a set of operations. A name is the operation's id with `_` for what a tool's name may not hold, without the namespace
 * if `prefix` is false. An id whose name would be too long, or would be another's too, has a longer form of it or one with a digest.
 *
 * A name that two ids would have is given to neither, so names depend on the set alone, not on its order, and an id that joins the set
 * never gets a name that another one had.
 */
export function assignToolNames(ids: Iterable<string>, naming: ToolNaming = {}): ToolNames {
  const claims = new Map<string, string | typeof SHARED>();
  const forms = new Map<string, Iterator<string>>();
  const byId = new Map<string, string>();
  const waiting = [...ids];
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
    const form = forms.get(id) ?? nameForms(id, naming);
    forms.set(id, form);
    const name: string = form.next().value;
    const claimed = claims.get(name);
    if (claimed === undefined) {
      claims.set(name, id);
      byId.set(id, name);
      continue;
    }
    claims.set(name, SHARED);
    waiting.push(id);
    if (claimed !== SHARED) waiting.push(claimed);
  }
  return { byId, taken: new Set(claims.keys()) };
}

/** Marks a name that several ids would have. */
const SHARED = Symbol("shared");

/**
 * Names the tool of an operation that is not in the set, because only some callers may see it. Its plain name is used only if no other id
 * can have the same one, and if it is free in the set.
 */
export function nameBesides(id: string, taken: ReadonlySet<string>, naming: ToolNaming = {}): string {
  const plain = prefixedName(id, naming);
  const [namespace = "", name = ""] = [id.slice(0, id.indexOf(".")), id.slice(id.indexOf(".") + 1)];
  // Read back, it splits at its first separator.
  const isOnlyOne =
    (naming.dots === true || !namespace.includes("_")) && plain.endsWith(name) && !HAS_DIGEST.test(name);
  if (isOnlyOne && plain.length <= MAX_TOOL_NAME && !taken.has(plain)) return plain;
  const forms = digestForms(plain, id);
  let form = forms.next().value;
  while (taken.has(form)) form = forms.next().value;
  return form;
}

const HAS_DIGEST = /__[a-z2-7]{13}$/;

/** The names that an id may have, the plainest first, without end. */
function* nameForms(id: string, naming: ToolNaming): Generator<string, never> {
  const prefixed = prefixedName(id, naming);
  const bare = naming.prefix === false ? legalName(id.slice(id.indexOf(".") + 1), naming) : prefixed;
  if (bare.length > MAX_TOOL_NAME) return yield* digestForms(bare, id);
  yield bare;
  if (bare !== prefixed && prefixed.length <= MAX_TOOL_NAME) yield prefixed;
  return yield* digestForms(prefixed, id);
}

/** A name cut to leave room for `__` and 65 bits of a hash of the id; other hashes follow for an id that imitates another's. */
function* digestForms(name: string, id: string): Generator<string, never> {
  const readable = name.slice(0, MAX_TOOL_NAME - DIGEST_LENGTH - 2);
  for (let text = id; ; text += "\n") yield `${readable}__${nameDigest(text)}`;
}

function prefixedName(id: string, naming: ToolNaming): string {
  return legalName(naming.dots === true ? id : id.replace(".", "_"), naming);
}

function legalName(name: string, { dots = false }: ToolNaming): string {
  return name.replace(dots ? /[^A-Za-z0-9_.-]/g : /[^A-Za-z0-9_-]/g, "_");
}
