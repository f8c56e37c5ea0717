import type { CallError } from "../../../core/errors/errors.ts";
import { monotonicNow } from "../../../core/execution/deadline.ts";
import type { OperationContext } from "../../../core/operation/operation-context.ts";
import { isScope } from "./credential-forms.ts";
import type { OAuthCredential } from "./credentials.ts";
import { tokenFailure } from "./oauth-failure.ts";
import type { Send } from "./oauth-fetch.ts";
import type { TokenAddress } from "./token-address.ts";
import { findEndpoint, type IssuedToken, requestToken } from "./token-grants.ts";
import { waitFor } from "./wait-for.ts";

/** What a token source works with. */
export interface TokenSettings {
  readonly scheme: string;
  readonly credential: OAuthCredential;
  readonly address: TokenAddress;
  readonly send: Send;
  readonly warn: (message: string, cause?: unknown) => void;
}

/** What a token is for. */
export interface TokenWanted {
  readonly scopes: readonly string[];
  readonly context: OperationContext;
  /** The token that was given to this call before was refused. */
  readonly refused: boolean;
}

/** The token of one set of scopes; times are on the monotonic clock. */
interface HeldToken {
  value: string | undefined;
  renewAt: number;
  expiresAt: number;
  pending: Promise<string> | undefined;
  failure: CallError | undefined;
  failedUntil: number;
}

/** How long before its end a token is renewed, in milliseconds, or a tenth of its life where that is less. */
const RENEW_BEFORE = 60_000;

/** Milliseconds for which a failure answers for the next calls too. */
const FAILURE_HOLDS = 1_000;

/** Milliseconds for which a discovery document is believed. */
const DISCOVERY_HOLDS = 3_600_000;

/** Keeps the tokens of one credential: asked for once however many calls wait, renewed before they end. */
export class TokenSource {
  readonly #settings: TokenSettings;
  readonly #tokens = new Map<string, HeldToken>();
  /** Which token each call was given, to know which one was refused. */
  readonly #given = new WeakMap<OperationContext, string>();
  #refreshToken: string | undefined;
  #endpoint: { readonly url: URL; readonly until: number } | undefined;

  constructor(settings: TokenSettings) {
    this.#settings = settings;
    this.#refreshToken = settings.credential.refreshToken;
  }

  /** Gives a token, at once where a good one is held. */
  token(wanted: TokenWanted): string | Promise<string> {
    const { context } = wanted;
    const scopes = this.#scopesFor(wanted.scopes);
    const held = this.#held(scopes.join(" "));
    const now = monotonicNow();
    const refused = wanted.refused && (this.#given.get(context) ?? held.value) === held.value;
    if (held.value !== undefined && !refused && now < held.renewAt) return this.#give(held.value, context);
    if (held.pending === undefined && held.failure !== undefined && now < held.failedUntil) {
      return this.#give(this.#stillGood(held, refused, held.failure), context);
    }
    held.pending ??= this.#renew(held, scopes);
    return waitFor(held.pending, context.signal).then(
      (value) => this.#give(value, context),
      (failure: CallError) =>
        this.#give(this.#stillGood(held, refused || context.signal.aborted, failure), context),
    );
  }

  /** What the refresh token was granted is had in one token, so that there is one renewal at a time and it is never used twice. */
  #scopesFor(asked: readonly string[]): readonly string[] {
    const { scopes, refreshToken } = this.#settings.credential;
    if (scopes !== undefined) return scopes;
    return refreshToken === undefined ? [...new Set(asked.filter(isScope))].sort() : [];
  }

  #held(key: string): HeldToken {
    let held = this.#tokens.get(key);
    if (held === undefined) {
      held = {
        value: undefined,
        renewAt: 0,
        expiresAt: 0,
        pending: undefined,
        failure: undefined,
        failedUntil: 0,
      };
      this.#tokens.set(key, held);
    }
    return held;
  }

  #give(value: string, context: OperationContext): string {
    this.#given.set(context, value);
    return value;
  }

  /** A renewal that failed early leaves the token that is held until its end, unless that one was refused. */
  #stillGood(held: HeldToken, refused: boolean, failure: CallError): string {
    if (held.value === undefined || refused || monotonicNow() >= held.expiresAt) throw failure;
    return held.value;
  }

  async #renew(held: HeldToken, scopes: readonly string[]): Promise<string> {
    const { scheme, credential } = this.#settings;
    const asked = monotonicNow();
    try {
      const issued = await this.#request(scopes);
      const life = issued.lifetimeMs ?? Number.POSITIVE_INFINITY;
      held.value = issued.value;
      held.expiresAt = asked + life;
      held.renewAt = asked + life - Math.min(RENEW_BEFORE, life / 10);
      held.failure = undefined;
      return issued.value;
    } catch (thrown) {
      held.failure = tokenFailure(scheme, this.#secrets(credential), thrown);
      held.failedUntil = monotonicNow() + FAILURE_HOLDS;
      throw held.failure;
    } finally {
      held.pending = undefined;
    }
  }

  async #request(scopes: readonly string[]): Promise<IssuedToken> {
    const { credential, address, send } = this.#settings;
    if (this.#endpoint === undefined || monotonicNow() >= this.#endpoint.until) {
      const url = await findEndpoint(address, send);
      this.#endpoint = { url, until: monotonicNow() + DISCOVERY_HOLDS };
    }
    const asked = { refreshToken: this.#refreshToken, scopes, send };
    const issued = await requestToken(this.#endpoint.url, credential, asked);
    if (issued.refreshToken !== undefined) this.#rotate(issued.refreshToken);
    return issued;
  }

  #rotate(refreshToken: string): void {
    this.#refreshToken = refreshToken;
    void this.#tell(refreshToken);
  }

  /** Nobody waits for it; that it failed matters when the process starts again. */
  async #tell(refreshToken: string): Promise<void> {
    const { credential, warn } = this.#settings;
    try {
      await credential.onRefreshToken?.(refreshToken);
    } catch (failure) {
      warn("onRefreshToken failed; the new refresh token is known to this process alone.", failure);
    }
  }

  #secrets(credential: OAuthCredential): OAuthCredential {
    return this.#refreshToken === undefined
      ? credential
      : { ...credential, refreshToken: this.#refreshToken };
  }
}
