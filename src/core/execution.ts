import type { CallContext } from "./call-context.ts";
import { closeContext } from "./call-context.ts";
import { isErrorEnvelope, isMarkedEnvelope, localEnvelope, type ResponseEnvelope, withFacts, withOperationId } from "./envelope.ts";
import { CallError } from "./errors.ts";
import { toHandlerError } from "./handler-error.ts";
import { validInput } from "./input.ts";
import type { OperationEntry } from "./operation-entry.ts";
import type { ResultFacts } from "./response-meta.ts";

/** Validates, runs, wraps and checks one call; throws or rejects with nothing but `CallError`. */
export function run(
  entry: OperationEntry,
  input: unknown,
  context: CallContext,
): ResponseEnvelope | Promise<ResponseEnvelope> {
  const parsed = validInput(entry, input);
  return parsed instanceof Promise
    ? parsed.then((value) => invoke(entry, value, context))
    : invoke(entry, parsed, context);
}
