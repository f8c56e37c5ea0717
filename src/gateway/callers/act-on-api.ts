import type { Identity } from "../../core/access/identity.ts";
import { changedError, isCallError } from "../../core/errors/errors.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { OperationContext } from "../../core/operation/operation-context.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import type { HttpAuthorizer } from "../../http/oauth/oauth-authorizer.ts";
import { StoreFault } from "../../http/oauth/store-key.ts";
import {
  type Credential,
  type CredentialRequest,
  unauthenticated,
} from "../../openapi/client/auth/credentials.ts";
import { takeNote } from "../policy/call-notes.ts";
import { narrowRefusal, openAuthorizer, type ScopeNotes } from "../sources/source-login.ts";
import type { ActingSource } from "./acting-source.ts";
import type { CallerGrant, CallerLogins, GrantAsk } from "./caller-logins.ts";
import { type CallerTokens, issuerIn } from "./caller-tokens.ts";

/** Callers whose tokens are renewed by one authorizer each; those not used for longest get another one. */
const MOST_AUTHORIZERS = 1_000;

/** Makes the credential of an API that is asked as each caller: what the caller has for it, or is asked for. */
export function actOnApi(
  source: ActingSource,
  logins: CallerLogins,
  tokens: CallerTokens | undefined,
): Credential {
  if (tokens !== undefined) return byToken(source, tokens);
  const authorizers = new Map<
    string,
    { readonly store: unknown; readonly authorizer: Promise<HttpAuthorizer> }
  >();
  const given = new WeakMap<
    OperationContext,
    { readonly grant: string; readonly token: string | undefined }
  >();
  const authorizerOf = ({ id, store }: CallerGrant, server: string): Promise<HttpAuthorizer> => {
    const known = authorizers.get(id);
    const found =
      known?.store === store
        ? known
        : { store, authorizer: openAuthorizer(store, source.login.client, server) };
    authorizers.delete(id);
    authorizers.set(id, found);
    const [oldest] = authorizers.keys();
    if (authorizers.size > MOST_AUTHORIZERS && oldest !== undefined) authorizers.delete(oldest);
    return found.authorizer;
  };
  /** The token of a grant; nothing where it has none any more. */
  const tokenOf = async (held: CallerGrant, { refused, context }: CredentialRequest) => {
    const { key, server } = held.stored as { readonly key?: unknown; readonly server?: unknown };
    if (source.identity.mode === "key") return typeof key === "string" ? key : undefined;
    const authorizer = await authorizerOf(held, String(server));
    const last = given.get(context);
    try {
      return await (refused && last?.grant === held.id ? authorizer.renew(last.token) : authorizer.token());
    } catch (thrown) {
      if (isCallError(thrown)) throw thrown;
      const why = thrown instanceof StoreFault ? "it cannot be read here" : "it could not be renewed";
      throw unauthenticated(`Your login to "${source.name}" cannot be used: ${why}.`, thrown, true);
    }
  };
  return async (request) => {
    const { context, origin } = request;
    const ask = askOf(context);
    let held = await logins.need(source, ask);
    // The document may lead elsewhere by now; the token is for where the caller logged in.
    if (isElsewhere(held, origin)) return undefined;
    let token = await tokenOf(held, request);
    if (source.identity.mode === "caller" && token === undefined) {
      await logins.drop(source, held);
      held = await logins.need(source, ask, held.id);
      if (isElsewhere(held, origin)) return undefined;
      token = await tokenOf(held, request);
    }
    given.set(context, { grant: held.id, token });
    noteFor(context, held, source);
    return token;
  };
}

function isElsewhere({ stored }: CallerGrant, origin: string): boolean {
  const { server } = stored as { readonly server?: unknown };
  return typeof server === "string" && parseUrl(server)?.origin !== origin;
}

function askOf(context: OperationContext): GrantAsk {
  return {
    identity: context.identity,
    signal: context.signal,
    elicit: (question) => context.elicit(question),
  };
}

/** Makes what notes the scopes that logins of callers lack, and tells each where to log in again. */
export function createCallerScopeNotes(source: ActingSource, logins: CallerLogins): ScopeNotes {
  let last: Promise<unknown> = Promise.resolve();
  const note = async (identity: Identity | undefined, refusal: Response): Promise<void> => {
    const held = await logins.held(source, identity);
    const { noteMissingScope } = await import("../../http/oauth/login.ts");
    if (held !== undefined) await noteMissingScope(held.store, refusal);
  };
  return {
    review: (thrown, { identity }) => {
      const refusal = source.identity.mode === "caller" ? narrowRefusal(thrown) : undefined;
      const told = refusal && logins.tooNarrow(source, identity);
      if (refusal === undefined || told === undefined || !isCallError(thrown)) return thrown;
      // That it could not be noted makes the next login ask for less, and nothing worse.
      last = Promise.all([last, note(identity, refusal).catch(() => {})]);
      const details = isPlainObject(thrown.details) ? thrown.details : {};
      const { login } = told.details as { readonly login?: unknown };
      return changedError(thrown, {
        message: `${thrown.message} ${told.message}`,
        details: { ...details, login },
      });
    },
    settled: async () => void (await last),
  };
}

function byToken(source: ActingSource, tokens: CallerTokens): Credential {
  return async ({ context, refused }) => {
    const owner = await tokens.hold(context.identity);
    takeNote(context, { upstream: { as: source.identity.mode } });
    return await tokens.of(owner, context.identity, refused);
  };
}

function noteFor(context: OperationContext, { id, stored }: CallerGrant, { identity }: ActingSource): void {
  const issuer = issuerIn(stored);
  takeNote(context, { upstream: { as: identity.mode, grant: id, ...(issuer !== undefined && { issuer }) } });
}
