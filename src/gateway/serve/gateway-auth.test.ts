import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { describe, expect, it } from "vitest";
import type { Identity } from "../../core/access/identity.ts";
import { callerKey, GatewayAuth } from "./gateway-auth.ts";

const TOKEN = "correct-horse-battery";
const OTHER = "another-token-of-others";

const head = (headers: Record<string, string>) => ({
  method: "GET",
  path: "/",
  origin: "http://localhost",
  header: (name: string) => headers[name],
});
const bearer = (token: string) => head({ authorization: `Bearer ${token}` });

describe("GatewayAuth", () => {
  it("RE-30 lets everybody be anonymous where nothing is configured", async () => {
    const auth = new GatewayAuth(undefined);
    expect(auth.isOn).toBe(false);
    expect(await auth.identify(bearer("whatever"))).toEqual({ identity: undefined });
    expect(new GatewayAuth({ tokens: {} }).isOn).toBe(false);
  });

  it("RE-30 knows each token's holder, in either header", async () => {
    const auth = new GatewayAuth({
      tokens: {
        ann: { token: TOKEN, scopes: ["read"], tier: "pro", format: "tool-envelope" },
        bea: { token: OTHER },
      },
    });
    const ann = await auth.identify(bearer(TOKEN));
    expect(ann).toMatchObject({ identity: { subject: "ann", scopes: ["read"], tier: "pro" } });
    expect(await auth.identify(head({ "x-api-key": OTHER }))).toMatchObject({ identity: { subject: "bea" } });
    expect(await auth.identify(head({ authorization: `bearer  ${OTHER}` }))).toMatchObject({
      identity: { subject: "bea" },
    });
    if (!("identity" in ann)) throw new Error("refused");
    expect(auth.formatOf(ann.identity)).toBe("tool-envelope");
    expect(auth.formatOf({ subject: "ann" })).toBeUndefined();
    expect(auth.formatOf(undefined)).toBeUndefined();
  });

  it.each<[string, Record<string, string>]>([
    ["no token", {}],
    ["another token", { authorization: "Bearer wrong-token-of-length" }],
    ["all but the last character", { authorization: `Bearer ${TOKEN.slice(0, -1)}` }],
    ["one character more", { authorization: `Bearer ${TOKEN}x` }],
    ["an empty one", { authorization: "Bearer " }],
    ["another scheme", { authorization: `Basic ${TOKEN}` }],
    ["a wrong key", { "x-api-key": "wrong-token-of-length" }],
    ["a wrong token beside a right key", { authorization: "Bearer wrong", "x-api-key": TOKEN }],
    ["a huge one", { authorization: `Bearer ${"x".repeat(100_000)}` }],
  ])("RE-30 refuses %s", async (_, headers) => {
    const auth = new GatewayAuth({ tokens: { ann: { token: TOKEN } } });
    expect(await auth.identify(head(headers))).toMatchObject({
      refusal: { status: 401, headers: { "www-authenticate": expect.stringMatching(/^Bearer/) } },
    });
  });

  it("RE-30 takes tokens of sixteen characters, and none that is shorter or could not be sent", () => {
    const make = (token: string) => new GatewayAuth({ tokens: { ann: { token } } });
    expect(make("x".repeat(16)).isOn).toBe(true);
    expect(() => make("x".repeat(15))).toThrow(
      "serve.auth.tokens.ann.token must have at least 16 characters",
    );
    expect(() => make(`${"x".repeat(16)} y`)).toThrow(TypeError);
  });

  it("RE-30 believes others from one moment to the next, and stays as it is where they make no sense", async () => {
    const auth = new GatewayAuth({ tokens: { ann: { token: TOKEN } } });
    auth.set({ tokens: { bea: { token: OTHER } } });
    expect(await auth.identify(bearer(TOKEN))).toMatchObject({ refusal: { status: 401 } });
    expect(await auth.identify(bearer(OTHER))).toMatchObject({ identity: { subject: "bea" } });
    expect(() => auth.set({ tokens: { cid: { token: "short" } } })).toThrow(TypeError);
    expect(() => auth.set({ jwt: { audience: "", jwksUrl: "http://127.0.0.1/" } })).toThrow(
      "serve.auth.jwt.",
    );
    expect(await auth.identify(bearer(OTHER))).toMatchObject({ identity: { subject: "bea" } });
  });

  it("says that callers have changed only when those it believes are others", () => {
    const auth = new GatewayAuth({ tokens: { ann: { token: TOKEN } } });
    const isSame = auth.isUnchanged();
    auth.set({ tokens: { ann: { token: TOKEN } } });
    expect(isSame()).toBe(true);
    auth.set({ tokens: { ann: { token: TOKEN, scopes: ["read"] } } });
    expect(isSame()).toBe(false);
    const isOther = auth.isUnchanged();
    auth.set(undefined);
    expect(isOther()).toBe(false);
  });

  it("tells callers of one name apart by who issued their tokens, and tells scopes to those who can get others", async () => {
    const { publicKey, privateKey } = await generateKeyPair("ES256");
    const keys = { keys: [{ ...(await exportJWK(publicKey)), alg: "ES256", use: "sig" }] };
    const server = createServer((_, response) => response.end(JSON.stringify(keys)));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const jwksUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
      const audience = "https://gate.example/mcp";
      const issuers = ["https://a.example", "https://b.example"].map((issuer) => ({ issuer, jwksUrl }));
      const auth = new GatewayAuth({ tokens: { ann: { token: TOKEN } }, jwt: { audience, issuers } });
      const identify = async (token: string) => {
        const admitted = await auth.identify(bearer(token));
        if (!("identity" in admitted) || admitted.identity === undefined) throw new Error("refused");
        return admitted.identity;
      };
      const signed = issuers.map(({ issuer }) =>
        new SignJWT({ iss: issuer, sub: "ann", aud: audience })
          .setProtectedHeader({ alg: "ES256" })
          .setExpirationTime("1m")
          .sign(privateKey),
      );
      const [first, second] = await Promise.all(signed.map(async (token) => identify(await token)));
      const fixed = await identify(TOKEN);
      const known = [first, second, fixed].map((identity) => callerKey(identity));
      expect(new Set(known).size).toBe(3);
      const wanted = (identity: Identity | undefined) =>
        identity && auth.stepUp(bearer(TOKEN), identity, ["more"]);
      expect(wanted(first)).toContain('error="insufficient_scope", scope="more"');
      expect(wanted(fixed)).toBeUndefined();
    } finally {
      server.close();
    }
  });

  it("RE-30 takes signed tokens beside fixed ones, and says where to get one", async () => {
    const { publicKey, privateKey } = await generateKeyPair("ES256");
    const keys = { keys: [{ ...(await exportJWK(publicKey)), alg: "ES256", use: "sig" }] };
    const server = createServer((_, response) => response.end(JSON.stringify(keys)));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const jwksUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
      const audience = "https://gate.example/mcp";
      const issuer = "https://login.example";
      const auth = new GatewayAuth({
        tokens: { ann: { token: TOKEN } },
        jwt: { audience, jwksUrl, issuer, requiredScopes: ["use"] },
      });
      const sign = (scope: string, to = audience) =>
        new SignJWT({ scope })
          .setProtectedHeader({ alg: "ES256" })
          .setSubject("eve")
          .setIssuer(issuer)
          .setAudience(to)
          .setExpirationTime("1m")
          .sign(privateKey);
      expect(await auth.identify(bearer(await sign("use")))).toMatchObject({
        identity: { subject: "eve", scopes: ["use"] },
      });
      expect(await auth.identify(bearer(TOKEN))).toMatchObject({ identity: { subject: "ann" } });
      expect(await auth.identify(bearer(await sign("other")))).toMatchObject({ refusal: { status: 403 } });
      expect(await auth.identify(bearer(await sign("use", "else")))).toMatchObject({
        refusal: { status: 401 },
      });
      expect(await auth.identify(head({}))).toMatchObject({
        refusal: { headers: { "www-authenticate": expect.stringContaining("resource_metadata=") } },
      });
      const described = auth.describe({
        ...head({}),
        path: "/.well-known/oauth-protected-resource/mcp",
      });
      const body = JSON.stringify({ resource: audience, authorization_servers: [issuer] });
      expect(described).toMatchObject({ answer: { body: expect.stringContaining(body.slice(0, -1)) } });
    } finally {
      server.close();
    }
  });
});
