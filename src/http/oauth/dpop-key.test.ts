import { createHash } from "node:crypto";
import { calculateJwkThumbprint, decodeProtectedHeader, EmbeddedJWK, jwtVerify } from "jose";
import { describe, expect, it } from "vitest";
import { createDpopKey } from "./dpop-key.ts";

const at = "https://mcp.example:8443/mcp?session=1#part";
const nonce = (value: string) => new Response(null, { headers: { "dpop-nonce": value } });

describe("a proof of a key", () => {
  it("names the method, the address without its query, and the token, and shows no private key", async () => {
    const key = await createDpopKey();
    const proof = await key.prove({ method: "POST", url: at, token: "the-token" });
    const { payload } = await jwtVerify(proof, EmbeddedJWK);
    expect(payload).toEqual({
      jti: expect.any(String),
      iat: expect.any(Number),
      htm: "POST",
      htu: "https://mcp.example:8443/mcp",
      ath: createHash("sha256").update("the-token").digest("base64url"),
    });
    const { jwk, ...header } = decodeProtectedHeader(proof);
    expect(header).toEqual({ alg: "ES256", typ: "dpop+jwt" });
    expect(jwk).not.toHaveProperty("d");
    expect(await calculateJwkThumbprint(jwk ?? {})).toBe(key.thumbprint);
  });

  it("is never made twice, and is of the same key where that was kept", async () => {
    const key = await createDpopKey();
    const same = await createDpopKey(JSON.parse(JSON.stringify(key.jwk)));
    expect(same.thumbprint).toBe(key.thumbprint);
    const proofs = await Promise.all(
      [key, key, same].map(async (each) => {
        const proof = await each.prove({ method: "GET", url: at });
        return (await jwtVerify(proof, EmbeddedJWK)).payload.jti;
      }),
    );
    expect(new Set(proofs).size).toBe(3);
  });

  it("holds the last nonce of its own server alone", async () => {
    const key = await createDpopKey();
    const nonceFor = async (url: string) => {
      const proof = await key.prove({ method: "GET", url });
      return (await jwtVerify(proof, EmbeddedJWK)).payload["nonce"];
    };
    expect([key.noteNonce(at, nonce("one")), key.noteNonce(at, nonce("one"))]).toEqual([true, false]);
    expect(await nonceFor("https://mcp.example:8443/other")).toBe("one");
    expect(await nonceFor("https://mcp.example/mcp")).toBeUndefined();
    expect(key.noteNonce(at, nonce("two"))).toBe(true);
    expect(await nonceFor(at)).toBe("two");
  });

  it("holds no nonce that is too long or is none, and those of eight servers", async () => {
    const key = await createDpopKey();
    expect(key.noteNonce(at, nonce("n".repeat(513)))).toBe(false);
    expect(key.noteNonce(at, nonce('a"b'))).toBe(false);
    expect(key.noteNonce(at, nonce("n".repeat(512)))).toBe(true);
    for (let server = 1; server < 8; server++) key.noteNonce(`https://s${server}.example`, nonce("n"));
    expect(key.noteNonce(at, nonce("n".repeat(512)))).toBe(false);
    key.noteNonce("https://s8.example", nonce("n"));
    expect(key.noteNonce(at, nonce("n".repeat(512)))).toBe(true);
  });
});
