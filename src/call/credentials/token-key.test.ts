import { createSecretKey, generateKeyPairSync, randomBytes, webcrypto } from "node:crypto";
import { exportJWK, type JWK } from "jose";
import { describe, expect, it } from "vitest";
import { holdKey, isTokenAlgorithm, readKey, type TokenKey } from "./token-key.ts";

const { subtle } = webcrypto;
const rsa = generateKeyPairSync("rsa", { modulusLength: 2_048 });
const ed = generateKeyPairSync("ed25519");
const RSA_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"];
const HMAC_ALGORITHMS = ["HS256", "HS384", "HS512"];

const ec = (namedCurve: string) => generateKeyPairSync("ec", { namedCurve }).privateKey;

async function web(algorithm: object, use: "private" | "public" = "private"): Promise<TokenKey> {
  const made = await subtle.generateKey(algorithm as { name: "HMAC" }, false, ["sign", "verify"]);
  const pair = made as unknown as Record<string, TokenKey | undefined>;
  return pair[`${use}Key`] ?? (made as unknown as TokenKey);
}

const RSA_SETTINGS = { modulusLength: 2_048, publicExponent: Uint8Array.of(1, 0, 1) };

describe("what a key is good for", () => {
  it("Identity: of plain bytes, HMAC, with SHA-256 when nobody says", () => {
    const facts = { algorithms: HMAC_ALGORITHMS, preferred: "HS256", half: "secret" };
    expect(readKey(randomBytes(32))).toEqual(facts);
  });

  it.each<[string, () => TokenKey | Promise<TokenKey>, readonly string[], string | undefined, string]>([
    ["a secret KeyObject", () => createSecretKey(randomBytes(32)), HMAC_ALGORITHMS, undefined, "secret"],
    ["a private RSA KeyObject", () => rsa.privateKey, RSA_ALGORITHMS, undefined, "private"],
    ["a public RSA KeyObject", () => rsa.publicKey, RSA_ALGORITHMS, undefined, "public"],
    ["an Ed25519 KeyObject", () => ed.publicKey, ["EdDSA", "Ed25519"], "EdDSA", "public"],
    ["a P-256 KeyObject", () => ec("P-256"), ["ES256"], "ES256", "private"],
    ["a P-384 KeyObject", () => ec("P-384"), ["ES384"], "ES384", "private"],
    ["a P-521 KeyObject", () => ec("P-521"), ["ES512"], "ES512", "private"],
    ["a private RSA JWK", () => exportJWK(rsa.privateKey), RSA_ALGORITHMS, undefined, "private"],
    ["an Ed25519 JWK", () => exportJWK(ed.publicKey), ["EdDSA", "Ed25519"], "EdDSA", "public"],
    ["a P-521 JWK", () => exportJWK(ec("P-521")), ["ES512"], "ES512", "private"],
    ["a secret JWK", () => exportJWK(randomBytes(32)), HMAC_ALGORITHMS, undefined, "secret"],
    [
      "a JWK that says it",
      async () => ({ ...(await exportJWK(rsa.publicKey)), alg: "PS256" }) as JWK,
      ["PS256"],
      "PS256",
      "public",
    ],
    ["an HMAC CryptoKey", () => web({ name: "HMAC", hash: "SHA-384" }), ["HS384"], "HS384", "secret"],
    [
      "an RSA CryptoKey",
      () => web({ name: "RSASSA-PKCS1-v1_5", hash: "SHA-512", ...RSA_SETTINGS }, "public"),
      ["RS512"],
      "RS512",
      "public",
    ],
    [
      "an RSA-PSS CryptoKey",
      () => web({ name: "RSA-PSS", hash: "SHA-256", ...RSA_SETTINGS }),
      ["PS256"],
      "PS256",
      "private",
    ],
    ["a P-256 CryptoKey", () => web({ name: "ECDSA", namedCurve: "P-256" }), ["ES256"], "ES256", "private"],
    ["a P-521 CryptoKey", () => web({ name: "ECDSA", namedCurve: "P-521" }), ["ES512"], "ES512", "private"],
    ["an Ed25519 CryptoKey", () => web({ name: "Ed25519" }), ["EdDSA", "Ed25519"], "EdDSA", "private"],
  ])("Identity: of %s", async (_, make, algorithms, preferred, half) => {
    expect(readKey(await make())).toEqual({ algorithms, preferred, half });
  });
});

describe("what is no key", () => {
  const short = randomBytes(31);

  it.each<[string, () => TokenKey | Promise<TokenKey>]>([
    ["as bytes", () => short],
    ["as a KeyObject", () => createSecretKey(short)],
    ["as a JWK", () => exportJWK(short)],
    ["as a JWK without one", () => ({ kty: "oct" }) as JWK],
    ["as a CryptoKey", () => web({ name: "HMAC", hash: "SHA-256", length: 248 })],
  ])("Identity: a secret of 31 bytes %s", async (_, make) => {
    const key = await make();
    expect(() => readKey(key)).toThrow(new TypeError("A secret must be at least 32 bytes long."));
  });

  it.each<[string, () => unknown]>([
    ["for agreeing on others", () => generateKeyPairSync("x25519").publicKey],
    ["on a curve of its own", () => ec("secp256k1")],
    ["of a JWK of an unknown curve", () => ({ kty: "EC", crv: "secp256k1" })],
    ["of a JWK that asks for what it cannot do", () => ({ kty: "OKP", crv: "Ed25519", alg: "HS256" })],
    ["of a JWK that signs nothing", () => ({ kty: "RSA", n: "", e: "", alg: "none" })],
    ["for encryption", () => subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt"])],
  ])("Identity: one %s", async (_, make) => {
    const key = (await make()) as TokenKey;
    expect(() => readKey(key)).toThrow(/of a kind that no token can be signed with/);
  });

  it.each([undefined, null, "a secret of more than thirty-two bytes", 5, {}, []])("Identity: %j", (key) => {
    expect(() => readKey(key as never)).toThrow(
      /^A key must be a CryptoKey, a KeyObject, a JWK, or a secret/,
    );
  });
});

describe("keys and names", () => {
  it("Identity: a key that is held does not change with the one that was given", () => {
    const bytes = randomBytes(32);
    const held = holdKey(bytes) as Uint8Array;
    const before = held[0];
    bytes[0] = (bytes[0] as number) ^ 1;
    expect(held[0]).toBe(before);
    const jwk = { kty: "OKP", crv: "Ed25519", x: "a" } satisfies JWK;
    const kept = holdKey(jwk) as JWK;
    jwk.x = "b";
    expect(kept.x).toBe("a");
    expect(holdKey(rsa.publicKey)).toBe(rsa.publicKey);
  });

  it("Identity: none is no algorithm, and neither is anything from a prototype", () => {
    expect(["EdDSA", "RS256", "HS512", "ES384"].every(isTokenAlgorithm)).toBe(true);
    expect(["none", "", "rs256", "constructor", undefined, null, ["HS256"]].some(isTokenAlgorithm)).toBe(
      false,
    );
  });
});
