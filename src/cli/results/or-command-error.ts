import { ResultTextError, toResultTextError } from "../../formats/report/result-text-error.ts";
import { CommandError } from "../io.ts";

/** Runs what reads or writes results; what is wrong with them ends the command with the same words. `what` names the result. */
export function orCommandError<T>(what: string, run: () => T): T {
  try {
    return run();
  } catch (thrown) {
    const error = toResultTextError(thrown, what);
    if (error instanceof ResultTextError)
      throw new CommandError(error.message, undefined, { cause: error.cause });
    throw error;
  }
}
