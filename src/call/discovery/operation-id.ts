import { CallError, turnDown } from "../../core/errors/errors.ts";

const OPERATION_ID = /^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}\.[A-Za-z0-9_][A-Za-z0-9_./-]{0,199}$/;
const MAX_SHOWN_ID = 200;

/** Tells whether some operation could have this id. */
export function isOperationId(id: string): boolean {
  return OPERATION_ID.test(id);
}

/** The namespace of an id: what stands before its first dot. */
export function namespaceOf(id: string): string {
  return id.slice(0, id.indexOf("."));
}

/** The error of a call of an operation that is not there, in the words a local registry has for it. */
export function operationNotFound(id: string): CallError {
  const message =
    id === "" ? undefined : `There is no operation ${JSON.stringify(id.slice(0, MAX_SHOWN_ID))}.`;
  return turnDown(new CallError("OPERATION_NOT_FOUND", message, { stack: false }), id);
}
