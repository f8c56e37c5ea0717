import { type OAuthClientProvider, UnauthorizedError } from "@modelcontextprotocol/client";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { KeptCredentials } from "./kept-credentials.ts";

type Credentials = Pick<
  OAuthClientProvider,
  "clientInformation" | "saveClientInformation" | "tokens" | "saveTokens" | "invalidateCredentials"
>;

/** What is known by authorization server. */
export interface OAuthCredentials {
  readonly provider: Credentials;
  /** Tells whether a client of one's own belongs to this authorization server, by default to that of the flow under way. */
  isHome(issuer: string | undefined): Promise<boolean>;
}

/** A client of one's own, if there is one. */
interface OwnClient {
  readonly clientId?: string | undefined;
  readonly clientSecret?: string | undefined;
  readonly issuer?: string | undefined;
  /** Without it nobody is there to consent to another client in its place. */
  readonly redirectUrl?: string | undefined;
}

/**
 * Keeps clients and tokens apart by authorization server; a client of one's own belongs to one of them, and is shown to no
 * other. `takeWanted` gives the scope that was last asked for, once.
 */
export function createOAuthCredentials(
  own: OwnClient,
  kept: KeptCredentials,
  takeWanted: () => string | undefined,
): OAuthCredentials {
  const { clientId, clientSecret } = own;
  /** That of the flow under way. */
  let at: string | undefined;
  const provider: Credentials = {
    clientInformation: async (context) => {
      at = context?.issuer ?? at;
      const known = (await kept.of(at))?.client;
      if (clientId === undefined) return known as never;
      if (!(await isHome(own, kept, at))) {
        if (own.redirectUrl === undefined) throw notHome();
        return known as never;
      }
      const shown = { client_id: clientId, ...(at !== undefined && { issuer: at }) };
      return clientSecret === undefined ? shown : { ...shown, client_secret: clientSecret };
    },
    saveClientInformation: (client, context) => kept.keep({ issuer: context?.issuer ?? at ?? "", client }),
    tokens: async (context) => (await kept.of(context?.issuer))?.tokens as never,
    saveTokens: async (tokens, context) => {
      const issuer = context?.issuer ?? at ?? "";
      // A server that names no scope gave what was asked for, or leaves what there was.
      const wanted = takeWanted();
      const scope = tokens.scope ?? wanted ?? (await kept.of(issuer))?.tokens?.["scope"];
      await kept.keep({ issuer, tokens: { ...tokens, ...(scope !== "" && { scope }) } });
    },
    invalidateCredentials: async (what) => {
      if (what === "client" || what === "tokens") return await kept.forget([what], at);
      if (what === "all") await kept.forget(["client", "tokens"], undefined);
      await kept.drop(what === "all" ? ["discovery", "verifier", "home"] : [what]);
    },
  };
  return { provider, isHome: (issuer) => isHome(own, kept, issuer ?? at) };
}

/** Says that a client of one's own is not to be shown to an authorization server. */
export function notHome(): UnauthorizedError {
  return new UnauthorizedError("The clientId belongs to another authorization server.");
}

/** The first that a client is shown to is its own, where nobody says which. */
async function isHome(
  { issuer, clientId }: OwnClient,
  kept: KeptCredentials,
  at: string | undefined,
): Promise<boolean> {
  const known = await kept.get("home");
  const met = isPlainObject(known) && known["clientId"] === clientId ? known["issuer"] : undefined;
  const home = issuer ?? met;
  if (home !== undefined) return withoutSlash(home) === withoutSlash(at);
  if (at !== undefined) await kept.set("home", { clientId, issuer: at });
  return true;
}

function withoutSlash(issuer: unknown): string {
  return String(issuer).replace(/\/$/, "");
}
