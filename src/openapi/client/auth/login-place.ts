import type { AuthorizationPlace } from "../../../http/oauth/oauth-discovery.ts";
import type { SecuritySchemePlan } from "../plan.ts";
import { readAddress } from "./credentials.ts";

const WELL_KNOWN = "/.well-known/openid-configuration";

/** Finds where a document says that a person logs in, by the name of a scheme or a kind; nothing where it does not say. */
export function findLoginPlace(
  schemes: Readonly<Record<string, SecuritySchemePlan>>,
  key: string,
  base: URL | undefined,
): AuthorizationPlace | undefined {
  const named = Object.hasOwn(schemes, key) ? [schemes[key] as SecuritySchemePlan] : Object.values(schemes);
  for (const scheme of named) {
    const place = placeOf(scheme, base);
    if (place !== undefined) return place;
  }
  return undefined;
}

function placeOf(scheme: SecuritySchemePlan, base: URL | undefined): AuthorizationPlace | undefined {
  if (scheme.type === "openIdConnect") {
    const url = readAddress(scheme.openIdConnectUrl, base);
    return url?.href.endsWith(WELL_KNOWN) === true
      ? { issuer: url.href.slice(0, -WELL_KNOWN.length) }
      : undefined;
  }
  const flow = scheme.type === "oauth2" ? scheme.flows["authorizationCode"] : undefined;
  const [from, to] = [flow?.authorizationUrl, flow?.tokenUrl].map((address) =>
    typeof address === "string" ? readAddress(address, base)?.href : undefined,
  );
  return from === undefined || to === undefined ? undefined : { authorizationUrl: from, tokenUrl: to };
}
