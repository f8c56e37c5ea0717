import type { OAuthCredential } from "./credentials.ts";
import type { Send } from "./oauth-fetch.ts";
import type { TokenAddress } from "./token-address.ts";
import { TokenSource } from "./token-source.ts";

/** Credentials that functions gave for whose tokens are kept; the one not used for longest goes first. */
const MOST_SOURCES = 1_000;

/** Keeps one token source for each credential and place, so that nobody is given a token of somebody else. */
export class TokenSources {
  readonly #send: Send;
  readonly #warn: (message: string, cause?: unknown) => void;
  readonly #sources = new Map<string, TokenSource>();

  constructor(send: Send, warn: (message: string, cause?: unknown) => void) {
    this.#send = send;
    this.#warn = warn;
  }

  /** Gives the source of a credential, the same one for equal credentials. */
  get(scheme: string, credential: OAuthCredential, address: TokenAddress): TokenSource {
    const key = keyOf(credential, address);
    const known = this.#sources.get(key);
    const source =
      known ?? new TokenSource({ scheme, credential, address, send: this.#send, warn: this.#warn });
    this.#sources.delete(key);
    this.#sources.set(key, source);
    const [oldest] = this.#sources.keys();
    if (this.#sources.size > MOST_SOURCES && oldest !== undefined) this.#sources.delete(oldest);
    return source;
  }
}

function keyOf(credential: OAuthCredential, { kind, url }: TokenAddress): string {
  const { clientId, clientSecret, refreshToken, scopes, clientAuth, parameters } = credential;
  return JSON.stringify([
    kind,
    url.href,
    clientId,
    clientSecret ?? null,
    refreshToken ?? null,
    scopes ?? null,
    clientAuth ?? "basic",
    Object.entries(parameters ?? {}).sort(([one], [other]) => (one < other ? -1 : 1)),
  ]);
}
