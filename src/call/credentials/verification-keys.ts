import { errors, type JWTVerifyGetKey } from "jose";
import { CallError } from "../../core/errors/errors.ts";
import { holdKey, isTokenAlgorithm, readKey, type TokenAlgorithm, type TokenKey } from "./token-key.ts";

/** A key that tokens name by its id. */
export interface NamedKey {
  readonly keyId: string;
  readonly key: TokenKey;
}

/** The keys to check tokens with: one, several by id, or a function that finds one. */
export type VerificationKeys = TokenKey | readonly NamedKey[] | JWTVerifyGetKey;

/** Finds the key for a token, and only for the algorithms that are allowed. */
export interface KeyRing {
  readonly algorithms: readonly TokenAlgorithm[];
  readonly find: JWTVerifyGetKey;
}

interface RingKey {
  readonly key: TokenKey;
  readonly algorithms: readonly TokenAlgorithm[];
}

/** Reads keys and algorithms; a `TypeError` names what makes no sense. The header of a token never widens the choice. */
export function readKeyRing(
  keys: VerificationKeys,
  algorithms: readonly TokenAlgorithm[] | undefined,
): KeyRing {
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
      // Whoever asks may have a good token: the keys are what is missing.
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
