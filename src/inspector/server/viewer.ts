import { callerKey } from "../../gateway/serve/caller-key.ts";
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
