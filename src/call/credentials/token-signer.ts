import { type JWTPayload, SignJWT } from "jose";
import { HeldIdentity, type Identity } from "../../core/access/identity.ts";
import { CallError } from "../../core/errors/errors.ts";
import { toWire } from "../../core/wire/wire.ts";
import { EVENT_LIMITS } from "../call-events.ts";
import {
  audienceOf,
  type BoundCall,
  bindCall,
  type CallClaims,
  holdKey,
  isJwk,
  readKey,
  type TokenAlgorithm,
  type TokenKey,
} from "./token-key.ts";

/** How tokens are signed. */
export interface TokenSignerOptions {
  /** A private key, or a secret of at least 32 bytes. */
  readonly key: TokenKey;
  /** Says which key it is where several are in use. @default that of a JWK, else none */
  readonly keyId?: string;
  /** Who vouches for the identity; the other side asks for exactly this. */
  readonly issuer: string;
  /** From 1,000 on, rounded up to whole seconds. @default 60_000 */
  readonly lifetimeMs?: number;
  /** @default what the key allows, where that is one thing only; HS256 for bytes, EdDSA for Ed25519 */
  readonly algorithm?: TokenAlgorithm;
}

/** Says who is asking, in a token that is good for one call: the operation, the request id, the try and the input are in it. */
export type TokenSigner = (identity: Identity, operationId: string, call: BoundCall) => Promise<string>;

/** Creates what signs the identity of callers for a bus, anew for each call. */
export function createTokenSigner(options: TokenSignerOptions): TokenSigner {
  const { lifetimeMs = 60_000 } = options;
  if (!Number.isSafeInteger(lifetimeMs) || lifetimeMs < 1_000) {
    throw new TypeError("lifetimeMs must be a whole number, 1,000 or more.");
  }
  const sign = createSigning(options, Math.ceil(lifetimeMs / 1_000));
  return async (identity, operationId, call) => {
    const held = HeldIdentity.of(identity);
    return sign(held, audienceOf(operationId), await bindCall(operationId, call));
  };
}

type Signing = (identity: HeldIdentity, audience: string, call: CallClaims) => Promise<string>;

function createSigning(options: TokenSignerOptions, lifetime: number): Signing {
  const { issuer } = options;
  if (typeof issuer !== "string" || issuer === "")
    throw new TypeError("issuer must be a string, not an empty one.");
  const header = { alg: chooseAlgorithm(options), typ: "JWT", ...keyIdOf(options) };
  const key = holdKey(options.key);
  return async (identity, audience, call) => {
    const issuedAt = Math.floor(Date.now() / 1_000);
    const token = await new SignJWT({ ...payloadOf(identity), ...call })
      .setProtectedHeader(header)
      .setIssuer(issuer)
      .setSubject(identity.subject)
      .setAudience(audience)
      .setIssuedAt(issuedAt)
      .setExpirationTime(issuedAt + lifetime)
      .sign(key);
    if (token.length <= EVENT_LIMITS.credential) return token;
    const message = `The identity makes a token of more than ${EVENT_LIMITS.credential} characters; leave claims out.`;
    throw new CallError("TOO_LARGE", message);
  };
}

function chooseAlgorithm({ key, algorithm }: TokenSignerOptions): TokenAlgorithm {
  const { algorithms, preferred, half } = readKey(key);
  if (half === "public") throw new TypeError("A public key cannot sign; give the private one.");
  const chosen = algorithm ?? preferred;
  if (chosen === undefined) {
    throw new TypeError(`Say which algorithm to sign with: ${algorithms.join(", ")}.`);
  }
  if (!algorithms.includes(chosen)) {
    throw new TypeError(`The key does not fit the algorithm; it can be used with ${algorithms.join(", ")}.`);
  }
  return chosen;
}

function keyIdOf({ key, keyId }: TokenSignerOptions): { readonly kid?: string } {
  const kid = keyId ?? (isJwk(key) ? key.kid : undefined);
  return typeof kid === "string" ? { kid } : {};
}

function payloadOf({ scopes, resources, tier, claims }: HeldIdentity): JWTPayload {
  return {
    ...(scopes.length === 0 ? {} : { scopes }),
    ...(Object.keys(resources).length === 0 ? {} : { resources }),
    ...(tier === undefined ? {} : { tier }),
    ...(claims === undefined ? {} : { claims: jsonOnly(claims) }),
  };
}

/** The claims without what is undefined; anything else that JSON would change is refused rather than changed. */
function jsonOnly(claims: NonNullable<Identity["claims"]>): object {
  const defined = Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== undefined));
  let exact = false;
  try {
    exact = toWire(defined) === defined;
  } catch {
    // Nothing a wire takes is nothing JSON takes.
  }
  if (!exact) throw new TypeError("The claims of an identity must be JSON to go into a token.");
  return defined;
}
