import { generateKeyPairSync, randomBytes } from "node:crypto";
import { decodeJwt, decodeProtectedHeader, exportJWK } from "jose";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { rejection } from "../../../test/make-operation.ts";
import { createTokenSigner, type TokenSignerOptions } from "./token-signer.ts";

const KEY = randomBytes(32);
const START = Date.UTC(2030, 0, 1);
const ada = { subject: "ada", scopes: ["read"], tier: "pro" };
const rsa = generateKeyPairSync("rsa", { modulusLength: 2_048 });
const ed = generateKeyPairSync("ed25519");

const CALL = { requestId: "1" };
const NOTHING = expect.stringMatching(/^[\w-]{43}$/);

const signer = (options: Partial<TokenSignerOptions> = {}) =>
  createTokenSigner({ key: KEY, issuer: "desk", ...options });

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: START });
});

afterEach(() => {
  vi.useRealTimers();
});

describe("a signed token", () => {
  it("Identity: says who, vouched for by whom, for which namespace and for how long, and no more", async () => {
    const resources = { vault: ["v1"], note: "*" as const };
    const claims = { email: "ada@example.com", left: undefined, deep: [{ n: 1 }] };
    const token = await signer()({ ...ada, resources, claims }, "note.read", CALL);
    expect(decodeProtectedHeader(token)).toEqual({ alg: "HS256", typ: "JWT" });
    expect(decodeJwt(token)).toStrictEqual({
      ...{ sub: "ada", scopes: ["read"], tier: "pro", resources, iss: "desk", aud: "waybill:note" },
      claims: { email: "ada@example.com", deep: [{ n: 1 }] },
      ...{ iat: START / 1_000, exp: START / 1_000 + 60, op: "note.read", jti: "1", inp: NOTHING },
    });
    const bare = decodeJwt(await signer({ lifetimeMs: 1_001 })({ subject: "eve" }, "note.read", CALL));
    const iat = START / 1_000;
    const call = { op: "note.read", jti: "1", inp: NOTHING };
    expect(bare).toStrictEqual({ sub: "eve", iss: "desk", aud: "waybill:note", iat, exp: iat + 2, ...call });
  });

  it("Identity: names its key where that has a name", async () => {
    const jwk = { ...(await exportJWK(ed.privateKey)), kid: "k1" };
    const kidOf = async (options: Partial<TokenSignerOptions>) =>
      decodeProtectedHeader(await signer(options)(ada, "a.b", CALL));
    expect(await kidOf({ key: jwk })).toEqual({ alg: "EdDSA", typ: "JWT", kid: "k1" });
    expect(await kidOf({ key: jwk, keyId: "k2" })).toMatchObject({ kid: "k2" });
    expect(await kidOf({ key: rsa.privateKey, algorithm: "PS256" })).toEqual({ alg: "PS256", typ: "JWT" });
  });

  it.each([
    ["a date", new Date(0)],
    ["a bigint", 1n],
    ["a map", new Map()],
    ["NaN", Number.NaN],
    ["undefined further down", { a: undefined }],
  ])("Identity: is not made of claims that JSON would change: %s", async (_, value) => {
    const error = await rejection(signer()({ ...ada, claims: { value } }, "a.b", CALL));
    expect(error).toEqual(new TypeError("The claims of an identity must be JSON to go into a token."));
  });

  it("Identity: keeps a claim called __proto__ a claim", async () => {
    const claims = JSON.parse('{"__proto__":{"admin":true}}');
    const token = await signer()({ subject: "eve", claims }, "a.b", CALL);
    expect(JSON.stringify(decodeJwt(token)["claims"])).toBe('{"__proto__":{"admin":true}}');
  });

  it("Identity: of 8,192 characters fits an event, a longer one is refused", async () => {
    const sign = (length: number) => signer()({ subject: "x".repeat(length) }, "a.b", CALL);
    let length = 5_900;
    while ((await sign(length + 1).catch(() => "")) !== "") length++;
    expect((await sign(length)).length).toBeGreaterThan(8_188);
    expect((await sign(length)).length).toBeLessThanOrEqual(8_192);
    expect(await rejection(sign(length + 1))).toMatchObject({ code: "TOO_LARGE" });
  });

  it.each([undefined, null, "ada", { subject: "" }, { subject: "ada", scopes: "read" }])(
    "Identity: is not made of %j",
    async (identity) => {
      expect(await rejection(signer()(identity as never, "a.b", CALL))).toBeInstanceOf(TypeError);
    },
  );
});

describe("signing again", () => {
  it("Identity: is for every call a token of its own", async () => {
    const sign = signer();
    const first = await sign(ada, "note.read", CALL);
    const others = [
      sign(ada, "note.write", CALL),
      sign(ada, "note.read", { requestId: "2" }),
      sign(ada, "note.read", { ...CALL, input: 1 }),
      sign(ada, "note.read", { ...CALL, attempt: 2 }),
    ];
    expect(new Set([first, ...(await Promise.all(others))]).size).toBe(5);
  });
});

describe("a signer that makes no sense", () => {
  it.each<[string, object, RegExp]>([
    ["a short secret", { key: randomBytes(31) }, /^A secret must be at least 32 bytes long/],
    ["a public key", { key: ed.publicKey }, /^A public key cannot sign/],
    [
      "an RSA key without an algorithm",
      { key: rsa.privateKey },
      /^Say which algorithm to sign with: RS256, /,
    ],
    ["a key for something else", { algorithm: "RS256" }, /^The key does not fit the algorithm; .* HS256/],
    ["no algorithm at all", { algorithm: "none" }, /^The key does not fit the algorithm/],
    ["no issuer", { issuer: "" }, /^issuer must be a string/],
    ["no life", { lifetimeMs: 999 }, /^lifetimeMs must be a whole number, 1,000 or more/],
    ["half a millisecond", { lifetimeMs: 1_000.5 }, /^lifetimeMs must be/],
    ["life without end", { lifetimeMs: Number.POSITIVE_INFINITY }, /^lifetimeMs must be/],
  ])("Identity: is a programmer's mistake: %s", (_, options, message) => {
    expect(() => signer(options)).toThrow(TypeError);
    expect(() => signer(options)).toThrow(message);
  });
});
