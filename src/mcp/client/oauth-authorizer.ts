import {
  type AuthProvider,
  auth,
  extractWWWAuthenticateParams,
  UnauthorizedError,
} from "@modelcontextprotocol/client";
import type { OAuthStore } from "./oauth-store.ts";

type UnauthorizedContext = Parameters<NonNullable<AuthProvider["onUnauthorized"]>>[0];

/** The `Authorization` that each refused request was sent with. */
const sentWith = new WeakMap<Response, string>();

/** Remembers what a refused request was sent with, so that a token is renewed once however late the refusals come in. */
export function noteRefusal(response: Response, authorization: string | null): void {
  if (response.status === 401 && authorization !== null) sentWith.set(response, authorization);
}

/** Gets and renews tokens for one server; many requests that are refused at once share one renewal, which may be good only once. */
export function createOAuthAuthorizer(store: OAuthStore): AuthProvider {
  let renewal: Promise<void> | undefined;
  return {
    token: async () => (await store.tokens())?.access_token,
    onUnauthorized: async (context) => {
      const used = sentWith.get(context.response);
      const now = (await store.tokens())?.access_token;
      if (renewal === undefined && used !== undefined && now !== undefined && used !== `Bearer ${now}`)
        return;
      renewal ??= authorize(store, context).finally(() => {
        renewal = undefined;
      });
      await renewal;
    },
  };
}

async function authorize(
  store: OAuthStore,
  { response, serverUrl, fetchFn }: UnauthorizedContext,
): Promise<void> {
  const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(response);
  const options = {
    serverUrl,
    fetchFn,
    ...(resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl }),
    ...(scope === undefined ? {} : { scope }),
  };
  if ((await auth(store, options)) === "AUTHORIZED") return;
  const grant = store.takeGrant?.();
  if (grant === undefined) throw new UnauthorizedError("The person has to authorize this client first.");
  const { code: authorizationCode, iss } = grant;
  const given = { ...options, authorizationCode, ...(iss === undefined ? {} : { iss }) };
  if ((await auth(store, given)) !== "AUTHORIZED") throw new UnauthorizedError("The authorization failed.");
}
