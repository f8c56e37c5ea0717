import {
  type CryptoKey,
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  errors,
  type JSONWebKeySet,
  type JWK,
  type JWTPayload,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
  jwtVerify,
  type KeyObject,
} from "jose";
import { parseUrl } from "../core/text/parse-url.ts";
import { issuerFetch } from "./introspection.ts";
import { discoverIssuer, type Fetch } from "./oauth/oauth-discovery.ts";

/** Keys of a set that are tried on a token that names none. */
const KEYS_TRIED = 16;

/** The keys tokens are signed with: the URL of a published set, a set, a key in one of three forms, or a shared secret. */
export type BearerKeys = URL | string | JSONWebKeySet | JWK | CryptoKey | KeyObject | Uint8Array;

/** Says that published keys could not be had: the caller may have a good token. */
export class KeysUnavailableError extends Error {
  override readonly name = "KeysUnavailableError";
}

/** Finds the key of a token, for the algorithms that are allowed. */
export interface BearerKeyRing {
  readonly find: JWTVerifyGetKey;
  readonly algorithms: readonly string[];
}

const SYMMETRIC = ["HS256", "HS384", "HS512"];
const ASYMMETRIC = [
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
  ...["PS256", "PS384", "PS512", "RS256", "RS384", "RS512"],
];
const SECRET_BYTES = 32;

/** Reads keys and algorithms; a `TypeError` names what makes no sense. A public key is never taken for a shared secret. */
export function readBearerKeys(keys: BearerKeys, algorithms: readonly string[] | undefined): BearerKeyRing {
  const chosen = readAlgorithms(algorithms, isSymmetric(keys) ? SYMMETRIC : ASYMMETRIC);
  return { find: createFinder(keys), algorithms: chosen };
}

function readAlgorithms(
  chosen: readonly string[] | undefined,
  possible: readonly string[],
): readonly string[] {
  if (chosen === undefined) return possible;
  if (!Array.isArray(chosen) || chosen.length === 0 || !chosen.every((name) => possible.includes(name))) {
    throw new TypeError(`algorithms must be some of those the keys are for: ${possible.join(", ")}.`);
  }
  return chosen;
}

function isSymmetric(keys: BearerKeys): boolean {
  if (keys instanceof Uint8Array) {
    if (keys.byteLength >= SECRET_BYTES) return true;
    throw new TypeError(`keys must be a shared secret of ${SECRET_BYTES} bytes or more.`);
  }
  if (typeof keys !== "object" || keys === null || keys instanceof URL) return false;
  if (isSet(keys)) return false;
  return "kty" in keys ? keys.kty === "oct" : "type" in keys && keys.type === "secret";
}

function isSet(keys: object): keys is JSONWebKeySet {
  return "keys" in keys && Array.isArray(keys.keys);
}

function createFinder(keys: BearerKeys): JWTVerifyGetKey {
  if (typeof keys === "string" || keys instanceof URL) {
    const url = readKeysUrl(keys);
    return createRemoteFinder(url, issuerFetch(url.href));
  }
  if (typeof keys !== "object" || keys === null)
    throw new TypeError("keys must be a URL, a key set or a key.");
  if (keys instanceof Uint8Array) {
    const secret = Uint8Array.from(keys);
    return () => secret;
  }
  if (isSet(keys)) return createLocalJWKSet(structuredClone(keys));
  if (!("kty" in keys)) {
    const key = keys as CryptoKey | KeyObject;
    if (key.type === "private")
      throw new TypeError("keys must be public: a private key has no business here.");
    return () => key;
  }
  if ("d" in keys) throw new TypeError("keys must be public: a private key has no business here.");
  const key = structuredClone(keys);
  return () => key;
}

/** What is wrong with the published set, as opposed to what a token says. */
const SET_FAULTS = ["ERR_JWKS_TIMEOUT", "ERR_JWKS_INVALID", "ERR_JOSE_GENERIC"];

/** Milliseconds in which published keys that could not be had are not asked for again, whatever tokens come. */
const FAILURE_MS = 5_000;

/** Finds keys where the metadata of an issuer says that they are, which is asked for with the first token. */
export function discoverKeys(
  issuer: string,
  fetch: Fetch,
  algorithms: readonly string[] | undefined,
): BearerKeyRing {
  let find: Promise<JWTVerifyGetKey> | undefined;
  let failedAt = Number.NEGATIVE_INFINITY;
  const discover = async (): Promise<JWTVerifyGetKey> => {
    if (performance.now() - failedAt < FAILURE_MS)
      throw new KeysUnavailableError("The issuer could not be asked.");
    try {
      const { jwks_uri: uri } = await discoverIssuer(issuer, fetch);
      return createRemoteFinder(readKeysUrl(String(uri)), fetch);
    } catch (cause) {
      failedAt = performance.now();
      throw new KeysUnavailableError("The issuer does not say where its keys are.", { cause });
    }
  };
  return {
    algorithms: readAlgorithms(algorithms, ASYMMETRIC),
    find: async (header, token) => {
      find ??= discover().catch((thrown: unknown) => {
        find = undefined;
        throw thrown;
      });
      return await (await find)(header, token);
    },
  };
}

function createRemoteFinder(url: URL, ask: Fetch): JWTVerifyGetKey {
  let failedAt = Number.NEGATIVE_INFINITY;
  let isAsked = false;
  const find = createRemoteJWKSet(url, {
    [customFetch]: async (address, init) => {
      if (performance.now() - failedAt < FAILURE_MS)
        throw new KeysUnavailableError("The keys could not be had.");
      isAsked = true;
      try {
        return await ask(address, init);
      } catch (cause) {
        throw new KeysUnavailableError("The keys could not be fetched.", { cause });
      }
    },
  });
  return async (header, token) => {
    try {
      return await find(header, token);
    } catch (cause) {
      const isFault = cause instanceof errors.JOSEError && SET_FAULTS.includes(cause.code);
      if (!isFault && !(cause instanceof KeysUnavailableError)) throw cause;
      // Tokens that are turned down meanwhile do not make it longer.
      if (isAsked) failedAt = performance.now();
      isAsked = false;
      throw isFault ? new KeysUnavailableError("The keys could not be read.", { cause }) : cause;
    }
  };
}

function readKeysUrl(keys: string | URL): URL {
  if (parseUrl(String(keys)) === undefined) throw new TypeError("keys must be a URL, a key set or a key.");
  const url = new URL(keys);
  const loopback = ["localhost", "127.0.0.1", "[::1]"].includes(url.hostname);
  if (url.protocol === "https:" || (url.protocol === "http:" && loopback)) return url;
  throw new TypeError("keys must be read over https: over http, anybody on the way could replace them.");
}

/** Verifies a token; where it does not say which key of a set it was signed with, with each that may be the one. */
export async function verifyWithAny(
  token: string,
  find: JWTVerifyGetKey,
  rules: JWTVerifyOptions,
): Promise<JWTPayload> {
  try {
    return (await jwtVerify(token, find, rules)).payload;
  } catch (thrown) {
    if (!(thrown instanceof errors.JWKSMultipleMatchingKeys)) throw thrown;
    let tried = 0;
    for await (const key of thrown) {
      tried += 1;
      if (tried > KEYS_TRIED) break;
      try {
        return (await jwtVerify(token, key, rules)).payload;
      } catch (wrong) {
        if (!(wrong instanceof errors.JWSSignatureVerificationFailed)) throw wrong;
      }
    }
    throw thrown;
  }
}
