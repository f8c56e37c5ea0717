import type { CallView } from "../../protocol.ts";
import { lineJson } from "../parts/json-text.ts";

/** What the gateway remembers in the place of a secret. */
const MASK = "•••";

/** Gives a remembered input without its secrets, what stands in their place would be taken for them; the very same where it has none. */
export function withoutMasked(
  input: CallView["input"],
): CallView["input"] | { readonly value?: unknown; readonly omitted?: never } {
  const json = lineJson(input);
  if (!json.includes(`"${MASK}"`)) return input;
  // A list without one of its items would be another list.
  return JSON.parse(json, (_, part: unknown) =>
    part === MASK || (Array.isArray(part) && part.includes(undefined)) ? undefined : part,
  );
}
