import { CallError, changedError, isCallError } from "../core/errors/errors.ts";
import type { Source } from "./sources/source.ts";

/** What those who call from elsewhere are told in place of an error for whoever runs the gateway. */
const TOLD = new WeakMap<CallError, string>();

/** What fails for want of a source: it says the whole reason, which is for whoever runs the gateway; see `forCallers`. */
export function sourceError(
  { name, state }: Pick<Source, "name" | "state">,
  what: string,
  otherwise: string,
) {
  const start = `The source "${name}" ${what}:`;
  const isDown = state.status === "down";
  const error = new CallError("UNAVAILABLE", `${start} ${isDown ? state.reason : otherwise}`, {
    details: { source: name },
    retryable: true,
    stack: false,
  });
  if (isDown) TOLD.set(error, `${start} ${state.cause ?? "it cannot be used."}`);
  return error;
}

/** Where an MCP server is, as its errors name it: a program or a host. */
const PLACE = /(MCP server "[^"]{1,64}") \([^)]{1,200}\)/g;

/** The same error for those who call from elsewhere: without what a process wrote or a server answered, and without where that is. */
export function forCallers<T>(thrown: T): T | CallError {
  if (!isCallError(thrown)) return thrown;
  const error: CallError = thrown;
  const message = TOLD.get(error) ?? error.message.replace(PLACE, "$1");
  if (message === error.message) return thrown;
  return changedError(error, { message });
}
