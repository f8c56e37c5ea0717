import { namedPlace } from "../../../http/address-guard.ts";
import type { OAuthFlowPlan, SecuritySchemePlan } from "../plan.ts";
import { type AuthOptions, isOAuthForm, type OAuthCredential, readAddress } from "./credentials.ts";

/** Where tokens are had: at an endpoint, or where a discovery document says. */
export interface TokenAddress {
  readonly kind: "endpoint" | "discovery";
  readonly url: URL;
}

/** Finds where the tokens of a scheme are had, or says why nowhere. */
export function findTokenAddress(
  scheme: SecuritySchemePlan,
  credential: OAuthCredential,
  base: URL | undefined,
): TokenAddress | string {
  if (credential.tokenUrl !== undefined) {
    const url = readAddress(credential.tokenUrl);
    // Plain http is the user's own choice here, and the guard of the transport knows the host as theirs.
    return url === undefined ? "its tokenUrl is not a URL" : { kind: "endpoint", url };
  }
  const kind = scheme.type === "openIdConnect" ? "discovery" : "endpoint";
  const declared = declaredAddress(scheme, credential);
  if (declared === undefined) return "the document does not say where tokens are had: give its tokenUrl";
  const url = readAddress(declared, base);
  if (url === undefined) return "where the document says that tokens are had is no URL: give its tokenUrl";
  return isSafe(url)
    ? { kind, url }
    : "where the document says that tokens are had is not https: give its tokenUrl";
}

/** Tells whether secrets may be sent to where a document says: encrypted, or without leaving this machine. */
function isSafe(url: URL): boolean {
  return url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url.hostname));
}

/** Gives the hosts and ports that the user's own credentials name, for the guard of the transport: those of every `tokenUrl`. */
export function trustedTokenHosts(auth: AuthOptions | undefined): string[] {
  const hosts = new Set<string>();
  for (const credential of Object.values(auth ?? {})) {
    if (!isOAuthForm(credential) || typeof credential.tokenUrl !== "string") continue;
    const url = readAddress(credential.tokenUrl);
    if (url !== undefined) hosts.add(namedPlace(url));
  }
  return [...hosts];
}

function declaredAddress(scheme: SecuritySchemePlan, credential: OAuthCredential): string | undefined {
  if (scheme.type === "openIdConnect") return scheme.openIdConnectUrl;
  if (scheme.type !== "oauth2") return undefined;
  const flows = Object.entries(scheme.flows);
  if (credential.refreshToken !== undefined) {
    return first(flows, (flow) => flow.refreshUrl) ?? first(flows, (flow) => flow.tokenUrl);
  }
  // Documents often declare one flow of several; the endpoint is the same for all.
  const own = flows.filter(([name]) => name === "clientCredentials");
  return first(own, (flow) => flow.tokenUrl) ?? first(flows, (flow) => flow.tokenUrl);
}

function first(
  flows: readonly (readonly [string, OAuthFlowPlan])[],
  pick: (flow: OAuthFlowPlan) => string | undefined,
): string | undefined {
  for (const [, flow] of flows) {
    const found = pick(flow);
    if (typeof found === "string" && found !== "") return found;
  }
  return undefined;
}

function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(hostname);
}
