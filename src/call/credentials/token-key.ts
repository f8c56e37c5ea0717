import type { KeyObject as NodeKey } from "node:crypto";
import type { CryptoKey, JWK, KeyObject } from "jose";
import { toWire, WIRE_LIMITS } from "../../core/wire/wire.ts";

/** A key to sign tokens or to check them with; plain bytes are a shared secret. */
export type TokenKey = CryptoKey | KeyObject | Uint8Array | JWK;

const ALGORITHMS = {
  secret: ["HS256", "HS384", "HS512"],
  rsa: ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  "P-256": ["ES256"],
  "P-384": ["ES384"],
  "P-521": ["ES512"],
  Ed25519: ["EdDSA", "Ed25519"],
} as const;

/** The algorithms tokens may be signed with; there is none that signs nothing. */
export type TokenAlgorithm = (typeof ALGORITHMS)[keyof typeof ALGORITHMS][number];

/** Which half of a key pair it is, if it is one. */
type Half = "secret" | "private" | "public";

/** What can be told of a key by looking at it. */
export interface KeyFacts {
  /** What it can be used with; a token that asks for anything else is not for this key. */
  readonly algorithms: readonly TokenAlgorithm[];
  /** What it is used with when nobody says; absent where that would be a guess. */
  readonly preferred: TokenAlgorithm | undefined;
  readonly half: Half;
}

/** Bytes of a shared secret: fewer can be guessed. */
const MIN_SECRET = 32;

/** The curves by the names OpenSSL has for them. */
const CURVES: Readonly<Record<string, TokenAlgorithm>> = {
  prime256v1: "ES256",
  secp384r1: "ES384",
  secp521r1: "ES512",
};

/** Looks at a key; a `TypeError` says why it cannot be one, and never shows it. */
export function readKey(key: TokenKey): KeyFacts {
  if (key instanceof Uint8Array) return { ...secretFacts(key.byteLength), preferred: "HS256" };
  if (typeof key === "object" && key !== null) {
    if (isJwk(key)) return readJwk(key);
    if ("algorithm" in key) return readCryptoKey(key as CryptoKey);
    if ("export" in key) return readKeyObject(key as NodeKey);
  }
  throw new TypeError("A key must be a CryptoKey, a KeyObject, a JWK, or a secret as bytes.");
}

/** A copy of a key, which its giver cannot change any more. */
export function holdKey(key: TokenKey): TokenKey {
  if (key instanceof Uint8Array) return Uint8Array.from(key);
  return isJwk(key) ? Object.freeze({ ...key }) : key;
}

/** Tells a JWK from other keys. */
export function isJwk(key: TokenKey): key is JWK {
  return typeof (key as JWK).kty === "string";
}

/** Tells whether a name is one of an algorithm that signs. */
export function isTokenAlgorithm(value: unknown): value is TokenAlgorithm {
  return Object.values(ALGORITHMS).some((names) => (names as readonly unknown[]).includes(value));
}

function secretFacts(bytes: number): KeyFacts {
  if (bytes < MIN_SECRET) throw new TypeError(`A secret must be at least ${MIN_SECRET} bytes long.`);
  return { algorithms: ALGORITHMS.secret, preferred: undefined, half: "secret" };
}

/** The only algorithm there is counts as preferred, and so does the usual name of one with two. */
function factsOf(algorithms: readonly TokenAlgorithm[], half: Half): KeyFacts {
  const [first] = algorithms;
  const preferred = algorithms.length === 1 || first === "EdDSA" ? first : undefined;
  return { algorithms, preferred, half };
}

interface CryptoAlgorithm {
  readonly name: string;
  readonly namedCurve?: string;
  readonly hash?: { readonly name: string };
  /** In bits. */
  readonly length?: number;
}

function readCryptoKey(key: CryptoKey): KeyFacts {
  const { name, namedCurve = "", hash, length = 0 } = key.algorithm as CryptoAlgorithm;
  const bits = hash?.name.slice("SHA-".length);
  const half = key.type as Half;
  switch (name) {
    case "HMAC":
      return { ...secretFacts(length / 8), ...factsOf(known(`HS${bits}`), half) };
    case "RSASSA-PKCS1-v1_5":
      return factsOf(known(`RS${bits}`), half);
    case "RSA-PSS":
      return factsOf(known(`PS${bits}`), half);
    case "ECDSA":
      return factsOf(known(`ES${namedCurve === "P-521" ? "512" : namedCurve.slice("P-".length)}`), half);
    default:
      return factsOf(name === "Ed25519" ? ALGORITHMS.Ed25519 : unusable(), half);
  }
}

function readKeyObject(key: NodeKey): KeyFacts {
  const { type, symmetricKeySize = 0, asymmetricKeyType, asymmetricKeyDetails } = key;
  if (type === "secret") return secretFacts(symmetricKeySize);
  if (asymmetricKeyType === "rsa") return factsOf(ALGORITHMS.rsa, type);
  if (asymmetricKeyType === "ed25519") return factsOf(ALGORITHMS.Ed25519, type);
  return factsOf(known(CURVES[asymmetricKeyDetails?.namedCurve ?? ""]), type);
}

function readJwk({ kty, crv, k, d, alg }: JWK): KeyFacts {
  const half = d === undefined ? "public" : "private";
  const facts =
    kty === "oct"
      ? secretFacts(typeof k === "string" ? Math.floor((k.length * 3) / 4) : 0)
      : factsOf(kty === "RSA" ? ALGORITHMS.rsa : curveAlgorithms(crv), half);
  if (alg === undefined) return facts;
  const own = facts.algorithms.filter((name) => name === alg);
  return own.length === 0 ? unusable() : factsOf(own, facts.half);
}

function curveAlgorithms(curve: unknown): readonly TokenAlgorithm[] {
  switch (curve) {
    case "P-256":
    case "P-384":
    case "P-521":
    case "Ed25519":
      return ALGORITHMS[curve];
    default:
      return unusable();
  }
}

function known(algorithm: string | undefined): readonly TokenAlgorithm[] {
  return isTokenAlgorithm(algorithm) ? [algorithm] : unusable();
}

function unusable(): never {
  throw new TypeError("The key is of a kind that no token can be signed with.");
}

/** Whom a token is for: those who answer the namespace of an operation, and nobody else it may end up with. */
export function audienceOf(operationId: string): string {
  const dot = operationId.indexOf(".");
  return `waybill:${dot === -1 ? operationId : operationId.slice(0, dot)}`;
}

/** The one call that a token is for. */
export interface BoundCall {
  readonly requestId: string;
  readonly input?: unknown;
  /** Which try it is, where it is not the first. */
  readonly attempt?: number | undefined;
}

/** What a token says about its call, as claims. */
export interface CallClaims {
  /** The id of the operation. */
  readonly op: string;
  /** The request id. */
  readonly jti: string;
  /** The try, from 2 on. */
  readonly att?: number;
  /** The digest of the input. */
  readonly inp: string;
}

/** As deep as an input crosses a wire. */
const MAX_DEPTH = WIRE_LIMITS.depth + 6;

/** Writes what binds a token to one call; rejects with a `CallError` for an input that cannot cross a wire. */
export async function bindCall(operationId: string, call: BoundCall): Promise<CallClaims> {
  const { requestId, input, attempt = 1 } = call;
  return {
    op: operationId,
    jti: requestId,
    ...(attempt > 1 && { att: attempt }),
    inp: await digestOf(input),
  };
}

/** Tells whether claims say which call they are for. */
export function isBound(claims: Readonly<Record<string, unknown>>): boolean {
  return ["op", "jti", "att", "inp"].some((name) => claims[name] !== undefined);
}

/** Tells whether claims are for this call and no other. */
export async function isBoundTo(
  claims: Readonly<Record<string, unknown>>,
  operationId: string,
  call: BoundCall,
): Promise<boolean> {
  const { requestId, attempt = 1 } = call;
  const { op, jti, att = 1, inp } = claims;
  // The input last: it may be large.
  return op === operationId && jti === requestId && att === attempt && inp === (await digestOf(call.input));
}

/** Members of an object keep their order on a wire, so that both ends write the same text. */
async function digestOf(input: unknown): Promise<string> {
  const text = JSON.stringify(toWire(input, { maxDepth: MAX_DEPTH, code: "VALIDATION_ERROR" }));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return btoa(String.fromCharCode(...digest))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}
