import { describeJsonFault } from "../../core/json/describe-json-fault.ts";
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
    throw new CommandError(`${what} is not JSON: ${describeJsonFault(body, thrown)}`, undefined, {
      cause: thrown,
    });
  }
}
