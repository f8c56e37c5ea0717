import { describeJsonFault } from "../../core/json/describe-json-fault.ts";
import { JsonTextError, parseJsonText } from "../../core/json/json-text.ts";
import { ResultTextError } from "./result-text-error.ts";

/** Reads JSON that somebody gave; `what` names it in the one message about what is wrong and where. */
export function parseResultJson(text: string, what: string): unknown {
  try {
    return parseJsonText(text);
  } catch (thrown) {
    if (!(thrown instanceof JsonTextError)) throw thrown;
    throw new ResultTextError(`${what} is not JSON: ${describeJsonFault(text, thrown)}`, { cause: thrown });
  }
}
