import { randomBytes } from "node:crypto";
import { createLocalJWKSet, exportJWK } from "jose";
import { describe, expect, it } from "vitest";
import { cpuMs } from "../../../test/cpu-ms.ts";
import { rejection } from "../../../test/make-operation.ts";
import {
  delivery,
  ED,
  forge,
  GOOD,
  KEY,
  part,
  REFUSED,
  RSA,
  refusal,
  START,
  sign,
  useStartDate,
  verifier,
} from "../../../test/token-cases.ts";

useStartDate();

describe("a token that is not good", () => {
  it("Identity: is refused with one sentence that shows neither token nor reason", async () => {
    const token = await sign(GOOD, "HS256", randomBytes(32));
    const error = await refusal(token);
    expect(error).toMatchObject({ ...REFUSED, retryable: false, details: undefined });
    expect(JSON.stringify(error)).not.toContain(token.slice(0, 10));
    expect((error as Error).cause).toMatchObject({ code: "ERR_JWS_SIGNATURE_VERIFICATION_FAILED" });
  });

  it.each(["none", "None", "NONE", "nOnE", ""])("Identity: signed with %j is refused", async (alg) => {
    for (const signature of ["", "AA", forge({ alg }, GOOD).split(".")[2]]) {
      expect(await refusal(`${part({ alg })}.${part(GOOD)}.${signature}`)).toMatchObject(REFUSED);
    }
  });

  it("Identity: signed with a public key as if it were a secret is refused", async () => {
    const pem = RSA.publicKey.export({ type: "spki", format: "pem" }) as string;
    const der = RSA.publicKey.export({ type: "spki", format: "der" });
    for (const secret of [pem, pem.trim(), der]) {
      const token = forge({ alg: "HS256", kid: "rsa" }, GOOD, secret);
      const keys = RSA.publicKey;
      expect(await refusal(token, { keys, algorithms: ["RS256"] })).toMatchObject(REFUSED);
      expect(await refusal(token, { keys, algorithms: ["RS256", "HS256"] })).toMatchObject(REFUSED);
      const list = [
        { keyId: "rsa", key: keys },
        { keyId: "secret", key: KEY },
      ];
      expect(await refusal(token, { keys: list, algorithms: ["RS256", "HS256"] })).toMatchObject(REFUSED);
      const set = createLocalJWKSet({ keys: [{ ...(await exportJWK(keys)), kid: "rsa" }] });
      expect(await refusal(token, { keys: set, algorithms: ["RS256", "HS256"] })).toMatchObject(REFUSED);
    }
  });

  it("Identity: signed with another algorithm than was allowed is refused, though the key fits", async () => {
    const keys = RSA.publicKey;
    const token = await sign(GOOD, "RS512", RSA.privateKey);
    expect(await refusal(token, { keys, algorithms: ["RS256"] })).toMatchObject(REFUSED);
    expect(await verifier({ keys, algorithms: ["RS256", "RS512"] })(delivery(token))).toBeDefined();
    expect(await refusal(await sign(GOOD, "HS512", randomBytes(64)))).toMatchObject(REFUSED);
  });

  it("Identity: changed by one character anywhere is refused", async () => {
    const token = await sign(GOOD, "EdDSA", ED.privateKey);
    const verify = verifier({ keys: ED.publicKey });
    await verify(delivery(token));
    const [header, , signature] = token.split(".");
    const raised = `${header}.${part({ ...GOOD, scopes: ["root"] })}.${signature}`;
    expect(await rejection(verify(delivery(raised)))).toMatchObject(REFUSED);
    for (let at = 0; at < token.length - 1; at += 7) {
      if (token[at] === ".") continue;
      const changed = `${token.slice(0, at)}${token[at] === "A" ? "B" : "A"}${token.slice(at + 1)}`;
      expect(await rejection(verify(delivery(changed)))).toMatchObject(REFUSED);
    }
  });

  it("Identity: received by one namespace is refused by another, also once it is remembered", async () => {
    const verify = verifier();
    const token = await sign(GOOD);
    expect(await rejection(verify(delivery(token, "vault.open")))).toMatchObject(REFUSED);
    expect(await verify(delivery(token, "note.read"))).toBeDefined();
    expect(await rejection(verify(delivery(token, "vault.open")))).toMatchObject(REFUSED);
    expect(await rejection(verify(delivery(token, "note2.read")))).toMatchObject(REFUSED);
    expect(await rejection(verify(delivery(`${token} waybill:note`, "vault.open")))).toMatchObject(REFUSED);
  });

  it.each<[string, object]>([
    ["from somebody else", { iss: "desk2" }],
    ["from nobody", { iss: undefined }],
    ["for nobody", { aud: undefined }],
    ["without an end", { exp: undefined }],
    ["without a beginning", { iat: undefined }],
    ["with an end that is text", { exp: `${START / 1_000 + 60}` }],
    ["with a beginning that is text", { iat: `${START / 1_000}` }],
    ["without a subject", { sub: undefined }],
    ["with an empty subject", { sub: "" }],
    ["with a subject that is a number", { sub: 7 }],
    ["with a subject that is a list", { sub: ["ada"] }],
    ["with scopes that are text", { scopes: "read write" }],
    ["with scopes that are null", { scopes: null }],
    ["with a scope that is a number", { scopes: ["read", 1] }],
    ["with resources that are a list", { resources: [] }],
    ["with resources that are null", { resources: null }],
    ["with resources that are text", { resources: "*" }],
    ["with a resource that is text", { resources: { vault: "v1" } }],
    ["with a tier that is a number", { tier: 3 }],
    ["with a tier that is null", { tier: null }],
    ["with claims that are a list", { claims: [] }],
    ["with claims that are text", { claims: "admin" }],
  ])("Identity: %s is refused", async (_, claims) => {
    expect(await refusal(forge({ alg: "HS256" }, { ...GOOD, ...claims }))).toMatchObject(REFUSED);
  });

  it("Identity: with a time beyond all numbers is refused", async () => {
    const endless = JSON.stringify(GOOD).replace(`${GOOD.exp}`, "1e999");
    expect(await refusal(forge({ alg: "HS256" }, endless))).toMatchObject(REFUSED);
  });

  it.each([
    ["no token", "x"],
    ["empty parts", ".."],
    ["four parts", "a.b.c.d"],
    ["spaces", "a b.c.d"],
    ["no JSON", forge("x", "x")],
    ["a list", forge({ alg: "HS256" }, "[]")],
    ["null", forge({ alg: "HS256" }, "null")],
    ["a header nobody knows but must", forge({ alg: "HS256", crit: ["x"], x: 1 }, GOOD)],
    ["a payload that is not encoded", forge({ alg: "HS256", crit: ["b64"], b64: false }, GOOD)],
    ["a key of its own", forge({ alg: "HS256", jwk: { kty: "oct", k: "AA" } }, GOOD, "\0")],
  ])("Identity: that is malformed is refused: %s", async (_, token) => {
    expect(await refusal(token)).toMatchObject(REFUSED);
  });

  it("Identity: of 8,192 characters is read, a longer one is not looked at", async () => {
    const make = (length: number) =>
      forge({ alg: "HS256" }, { ...GOOD, claims: { pad: "x".repeat(length) } });
    let length = 5_700;
    while (make(length + 1).length <= 8_192) length++;
    expect(make(length).length).toBeGreaterThan(8_189);
    expect(await verifier()(delivery(make(length)))).toBeDefined();
    const error = await refusal(make(length + 1));
    expect(error).toMatchObject({ ...REFUSED, cause: undefined });
    const huge = `${"a.".repeat(5_000_000)}!`;
    const started = cpuMs();
    expect(await refusal(huge)).toMatchObject({ ...REFUSED, cause: undefined });
    expect(cpuMs() - started).toBeLessThan(500);
  });

  it("Identity: nested as deep as it can be neither crashes nor hangs", async () => {
    const deep = `${"[".repeat(2_900)}${"]".repeat(2_900)}`;
    const payload = `{"claims":{"a":${deep}},${JSON.stringify(GOOD).slice(1)}`;
    const found = await verifier()(delivery(forge({ alg: "HS256" }, payload))).catch((error) => error);
    expect(found.subject === "ada" || found.code === "UNAUTHENTICATED").toBe(true);
  });
});
