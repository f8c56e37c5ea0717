import { AccessRule } from "../../core/access/access.ts";
import { HeldIdentity, type Identity } from "../../core/access/identity.ts";
import { CallError } from "../../core/errors/errors.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { Gateway } from "../../gateway/gateway.ts";
import { explainMissing } from "../../gateway/missing-operation.ts";
import { callerKey } from "../../gateway/serve/gateway-auth.ts";
import type { RouteCaller } from "../../gateway/serve/gateway-front.ts";

/** Holders of this scope see the calls of others and all about sources, and may have sources tried again. */
export const INSPECT_SCOPE = "waybill:inspect";

/** Who looks at a gateway, and how much of it they may see. */
export interface Viewer extends RouteCaller {
  /** Sees the calls of others, and all about sources. */
  readonly isOperator: boolean;
}

/** Says how much a caller may see: all of it with the scope, or where nobody is asked who they are. */
export function viewerOf(caller: RouteCaller): Viewer {
  const isOperator = !caller.isAuthOn || caller.identity?.scopes?.includes(INSPECT_SCOPE) === true;
  return { ...caller, isOperator };
}

/** Tells whether somebody may see a call of this caller, by the key of that one. */
export function maySee({ isOperator, identity }: Viewer, caller: string | undefined): boolean {
  return isOperator || (caller !== undefined && caller === callerKey(identity));
}

const MOST_SHOWN = 200;

/** Finds an operation that the caller may call; one they may not is not there, like one that there never was. */
export function findVisible(
  { executor, sources }: Pick<Gateway, "executor" | "sources">,
  id: string,
  { identity, isOperator }: Viewer,
): AnyOperation {
  const operation = executor.get(id);
  if (operation !== undefined && isVisible(operation, identity)) return operation;
  // Which sources there are, and how they are, is for operators.
  const explained = operation === undefined && isOperator ? explainMissing(id, sources) : undefined;
  throw (
    explained ??
    new CallError(
      "OPERATION_NOT_FOUND",
      `There is no operation ${JSON.stringify(id.slice(0, MOST_SHOWN))}.`,
      { stack: false },
    )
  );
}

/** The same as whether the registry lists it, without going through all the others. */
function isVisible({ id, access, visibility }: AnyOperation, identity: Identity | undefined): boolean {
  if (visibility === "internal") return false;
  return access === undefined || new AccessRule(access, id).admits(identity && HeldIdentity.of(identity));
}
