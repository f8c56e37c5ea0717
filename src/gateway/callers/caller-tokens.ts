import { createHash } from "node:crypto";
import type { Identity } from "../../core/access/identity.ts";
import { CallError } from "../../core/errors/errors.ts";
import { createGuardedFetch } from "../../http/oauth/guarded-fetch.ts";
import type { StoredAuthorization } from "../../http/oauth/oauth-store.ts";
import type { IssuedToken } from "../../http/oauth/token-exchange.ts";
import { bearerOf } from "../serve/gateway-auth.ts";
import type { ActingSource } from "./acting-source.ts";
import { grantOwner } from "./caller-logins.ts";
import type { GrantOwner } from "./login-tickets.ts";

/** Tokens for a source that are had from what callers show the gateway; nothing of them is kept beyond this process. */
export interface CallerTokens {
  /** Takes what a caller shows now, for what their connection does by itself; rejects for a caller who shows nothing that can be used. */
  hold(identity: Identity | undefined): Promise<GrantOwner>;
  /** The token to send for a request of that caller, or for what their connection does by itself. */
  of(owner: GrantOwner, identity: Identity | undefined, isRefused?: boolean): Promise<string>;
}

/** Callers whose tokens are remembered; those not seen for longest are forgotten. */
const MOST_REMEMBERED = 1_000;
/** Milliseconds before its end at which a token is exchanged again. */
const EARLY_MS = 10_000;
/** Milliseconds for which a token is used that does not say when it ends. */
const UNSAID_MS = 300_000;
/** Milliseconds for which an exchange that failed answers for the next calls of that caller too. */
const FAILURE_HOLDS_MS = 1_000;

/** Makes what tokens of callers are had by, where a source is asked with such; nothing for others. */
export function createCallerTokens(source: ActingSource): CallerTokens | undefined {
  const { mode } = source.identity;
  if (mode === "forward") return new ShownTokens(source, async (shown) => shown);
  if (mode !== "exchange") return undefined;
  const exchanged = new ExchangedTokens(source);
  return new ShownTokens(source, (shown, isRefused) => exchanged.of(shown, isRefused));
}

/** The tokens that callers show the gateway, or what is made of them. */
class ShownTokens implements CallerTokens {
  readonly #source: ActingSource;
  readonly #toSent: (shown: string, isRefused: boolean) => Promise<string>;
  /** What each caller showed last, for what their connection does by itself. */
  readonly #last = new Map<string, string>();

  constructor(source: ActingSource, toSent: (shown: string, isRefused: boolean) => Promise<string>) {
    this.#source = source;
    this.#toSent = toSent;
  }

  async hold(identity: Identity | undefined): Promise<GrantOwner> {
    const owner = grantOwner(this.#source, identity);
    this.#last.delete(owner.key);
    this.#last.set(owner.key, this.#shown(identity));
    forgetOldest(this.#last);
    return owner;
  }

  async of(owner: GrantOwner, identity: Identity | undefined, isRefused = false): Promise<string> {
    const shown = identity === undefined ? this.#last.get(owner.key) : this.#shown(identity);
    if (shown === undefined) throw unusable(this.#source);
    return await this.#toSent(shown, isRefused);
  }

  #shown(identity: Identity | undefined): string {
    const shown = bearerOf(identity);
    if (shown === undefined || !this.#mayGo(identity)) throw unusable(this.#source);
    return shown;
  }

  /** A token is passed on only to whom its issuer made it out for as well, and not where it is bound to a key of the caller's. */
  #mayGo(identity: Identity | undefined): boolean {
    const { mode, audience } = this.#source.identity;
    if (mode !== "forward") return true;
    const { aud, cnf } = identity?.claims ?? {};
    return cnf === undefined && audience !== undefined && [aud].flat().includes(audience);
  }
}

interface Exchanged {
  readonly token: Promise<IssuedToken>;
  /** Unix epoch milliseconds; with a failure, until when it is told again. */
  until: number;
}

/** Tokens that were had in exchange for those that callers showed; one exchange at a time for each. */
class ExchangedTokens {
  readonly #source: ActingSource;
  readonly #held = new Map<string, Exchanged>();

  constructor(source: ActingSource) {
    this.#source = source;
  }

  async of(shown: string, isRefused: boolean): Promise<string> {
    const key = createHash("sha256").update(shown).digest("base64");
    const known = this.#held.get(key);
    if (known !== undefined && !isRefused && Date.now() < known.until) return (await known.token).token;
    const held: Exchanged = { token: this.#exchange(shown), until: Number.POSITIVE_INFINITY };
    this.#held.delete(key);
    this.#held.set(key, held);
    forgetOldest(this.#held);
    held.token.then(
      ({ expiresAt }) => {
        held.until = (expiresAt ?? Date.now() + UNSAID_MS) - EARLY_MS;
      },
      () => {
        held.until = Date.now() + FAILURE_HOLDS_MS;
      },
    );
    return (await held.token).token;
  }

  async #exchange(token: string): Promise<IssuedToken> {
    const { identity, login, name } = this.#source;
    const { audience, scope, assertion } = identity;
    const { createGrantClient } = await import("../../http/oauth/token-exchange.ts");
    const clientAt = ({ issuer = "", clientId = "", clientSecret }: ExchangeClient) =>
      createGrantClient({
        issuer,
        clientId,
        clientSecret,
        fetch: createGuardedFetch(new URL(issuer), [issuer]),
      });
    const [, , address] = login.ofCallers.id;
    // Without a name of its own, the token is for the address of the source (RFC 8707).
    const target = audience === undefined ? { resource: address } : { audience };
    try {
      if (assertion === undefined) return await clientAt(identity).exchange({ token, scope, ...target });
      const given = await clientAt(identity).exchange({
        token,
        wanted: "identityAssertion",
        audience: assertion.issuer,
        resource: address,
        scope,
      });
      return await clientAt(assertion).grant({ assertion: given.token, resource: address, scope });
    } catch (thrown) {
      throw notExchanged(name, thrown);
    }
  }
}

interface ExchangeClient {
  readonly issuer?: string | undefined;
  readonly clientId?: string | undefined;
  readonly clientSecret?: string | undefined;
}

function forgetOldest(map: Map<string, unknown>): void {
  const [oldest] = map.keys();
  if (map.size > MOST_REMEMBERED && oldest !== undefined) map.delete(oldest);
}

function unusable({ name, identity: { mode } }: ActingSource): CallError {
  const why =
    mode === "forward"
      ? "yours is none that may be passed on to it"
      : "you showed the gateway none that can be exchanged";
  const message = `The source "${name}" is asked with a token of each caller, and ${why}.`;
  return new CallError("UNAUTHENTICATED", message, { details: { source: name }, stack: false });
}

function notExchanged(name: string, cause: unknown): CallError {
  const { name: kind, reason, message } = cause as { name?: unknown; reason?: unknown; message?: unknown };
  const why = kind === "SignInError" ? ` ${String(message)}` : "";
  return new CallError("UNAUTHENTICATED", `No token for the source "${name}" could be had for yours.${why}`, {
    cause,
    retryable: reason === "unavailable" || kind !== "SignInError",
    details: { source: name },
    stack: false,
  });
}

/** The authorization server that gave what is kept. */
export function issuerIn(stored: StoredAuthorization): string | undefined {
  const { current } = stored as { readonly current?: unknown };
  return typeof current === "string" && current !== "" ? current : undefined;
}
