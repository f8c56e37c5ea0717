import { randomBytes } from "node:crypto";
import { describe, expect, it, vi } from "vitest";
import { rejection } from "../../../test/make-operation.ts";
import {
  delivery,
  ED,
  forge,
  GOOD,
  KEY,
  REFUSED,
  RSA,
  refusal,
  START,
  sign,
  useStartDate,
  verifier,
} from "../../../test/token-cases.ts";
import { defineOperation } from "../../core/operation/operation.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { createTokenSigner } from "./token-signer.ts";
import type { TokenVerifierOptions } from "./token-verifier.ts";

useStartDate();

describe("a token that is good", () => {
  const ada = {
    subject: "ada",
    scopes: ["read"],
    resources: { vault: ["v1"], note: "*" as const },
    tier: "pro",
    claims: { email: "ada@example.com" },
  };

  it.each<
    [
      string,
      Parameters<typeof createTokenSigner>[0]["key"],
      TokenVerifierOptions["keys"],
      "RS256" | undefined,
    ]
  >([
    ["a secret", KEY, KEY, undefined],
    ["a key pair", ED.privateKey, ED.publicKey, undefined],
    ["an RSA pair", RSA.privateKey, RSA.publicKey, "RS256"],
  ])("Identity: of %s gives the identity it was made of, frozen", async (_, key, keys, algorithm) => {
    const token = await createTokenSigner({ key, issuer: "desk", ...(algorithm && { algorithm }) })(
      ada,
      "note.write",
      { requestId: "1" },
    );
    const verify = verifier({ keys, ...(algorithm && { algorithms: [algorithm] }) });
    const identity = await verify(delivery(token, "note.write"));
    expect(identity).toEqual(ada);
    expect([identity, identity?.scopes, identity?.resources, identity?.claims].every(Object.isFrozen)).toBe(
      true,
    );
  });

  it("Identity: gives an identity that goes as it is into a registry", async () => {
    const verify = verifier();
    const token = await sign(GOOD);
    const first = await verify(delivery(token));
    const handler = (_: unknown, { identity }: { identity: unknown }) => ({ same: identity === first });
    const spec = { namespace: "a", name: "b", version: "1.0.0", type: "query", description: "" } as const;
    const registry = new OperationRegistry([defineOperation({ ...spec, handler })]);
    expect((await registry.execute("a.b", {}, { identity: first })).data).toEqual({ same: true });
  });

  it("Identity: may be for several namespaces", async () => {
    const token = await sign({ ...GOOD, aud: ["waybill:vault", "waybill:note"] });
    expect(await verifier()(delivery(token))).toMatchObject({ subject: "ada" });
  });

  it("Identity: claims called __proto__ and constructor stay claims and pollute nothing", async () => {
    const payload = `{"claims":{"__proto__":{"admin":1},"constructor":1},"resources":{"__proto__":["x"]},${JSON.stringify(GOOD).slice(1)}`;
    const identity = await verifier()(delivery(forge({ alg: "HS256" }, payload)));
    expect(JSON.stringify(identity?.claims)).toBe('{"__proto__":{"admin":1},"constructor":1}');
    expect(Object.getPrototypeOf(identity?.claims)).toBe(Object.prototype);
    expect(Object.keys(identity?.resources ?? {})).toEqual(["__proto__"]);
    expect(({} as { admin?: unknown }).admin).toBeUndefined();
    const inherited = `{"__proto__":{"scopes":["root"]},${JSON.stringify(GOOD).slice(1)}`;
    expect((await verifier()(delivery(forge({ alg: "HS256" }, inherited))))?.scopes).toEqual([]);
  });

  it("Identity: is not needed by an anonymous caller, whatever else the delivery says", async () => {
    expect(await verifier()(delivery())).toBeUndefined();
  });
});

describe("the life of a token", () => {
  it.each([
    [5_000, undefined],
    [0, 0],
    [1_500, 1_500],
  ])(
    "Identity: ends %d ms after its end, to the millisecond, remembered or not",
    async (tolerance, given) => {
      const token = await sign(GOOD);
      const options = given === undefined ? {} : { clockToleranceMs: given };
      const remembering = verifier(options);
      await remembering(delivery(token));
      for (const verify of [remembering, verifier(options)]) {
        vi.setSystemTime(START + 60_000 + tolerance - 1);
        expect(await verify(delivery(token))).toMatchObject({ subject: "ada" });
        vi.setSystemTime(START + 60_000 + tolerance);
        expect(await rejection(verify(delivery(token)))).toMatchObject(REFUSED);
      }
    },
  );

  it.each(["nbf", "iat"])("Identity: begins with its %s, give or take the tolerance", async (claim) => {
    const token = await sign({ ...GOOD, [claim]: START / 1_000 + 30 });
    const verify = verifier();
    vi.setSystemTime(START + 24_999);
    expect(await rejection(verify(delivery(token)))).toMatchObject(REFUSED);
    vi.setSystemTime(START + 25_000);
    expect(await verify(delivery(token))).toMatchObject({ subject: "ada" });
  });

  it("Identity: is judged by the time a message was stored, where that is given", async () => {
    const token = await sign(GOOD);
    const verify = verifier();
    const stored = new Date(START + 10_000);
    vi.setSystemTime(START + 3_600_000);
    expect(await verify(delivery(token), stored)).toMatchObject({ subject: "ada" });
    expect(await verify(delivery(token), new Date(START + 64_999))).toMatchObject({ subject: "ada" });
    expect(await rejection(verify(delivery(token), new Date(START + 65_000)))).toMatchObject(REFUSED);
    expect(await rejection(verify(delivery(token)))).toMatchObject(REFUSED);
    vi.setSystemTime(START);
    await verify(delivery(token));
    expect(await rejection(verify(delivery(token), new Date(START + 65_000)))).toMatchObject(REFUSED);
    expect(await rejection(verify(delivery(token), new Date(Number.NaN)))).toBeInstanceOf(TypeError);
  });

  it("Identity: may be an hour, and not a second more", async () => {
    const life = (seconds: number) => sign({ ...GOOD, exp: START / 1_000 + seconds });
    expect(await verifier()(delivery(await life(3_600)))).toBeDefined();
    expect(await refusal(await life(3_601))).toMatchObject(REFUSED);
    expect(await verifier({ maxLifetimeMs: 10_000 })(delivery(await life(10)))).toBeDefined();
    expect(await refusal(await life(11), { maxLifetimeMs: 10_000 })).toMatchObject(REFUSED);
  });
});

describe("a verifier that makes no sense", () => {
  it.each<[string, object, RegExp]>([
    ["a private key", { keys: ED.privateKey }, /^Tokens are checked with the public key/],
    ["a short secret", { keys: randomBytes(31) }, /^A secret must be at least 32 bytes long/],
    [
      "an RSA key without algorithms",
      { keys: RSA.publicKey },
      /^algorithms must name one that the key can be used/,
    ],
    [
      "algorithms of another kind of key",
      { keys: RSA.publicKey, algorithms: ["HS256"] },
      /^algorithms must name/,
    ],
    [
      "a secret for RSA",
      { algorithms: ["RS256"] },
      /^algorithms must name one that the key can be used with: HS256/,
    ],
    ["an algorithm that signs nothing", { algorithms: ["none"] }, /^algorithms must be a list/],
    ["no algorithm", { algorithms: [] }, /^algorithms must be a list/],
    ["an algorithm as text", { algorithms: "HS256" }, /^algorithms must be a list/],
    ["a function without algorithms", { keys: () => KEY }, /^algorithms must be given/],
    ["no keys", { keys: [] }, /^keys must hold at least one/],
    [
      "a key twice",
      { keys: [1, 2].map(() => ({ keyId: "a", key: KEY })) },
      /^Every key of a list needs a keyId/,
    ],
    ["a key without id", { keys: [{ key: KEY }] }, /^Every key of a list needs a keyId/],
    ["no issuer", { issuer: "" }, /^issuer must be a string/],
    ["a tolerance below nothing", { clockToleranceMs: -1 }, /^clockToleranceMs must be/],
    ["a life that is no number", { maxLifetimeMs: Number.NaN }, /^maxLifetimeMs must be/],
  ])("Identity: is a programmer's mistake: %s", (_, options, message) => {
    expect(() => verifier(options)).toThrow(TypeError);
    expect(() => verifier(options)).toThrow(message);
  });
});
