import type { AuthInfo, ServerContext } from "@modelcontextprotocol/server";
import type { Identity } from "../../core/access/identity.ts";
import type { McpPeer } from "./mcp-server.ts";

/** Kept beside the SDK's object rather than in it, where whoever fills in `extra` could forge one. */
const identities = new WeakMap<AuthInfo, Identity>();

/** Says who the SDK's `AuthInfo` stands for; gives the same object back, to be handed to a handler of the SDK. */
export function withIdentity(authInfo: AuthInfo, identity: Identity): AuthInfo {
  identities.set(authInfo, identity);
  return authInfo;
}

/**
 * Who makes a request: whom the transport authenticated, else the fallback. A token that nobody turned into an identity is
 * anonymous: it says that somebody was meant to be checked, so it does not get what the process itself may do.
 */
export function identityOf(context: ServerContext, fallback: McpPeer["identity"]): Identity | undefined {
  const authInfo = context.http?.authInfo;
  if (authInfo !== undefined) return identities.get(authInfo);
  return fallback === "anonymous" ? undefined : fallback;
}
