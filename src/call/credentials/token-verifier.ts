import { errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from "jose";
import { HeldIdentity, type Identity } from "../../core/access/identity.ts";
import { CallError, isCallError } from "../../core/errors/errors.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { Delivery } from "../bus.ts";
import { EVENT_LIMITS } from "../call-events.ts";
import {
  audienceOf,
  holdKey,
  isBound,
  isBoundTo,
  isTokenAlgorithm,
  readKey,
  type TokenAlgorithm,
  type TokenKey,
} from "./token-key.ts";

/** Which tokens are believed. */
export interface TokenVerifierOptions {
  /** One key, several by id, or a function that finds one, such as jose's `createRemoteJWKSet` makes. */
  readonly keys: VerificationKeys;
  /** Whose tokens they must be. */
  readonly issuer: string;
  /** Needed where the keys leave a choice. @default what the keys allow, where that is one thing only for each */
  readonly algorithms?: readonly TokenAlgorithm[];
  /** How far clocks may differ. @default 5_000 */
  readonly clockToleranceMs?: number;
  /** A token made to live longer is refused, for nobody can take it back. @default 3_600_000 */
  readonly maxLifetimeMs?: number;
  /**
   * Believes tokens that do not say which call they are for, as callers of version 0.1.0 send them: a member that sees such a token can make
   * other calls with it until it expires. @default false
   */
  readonly acceptUnbound?: boolean;
}

/** Reads who is asking from the token of a request; `at` is the time to judge it by, now unless said. */
export type TokenVerifier = (delivery: Delivery, at?: Date) => Promise<Identity | undefined>;

/** What a token says, once its signature has been checked; times are Unix epoch milliseconds. */
interface Verified {
  readonly identity: Identity;
  readonly claims: JWTPayload;
  readonly notBefore: number;
  readonly expiresAt: number;
}

/** Three parts, as text that needs no escaping anywhere. */
const COMPACT = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/**
 * Creates what reads signed tokens. A request without one is anonymous; one with a token that is not valid, or not for this very
 * call, is refused as `UNAUTHENTICATED`.
 */
export function createTokenVerifier(options: TokenVerifierOptions): TokenVerifier {
  const verify = createVerification(options);
  const tolerance = readMs("clockToleranceMs", options.clockToleranceMs ?? 5_000);
  const { acceptUnbound = false } = options;
  return async ({ request }, at) => {
    const { credential, operationId } = request;
    if (credential === undefined) return undefined;
    const now = at?.getTime() ?? Date.now();
    if (Number.isNaN(now)) throw new TypeError("at must be a valid date.");
    if (credential.length > EVENT_LIMITS.credential || !COMPACT.test(credential)) throw refused();
    const { identity, claims, notBefore, expiresAt } = await verify(credential, audienceOf(operationId));
    if (now >= expiresAt + tolerance) throw refused("The token has expired.");
    if (now < notBefore - tolerance) throw refused("The token is not valid yet.");
    if (isBound(claims)) {
      if (!(await isBoundTo(claims, operationId, request))) throw refused("The token is for another call.");
    } else if (!acceptUnbound) throw unbound();
    return identity;
  };
}

type Verification = (token: string, audience: string) => Promise<Verified>;

function createVerification(options: TokenVerifierOptions): Verification {
  const { issuer, keys, maxLifetimeMs = 3_600_000 } = options;
  if (typeof issuer !== "string" || issuer === "")
    throw new TypeError("issuer must be a string, not an empty one.");
  const { algorithms, find } = readKeyRing(keys, options.algorithms);
  const maxLifetime = readMs("maxLifetimeMs", maxLifetimeMs);
  return async (token, audience) => {
    try {
      const rules = { algorithms: [...algorithms], issuer, audience, ...ANY_TIME };
      const { payload } = await jwtVerify(token, find, rules);
      return readPayload(payload, maxLifetime);
    } catch (thrown) {
      if (isCallError(thrown)) throw thrown;
      throw refused(thrown);
    }
  };
}

/** Times are judged apart from the rest, so that what is remembered is judged alike, and to the millisecond. */
const ANY_TIME = {
  requiredClaims: ["sub", "exp", "iat"],
  clockTolerance: Number.MAX_SAFE_INTEGER,
};

function readPayload(payload: JWTPayload, maxLifetime: number): Verified {
  const { exp, iat, nbf = iat } = payload;
  if (!Number.isFinite(exp) || !Number.isFinite(iat) || !Number.isFinite(nbf)) {
    throw new TypeError("The token lacks a time.");
  }
  const [expiresAt, issuedAt] = [(exp as number) * 1_000, (iat as number) * 1_000];
  if (expiresAt - issuedAt > maxLifetime) throw new TypeError("The token is made to live too long.");
  const notBefore = Math.max(issuedAt, (nbf as number) * 1_000);
  return { identity: readIdentity(payload), claims: payload, notBefore, expiresAt };
}

function readIdentity({ sub, ...rest }: JWTPayload): Identity {
  const { scopes, resources, tier, claims } = rest as Partial<Identity>;
  if (resources !== undefined && !isPlainObject(resources))
    throw new TypeError("The resources are malformed.");
  if (claims !== undefined && !isPlainObject(claims)) throw new TypeError("The claims are malformed.");
  return HeldIdentity.of({
    subject: sub as string,
    ...(scopes === undefined ? {} : { scopes }),
    ...(resources === undefined ? {} : { resources }),
    ...(tier === undefined ? {} : { tier }),
    ...(claims === undefined ? {} : { claims }),
  });
}

function readMs(name: string, value: number): number {
  if (Number.isFinite(value) && value >= 0) return value;
  throw new TypeError(`${name} must be a number of milliseconds, 0 or more.`);
}

/** One sentence for every reason: an attacker who tries tokens out learns nothing from it. */
function refused(cause?: unknown): CallError {
  return new CallError("UNAUTHENTICATED", "The credential of the call is not valid.", {
    cause,
    stack: false,
  });
}

/** Its signature is right, so that the caller may know what to do. */
function unbound(): CallError {
  const message =
    "The credential of the call does not say which call it is for; update the caller, or let the service accept it (acceptUnbound).";
  return new CallError("UNAUTHENTICATED", message, { stack: false });
}

/**
 * Makes an identity of the user that the broker's permissions bind a sender to; nothing the sender wrote is looked at.
 * Without a user the caller is anonymous.
 */
export function fromBrokerUser(
  toIdentity: (user: string) => Identity | undefined,
): (delivery: Delivery) => Identity | undefined {
  return ({ user }) => (user === undefined ? undefined : toIdentity(user));
}

/** A key that tokens name by its id. */
export interface NamedKey {
  readonly keyId: string;
  readonly key: TokenKey;
}

/** The keys to check tokens with: one, several by id, or a function that finds one. */
export type VerificationKeys = TokenKey | readonly NamedKey[] | JWTVerifyGetKey;

/** Finds the key for a token, and only for the algorithms that are allowed. */
interface KeyRing {
  readonly algorithms: readonly TokenAlgorithm[];
  readonly find: JWTVerifyGetKey;
}

interface RingKey {
  readonly key: TokenKey;
  readonly algorithms: readonly TokenAlgorithm[];
}

/** Reads keys and algorithms; a `TypeError` names what makes no sense. The header of a token never widens the choice. */
function readKeyRing(keys: VerificationKeys, algorithms: readonly TokenAlgorithm[] | undefined): KeyRing {
  if (algorithms !== undefined && !isAlgorithms(algorithms)) {
    throw new TypeError("algorithms must be a list of algorithms that sign, such as EdDSA or RS256.");
  }
  if (typeof keys === "function") return readGetter(keys, algorithms);
  if (Array.isArray(keys)) return readList(keys, algorithms);
  const only = readRingKey(keys as TokenKey, algorithms);
  return { algorithms: only.algorithms, find: () => only.key };
}

/** What a key set says of a token it has no key for; whatever else it fails with is no fault of the token's. */
const TOKENS_FAULT = [errors.JWKSNoMatchingKey, errors.JWKSMultipleMatchingKeys, errors.JOSENotSupported];

function isAlgorithms(list: unknown): boolean {
  return Array.isArray(list) && list.length > 0 && list.every(isTokenAlgorithm);
}

function readGetter(getter: JWTVerifyGetKey, algorithms: readonly TokenAlgorithm[] | undefined): KeyRing {
  if (algorithms === undefined)
    throw new TypeError("algorithms must be given where a function finds the key.");
  const find: JWTVerifyGetKey = async (header, token) => {
    try {
      return await getter(header, token);
    } catch (thrown) {
      if (TOKENS_FAULT.some((type) => thrown instanceof type)) throw thrown;
      // The caller may have a good token: the keys are what is missing.
      throw new CallError(
        "UNAVAILABLE",
        "The keys to check credentials with cannot be had; try again later.",
        {
          cause: thrown,
        },
      );
    }
  };
  return { algorithms, find };
}

function readList(list: readonly NamedKey[], algorithms: readonly TokenAlgorithm[] | undefined): KeyRing {
  const ring = new Map<string, RingKey>();
  for (const { keyId, key } of list) {
    if (typeof keyId !== "string" || ring.has(keyId)) {
      throw new TypeError("Every key of a list needs a keyId of its own.");
    }
    ring.set(keyId, readRingKey(key, algorithms));
  }
  if (ring.size === 0) throw new TypeError("keys must hold at least one key.");
  const find: JWTVerifyGetKey = ({ kid, alg }) => {
    const found = typeof kid === "string" ? ring.get(kid) : undefined;
    // The key decides about the algorithm, not the token.
    if (found?.algorithms.some((name) => name === alg)) return found.key;
    throw new errors.JWKSNoMatchingKey();
  };
  return { algorithms: [...new Set([...ring.values()].flatMap((key) => key.algorithms))], find };
}

function readRingKey(key: TokenKey, given: readonly TokenAlgorithm[] | undefined): RingKey {
  const { algorithms, preferred, half } = readKey(key);
  if (half === "private")
    throw new TypeError("Tokens are checked with the public key; keep the private one.");
  const wanted = given ?? (preferred === undefined ? [] : [preferred]);
  const usable = algorithms.filter((name) => wanted.includes(name));
  if (usable.length === 0) {
    throw new TypeError(`algorithms must name one that the key can be used with: ${algorithms.join(", ")}.`);
  }
  return { key: holdKey(key), algorithms: usable };
}
