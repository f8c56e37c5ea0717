import { findJsonFault } from "../../core/json/json-fault.ts";
import { JsonTextError, parseJsonText } from "../../core/json/json-text.ts";
import { CommandError } from "../io.ts";

/** Reads JSON that a person gave; `what` names it in the one message about what is wrong and where. */
export function parseGivenJson(text: string, what: string): unknown {
  // A mark that some editors put at the beginning of files.
  const body = text.startsWith("\ufeff") ? text.slice(1) : text;
  try {
    return parseJsonText(body);
  } catch (thrown) {
    if (!(thrown instanceof JsonTextError)) throw thrown;
    throw new CommandError(`${what} is not JSON: ${faultOf(body, thrown)}`, undefined, { cause: thrown });
  }
}

function faultOf(text: string, error: JsonTextError): string {
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
