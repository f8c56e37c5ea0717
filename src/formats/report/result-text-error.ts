import { isFormatError } from "../format-error.ts";

/** A text in which no tool result can be found: a sentence for people that names the text and the fix. */
export class ResultTextError extends Error {
  override readonly name = "ResultTextError";
}

/** Makes one message of a result that cannot be read or written; anything else stays what it is. */
export function toResultTextError(thrown: unknown, what: string): unknown {
  if (!isFormatError(thrown)) return thrown;
  return new ResultTextError(`${what} cannot be used: ${thrown.message} (${thrown.code})`, { cause: thrown });
}
