import { CallError } from "../../core/errors/errors.ts";

/** What somebody is told who was let in by rules that are no longer in force. */
export function noLongerLetIn(): CallError {
  return new CallError("UNAUTHENTICATED", "Who may call has changed meanwhile; ask again.", { stack: false });
}
