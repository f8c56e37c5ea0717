import { fileURLToPath } from "node:url";
import { startAskedChild } from "./asked-child.ts";

/** What a token is good for, and whose it is. */
export interface TokenFacts {
  readonly client: string;
  readonly account?: string;
  readonly scope?: string;
}

/** A real authorization server in a process of its own. */
export interface AuthorizationServer {
  readonly issuer: string;
  /** Grants that worked, and those that were refused. */
  counts(): Promise<{ readonly success: number; readonly error: number }>;
  /** Gives a refresh token of the client `app`, good for one use. */
  grant(): Promise<string>;
  /** Says what a token is good for; null where it is none. */
  look(token: string): Promise<TokenFacts | null>;
  close(): Promise<void>;
}

/** Starts the server. */
export async function startAuthorizationServer(): Promise<AuthorizationServer> {
  const path = fileURLToPath(new URL("./openapi-children/authorization-server.js", import.meta.url));
  const { first, ask, close } = await startAskedChild<{ issuer: string }>(path);
  return {
    issuer: first.issuer,
    counts: () => ask("counts"),
    grant: () => ask("grant"),
    look: (token) => ask("look", token),
    close,
  };
}
