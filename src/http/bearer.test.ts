import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, generateSecret, SignJWT, UnsecuredJWT } from "jose";
import { afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { type BearerAuth, createBearerCheck } from "./bearer.ts";
import { FetchRequest } from "./fetch-exchange.ts";

const requestTo = (...given: ConstructorParameters<typeof Request>) =>
  new FetchRequest(new Request(...given));

type Keys = Awaited<ReturnType<typeof generateKeyPair>>;
let keys: Keys;
let others: Keys;
beforeAll(async () => {
  keys = await generateKeyPair("ES256", { extractable: true });
  others = await generateKeyPair("ES256");
});

afterEach(() => void vi.useRealTimers());

const AUDIENCE = "https://api.example/mcp";
const GOOD = { sub: "ann", aud: AUDIENCE, iss: "https://id.example", scope: "read write" };
const inSeconds = (seconds: number) => Math.floor(Date.now() / 1_000) + seconds;

function sign(
  payload: Record<string, unknown>,
  key = keys.privateKey,
  header: Record<string, string> = {},
): Promise<string> {
  return new SignJWT({ exp: inSeconds(60), ...payload })
    .setProtectedHeader({ alg: "ES256", ...header })
    .sign(key);
}

async function check(token: string | undefined, auth: Partial<BearerAuth> = {}) {
  const bearer = createBearerCheck({ audience: AUDIENCE, keys: keys.publicKey, issuer: GOOD.iss, ...auth });
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const outcome = await bearer.check(requestTo("http://localhost/mcp", { headers }));
  if ("identity" in outcome) return { status: 200, identity: outcome.identity, challenge: "" };
  const { status, headers: answered } = outcome.refusal;
  return { status, identity: undefined, challenge: answered["www-authenticate"] ?? "" };
}

describe("createBearerCheck", () => {
  it("X-4 reads subject and scopes from a good token, and nothing that gives rights by another name", async () => {
    const token = await sign({ ...GOOD, tier: "admin", resources: { file: "*" }, email: "ann@example.com" });
    const { identity } = await check(token);
    expect(identity).toMatchObject({ subject: "ann", scopes: ["read", "write"], resources: {} });
    expect(identity).not.toHaveProperty("tier");
    expect(identity?.claims).toMatchObject({ email: "ann@example.com", iss: GOOD.iss });
    expect(JSON.stringify(identity)).not.toContain(token);
  });

  it("Http: knows a caller until the token expires, with the tolerance, or until `toIdentity` says", async () => {
    const exp = inSeconds(60);
    const token = await sign({ ...GOOD, exp });
    expect((await check(token)).identity?.expiresAt).toBe(exp * 1_000 + 5_000);
    expect((await check(token, { clockToleranceMs: 0 })).identity?.expiresAt).toBe(exp * 1_000);
    const until = (expiresAt: number) => check(token, { toIdentity: () => ({ subject: "ann", expiresAt }) });
    expect((await until(5)).identity?.expiresAt).toBe(5);
    expect((await until(exp * 2_000)).identity?.expiresAt).toBe(exp * 1_000 + 5_000);
  });

  it("Http: takes scopes as a list too, and whatever `toIdentity` makes of a token", async () => {
    const token = await sign({ ...GOOD, scope: undefined, scp: ["a", 1, "b"] });
    expect((await check(token)).identity?.scopes).toEqual(["a", "b"]);
    const toIdentity = () => ({ subject: "mapped", tier: "gold" });
    expect((await check(token, { toIdentity })).identity).toMatchObject({ subject: "mapped", tier: "gold" });
  });

  it("Http: refuses every token that is not for here, not from there, not in time or not signed", async () => {
    const bad = {
      "other audience": await sign({ ...GOOD, aud: "https://other.example" }),
      "no audience": await sign({ ...GOOD, aud: undefined }),
      "other issuer": await sign({ ...GOOD, iss: "https://evil.example" }),
      "no subject": await sign({ ...GOOD, sub: undefined }),
      "empty subject": await sign({ ...GOOD, sub: "" }),
      expired: await sign({ ...GOOD, exp: inSeconds(-10) }),
      "no expiry": await sign({ ...GOOD, exp: undefined }),
      "not yet": await sign({ ...GOOD, nbf: inSeconds(60) }),
      "other key": await sign(GOOD, others.privateKey),
      unsigned: new UnsecuredJWT({ ...GOOD, exp: inSeconds(60) }).encode(),
      "public key as secret": await new SignJWT({ ...GOOD, exp: inSeconds(60) })
        .setProtectedHeader({ alg: "HS256" })
        .sign(new TextEncoder().encode(JSON.stringify(await exportJWK(keys.publicKey)))),
      garbage: "a.b.c",
      "not a token": "secret",
    };
    for (const [name, token] of Object.entries(bad)) {
      const { status, challenge } = await check(token);
      expect([name, status, challenge]).toEqual([name, 401, 'Bearer error="invalid_token"']);
    }
  });

  it.each(["jku", "x5u", "jwk", "kid", "crit"])(
    "Http: takes no key that a token brings or names in its header: %s",
    async (name) => {
      let asked = 0;
      const thief = await generateKeyPair("ES256", { extractable: true });
      const jwk = { ...(await exportJWK(thief.publicKey)), kid: "1", alg: "ES256" };
      const elsewhere = createServer((_, response) => {
        asked += 1;
        response.end(JSON.stringify({ keys: [jwk] }));
      });
      await new Promise<void>((resolve) => elsewhere.listen(0, "127.0.0.1", resolve));
      onTestFinished(() => void elsewhere.close());
      const address = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/jwks`;
      const own = { ...(await exportJWK(keys.publicKey)), kid: "1", alg: "ES256" };
      const header = { jku: address, x5u: address, jwk, kid: "../../../dev/null", crit: ["jku"] }[name];
      const forged = await new SignJWT({ ...GOOD, exp: inSeconds(60) })
        .setProtectedHeader({
          alg: "ES256",
          kid: "1",
          [name]: header,
          ...(name === "crit" && { jku: address }),
        } as never)
        .sign(thief.privateKey, { crit: { jku: true } });
      for (const given of [keys.publicKey, { keys: [own] }])
        expect((await check(forged, { keys: given })).status).toBe(401);
      expect(asked).toBe(0);
    },
  );

  it("Http: allows clocks to differ by so much and no more", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const token = await sign({ ...GOOD, exp: inSeconds(-3) });
    expect((await check(token)).status).toBe(200);
    expect((await check(token, { clockToleranceMs: 0 })).status).toBe(401);
  });

  it("Http: reads a token of as many characters as allowed, and no more", async () => {
    const fill = async (length: number) => {
      const bare = (await sign({ ...GOOD, pad: "" })).length + "Bearer ".length;
      // Three bytes make four characters.
      const token = await sign({ ...GOOD, pad: "x".repeat(Math.floor(((length - bare) * 3) / 4)) });
      return (await check(token)).status;
    };
    expect(await fill(16_380)).toBe(200);
    expect(await fill(16_390)).toBe(401);
  });

  it("Http: asks for a token, and says where to get one", async () => {
    expect(await check(undefined)).toMatchObject({ status: 401, challenge: "Bearer" });
    const resourceMetadata = { authorizationServers: ["https://id.example"], scopesSupported: ["read"] };
    const url = "https://api.example/.well-known/oauth-protected-resource/mcp";
    expect((await check(undefined, { resourceMetadata })).challenge).toBe(
      `Bearer resource_metadata="${url}"`,
    );
    const bearer = createBearerCheck({ audience: AUDIENCE, keys: keys.publicKey, resourceMetadata });
    for (const path of ["", "/mcp"]) {
      const request = requestTo(`http://localhost/.well-known/oauth-protected-resource${path}`);
      const described = bearer.describe(request);
      if (described === undefined || !("answer" in described)) throw new Error("not described");
      expect(JSON.parse(described.answer.body as string)).toEqual({
        resource: AUDIENCE,
        authorization_servers: ["https://id.example"],
        scopes_supported: ["read"],
        bearer_methods_supported: ["header"],
      });
    }
    expect(bearer.describe(requestTo("http://localhost/mcp"))).toBeUndefined();
    const other = requestTo("http://localhost/.well-known/oauth-protected-resource/other");
    expect(bearer.describe(other)).toMatchObject({ refusal: { status: 404 } });
  });

  it("Http: names the scopes that are needed", async () => {
    const { status, challenge } = await check(await sign(GOOD), { requiredScopes: ["read", "admin"] });
    expect(status).toBe(403);
    expect(challenge).toBe('Bearer error="insufficient_scope", scope="read admin"');
    expect((await check(await sign(GOOD), { requiredScopes: ["read", "write"] })).status).toBe(200);
  });

  it("Http: takes a key set, a published key set, a single key and a shared secret", async () => {
    const jwk = { ...(await exportJWK(keys.publicKey)), kid: "1", alg: "ES256" };
    const token = await sign(GOOD, keys.privateKey, { kid: "1" });
    expect((await check(token, { keys: { keys: [jwk] } })).status).toBe(200);
    expect((await check(token, { keys: jwk })).status).toBe(200);
    const secret = crypto.getRandomValues(new Uint8Array(32));
    const shared = await new SignJWT({ ...GOOD, exp: inSeconds(60) })
      .setProtectedHeader({ alg: "HS256" })
      .sign(secret);
    expect((await check(shared, { keys: secret })).status).toBe(200);
    const hidden = (await generateSecret("HS256")) as CryptoKey;
    expect((await check(shared, { keys: hidden })).status).toBe(401);
    const publisher = createServer((_, response) => response.end(JSON.stringify({ keys: [jwk] })));
    await new Promise<void>((resolve) => publisher.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(publisher.address() as AddressInfo).port}/keys`;
    expect((await check(token, { keys: url })).status).toBe(200);
    await new Promise((resolve) => publisher.close(resolve));
    expect((await check(token, { keys: url })).status).toBe(503);
  });

  it("Http: refuses a token of an algorithm the key is not for, whatever form the key has", async () => {
    const jwk = await exportJWK(keys.publicKey);
    const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const claims = part({ ...GOOD, exp: inSeconds(60) });
    const secret = crypto.getRandomValues(new Uint8Array(32));
    for (const held of [keys.publicKey, jwk, { ...jwk, alg: "ES256" }, { keys: [jwk] }, secret]) {
      for (const alg of [
        "RS256",
        "PS512",
        "EdDSA",
        "ES384",
        "HS256",
        "HS512",
        "none",
        "odd",
        {},
        undefined,
      ]) {
        const { status } = await check(`${part({ alg })}.${claims}.AA`, { keys: held });
        expect([alg, status]).toEqual([alg, 401]);
      }
    }
  });

  it("Http: is not available where keys cannot be read, but for a token that is none", async () => {
    let answer = { status: 500, body: "" };
    const publisher = createServer((_, response) => response.writeHead(answer.status).end(answer.body));
    await new Promise<void>((resolve) => publisher.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(publisher.address() as AddressInfo).port}/keys`;
    const token = await sign(GOOD);
    for (const body of ["", "{", "{}", '{"keys":1}', "[]"]) {
      for (const status of body === "" ? [200, 302, 404, 500] : [200]) {
        answer = { status, body };
        expect((await check(token, { keys: url })).status).toBe(503);
      }
    }
    expect((await check("a.b.c", { keys: url })).status).toBe(401);
    const jwk = { ...(await exportJWK(keys.publicKey)), kid: "1" };
    answer = { status: 200, body: JSON.stringify({ keys: [jwk] }) };
    expect((await check(token, { keys: url })).status).toBe(200);
    expect((await check(await sign(GOOD, keys.privateKey, { kid: "2" }), { keys: url })).status).toBe(401);
    await new Promise((resolve) => publisher.close(resolve));
  });

  it("Http: asks a key server that fails once in five seconds, whatever tokens come, and takes those of known keys", async () => {
    let asked = 0;
    let answer = { status: 500, body: "" };
    const publisher = createServer((_, response) => {
      asked += 1;
      response.writeHead(answer.status).end(answer.body);
    });
    await new Promise<void>((resolve) => publisher.listen(0, "127.0.0.1", resolve));
    const keyUrl = `http://127.0.0.1:${(publisher.address() as AddressInfo).port}/keys`;
    const bearer = createBearerCheck({ audience: AUDIENCE, keys: keyUrl });
    const statusOf = async (token: string) => {
      const headers = { authorization: `Bearer ${token}` };
      const outcome = await bearer.check(requestTo("http://localhost/mcp", { headers }));
      return "identity" in outcome ? 200 : outcome.refusal.status;
    };
    const clock = vi.spyOn(performance, "now");
    onTestFinished(() => clock.mockRestore());
    clock.mockReturnValue(1_000);
    const made = (kid: string) => sign(GOOD, others.privateKey, { kid });
    for (let n = 0; n < 20; n++) expect(await statusOf(await made(`made-up-${n}`))).toBe(503);
    expect(asked).toBe(1);
    clock.mockReturnValue(5_999);
    expect(await statusOf(await made("later"))).toBe(503);
    expect(asked).toBe(1);
    const jwk = { ...(await exportJWK(keys.publicKey)), kid: "1" };
    answer = { status: 200, body: JSON.stringify({ keys: [jwk] }) };
    clock.mockReturnValue(6_001);
    expect(await statusOf(await sign(GOOD, keys.privateKey, { kid: "1" }))).toBe(200);
    expect(asked).toBe(2);
    answer = { status: 500, body: "" };
    clock.mockReturnValue(60_000);
    for (let n = 0; n < 3; n++) {
      expect(await statusOf(await made(`made-up-again-${n}`))).not.toBe(200);
      expect(await statusOf(await sign(GOOD, keys.privateKey, { kid: "1" }))).toBe(200);
    }
    expect(asked).toBeLessThanOrEqual(3);
    await new Promise((resolve) => publisher.close(resolve));
  });

  it("Http: tries each key of a set where a token names none, as many as allowed and no more", async () => {
    const own = await exportJWK(keys.publicKey);
    const other = await exportJWK((await generateKeyPair("ES256", { extractable: true })).publicKey);
    const token = await sign(GOOD);
    const behind = async (count: number, given = token) =>
      (await check(given, { keys: { keys: [...Array<typeof other>(count).fill(other), own] } })).status;
    expect(await behind(1)).toBe(200);
    expect(await behind(15)).toBe(200);
    expect(await behind(16)).toBe(401);
    expect(await behind(1, await sign(GOOD, others.privateKey))).toBe(401);
    expect(await behind(1, await sign({ ...GOOD, aud: "https://other.example" }))).toBe(401);
  });

  it("Http: refuses options that would believe too much", async () => {
    const jwk = await exportJWK(keys.privateKey);
    const bad: Partial<BearerAuth>[] = [
      { audience: "" },
      { audience: [] },
      { audience: undefined as never },
      { algorithms: ["none"] },
      { algorithms: ["HS256"] },
      { algorithms: [] },
      { keys: "http://id.example/keys" },
      { keys: "no url" },
      { keys: undefined as never },
      { keys: keys.privateKey },
      { keys: jwk },
      { keys: new Uint8Array(31) },
      { keys: new Uint8Array(32), algorithms: ["ES256"] },
      { clockToleranceMs: -1 },
      { audience: "urn:here", resourceMetadata: { authorizationServers: [] } },
    ];
    for (const auth of bad) {
      const create = (option?: string) => () =>
        createBearerCheck({ audience: AUDIENCE, keys: keys.publicKey, ...auth }, option);
      expect(create()).toThrow(TypeError);
      expect(create()).toThrow(/^auth\.\w+/);
      expect(create("auth.bearer")).toThrow(/^auth\.bearer\.\w+/);
    }
  });
});
