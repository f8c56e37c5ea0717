import { findJsonFault } from "./json-fault.ts";
import type { JsonTextError } from "./json-text.ts";

/** Says where a text stops being JSON, and what stands there, as the end of a sentence. */
export function describeJsonFault(text: string, error: JsonTextError): string {
  const at = findJsonFault(text);
  if (text.trim() === "") return "it is empty.";
  if (at >= text.length) {
    const isDeep = error.message.includes("nested");
    return isDeep ? error.message : "it ends too early.";
  }
  const before = text.slice(0, at).split("\n");
  const shown = JSON.stringify(text.slice(at, at + 12));
  return `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1} has ${shown}, which cannot stand there.`;
}
