import { createHash, randomUUID } from "node:crypto";
import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type JWK, SignJWT } from "jose";

/** A request that a proof is made for. */
export interface ProvenRequest {
  readonly method: string;
  readonly url: string | URL;
  /** The access token it carries; none at a token endpoint. */
  readonly token?: string | undefined;
}

/** A key that tokens are bound to (DPoP, RFC 9449): each request carries a proof signed with it. */
export interface DpopKey {
  /** What tokens and codes name the key by. */
  readonly thumbprint: string;
  /** The private key, to be kept beside the tokens that are bound to it. */
  readonly jwk: JWK;
  /** Makes a fresh proof, with the last nonce that the server of the address gave. */
  prove(request: ProvenRequest): Promise<string>;
  /** Takes the nonce that an answer gives; true where it is another one than before. */
  noteNonce(url: string | URL, response: Response): boolean;
}

/** What proofs are signed with; every server of DPoP knows it. */
export const DPOP_ALGORITHM = "ES256";
/** Servers whose nonces are remembered; the one that gave its nonce first goes first. */
const MOST_SERVERS = 8;
/** A nonce is characters that need no escape (RFC 9449, 8.1), and no longer than this. */
const NONCE = /^[\x21\x23-\x5b\x5d-\x7e]{1,512}$/;

/** Creates a key for proofs, or takes up one that was kept. */
export async function createDpopKey(kept?: JWK): Promise<DpopKey> {
  const jwk =
    kept ?? (await exportJWK((await generateKeyPair(DPOP_ALGORITHM, { extractable: true })).privateKey));
  const key = await importJWK(jwk, DPOP_ALGORITHM);
  const { d: _, ...open } = jwk;
  const header = { alg: DPOP_ALGORITHM, typ: "dpop+jwt", jwk: open };
  const nonces = new Map<string, string>();
  return {
    thumbprint: await calculateJwkThumbprint(open, "sha256"),
    jwk,
    async prove({ method, url, token }) {
      const { origin, pathname } = new URL(url);
      const nonce = nonces.get(origin);
      const claims = {
        jti: randomUUID(),
        htm: method,
        htu: origin + pathname,
        ...(token !== undefined && { ath: tokenHash(token) }),
        ...(nonce !== undefined && { nonce }),
      };
      return await new SignJWT(claims).setProtectedHeader(header).setIssuedAt().sign(key);
    },
    noteNonce(url, { headers }) {
      const given = headers.get("dpop-nonce");
      if (given === null || !NONCE.test(given)) return false;
      const { origin } = new URL(url);
      const isNew = nonces.get(origin) !== given;
      nonces.set(origin, given);
      if (nonces.size > MOST_SERVERS) nonces.delete(nonces.keys().next().value ?? "");
      return isNew;
    },
  };
}

/** What a proof names an access token by. */
export function tokenHash(token: string): string {
  return createHash("sha256").update(token).digest("base64url");
}
