import type { OperationContext } from "../../../core/operation/operation-context.ts";
import type { SecuritySchemePlan } from "../plan.ts";
import { type Addition, addBasic, addBearer, addKey, canHoldKey, keyMisfit } from "./addition.ts";
import { basicMisfit, isBasicForm, isOAuthForm, oauthMisfit, tokenMisfit } from "./credential-forms.ts";
import type { Credential, CredentialValue, OAuthCredential } from "./credentials.ts";
import { findTokenAddress } from "./token-address.ts";
import type { TokenSources } from "./token-sources.ts";
import { functionFailure, showScheme, unauthenticated } from "./unauthenticated.ts";
import { waitFor } from "./wait-for.ts";

/** The call that credentials are for. */
export interface AuthorizeRequest {
  readonly operationId: string;
  readonly context: OperationContext;
  /** The server said 401 to what was given before: something new is wanted. */
  readonly refused: boolean;
}

/** What is added, now or later; nothing where there is no credential for this call. */
export type Answer = Addition | undefined | Promise<Addition | undefined>;

/** One scheme with its credential: the same for every call, or asked for each. */
export type CredentialSlot =
  | { readonly fixed: Addition }
  | { readonly fixed?: undefined; readonly ask: (request: AuthorizeRequest) => Answer };

/** What a scheme takes; nothing for those that no credential of ours can satisfy. */
export type SchemeUse = "apiKey" | "basic" | "bearer" | "oauth2" | "openIdConnect";

/** A scheme as an operation names it. */
export interface NamedScheme {
  readonly name: string;
  readonly plan: SecuritySchemePlan;
  readonly scopes: readonly string[];
}

/** What every slot shares. */
export interface SlotSettings {
  readonly sources: TokenSources;
  /** Where the document was read from. */
  readonly base: URL | undefined;
}

/** How the words begin for a credential that is right, and a scheme that does not say where tokens are had. */
export const UNUSABLE = "cannot be used";

/** Tells what a scheme takes. */
export function useOf(scheme: SecuritySchemePlan): SchemeUse | undefined {
  switch (scheme.type) {
    case "apiKey":
      return canHoldKey(scheme) ? "apiKey" : undefined;
    case "http": {
      const kind = scheme.scheme.toLowerCase();
      return kind === "basic" || kind === "bearer" ? kind : undefined;
    }
    case "oauth2":
    case "openIdConnect":
      return scheme.type;
    case "mutualTLS":
    case "unknown":
      return undefined;
  }
}

/** Binds a credential to a scheme, or says in words that follow its name why it does not fit. */
export function bindCredential(
  scheme: NamedScheme,
  credential: Credential,
  settings: SlotSettings,
): CredentialSlot | string {
  if (typeof credential !== "function") return bindValue(scheme, credential, settings);
  const { name, scopes } = scheme;
  const read = (value: CredentialValue | undefined, request: AuthorizeRequest): Answer => {
    if (value === undefined || value === null) return undefined;
    const slot = bindValue(scheme, value, settings);
    if (typeof slot !== "string") return slot.fixed ?? slot.ask(request);
    throw unauthenticated(`What the credential function of ${showScheme(name)} gave ${slot}.`);
  };
  const ask = (request: AuthorizeRequest): Answer => {
    let given: ReturnType<typeof credential>;
    try {
      given = credential({ scheme: name, scopes, ...request });
    } catch (thrown) {
      throw functionFailure(name, thrown);
    }
    if (!isThenable(given)) return read(given, request);
    const answered = Promise.resolve(given).catch((thrown: unknown) => {
      throw functionFailure(name, thrown);
    });
    return waitFor(answered, request.context.signal).then((value) => read(value, request));
  };
  return { ask };
}

function bindValue(
  scheme: NamedScheme,
  value: CredentialValue,
  settings: SlotSettings,
): CredentialSlot | string {
  const { plan } = scheme;
  const use = useOf(plan);
  if (use === undefined) return "is for a scheme that cannot be used here";
  if (plan.type === "apiKey") {
    if (typeof value !== "string") return "must be the key, a string";
    return keyMisfit(plan, value) ?? { fixed: addKey(plan, value) };
  }
  if (use === "basic") {
    if (!isBasicForm(value)) return "must be a name and a password: { username, password }";
    return basicMisfit(value) ?? { fixed: addBasic(value) };
  }
  if (typeof value === "string") return tokenMisfit(value) ?? { fixed: addBearer(value) };
  if (!isOAuthForm(value)) return "must be a token, or how to get one: { clientId, clientSecret }";
  return oauthMisfit(value) ?? bindOAuth(scheme, value, settings);
}

function bindOAuth(
  scheme: NamedScheme,
  value: OAuthCredential,
  settings: SlotSettings,
): CredentialSlot | string {
  const { name, plan, scopes } = scheme;
  const address = findTokenAddress(plan, value, settings.base);
  if (typeof address === "string") return `${UNUSABLE}: ${address}`;
  const source = settings.sources.get(name, value, address);
  return {
    ask: ({ context, refused }) => {
      const token = source.token({ scopes, context, refused });
      return typeof token === "string" ? addBearer(token) : token.then(addBearer);
    },
  };
}

function isThenable<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof value === "object" && value !== null && "then" in value;
}
