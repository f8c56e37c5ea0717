import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Listening, listen, readBody, refuse, sendJson } from "../../test/mcp-servers/http-servers.ts";
import { type BearerAuth, createBearerCheck } from "./bearer.ts";
import type { RequestHead } from "./exchange.ts";
import { createDpopKey } from "./oauth/dpop-key.ts";

const AUDIENCE = "https://api.example/mcp";
const MCP = "http://127.0.0.1:4100/mcp";

/** What an authorization server says of a token: claims, or how it fails. */
type Said = object | number;

interface Issuer {
  readonly url: string;
  readonly asked: string[];
  readonly said: Record<string, Said>;
  sign(claims?: object): Promise<string>;
  wait: Promise<unknown> | undefined;
  close(): Promise<void>;
}

let issuers: Issuer[];

async function startIssuer(): Promise<Issuer> {
  const { privateKey, publicKey } = await generateKeyPair("ES256");
  const jwk = { ...(await exportJWK(publicKey)), kid: crypto.randomUUID(), alg: "ES256" };
  let listening: Listening;
  const issuer = {
    asked: [] as string[],
    said: {} as Record<string, Said>,
    wait: undefined as Promise<unknown> | undefined,
  };
  listening = await listen(async (request, response) => {
    const url = new URL(listening.url).origin;
    issuer.asked.push(`${request.method} ${request.url}`);
    if (request.url === "/.well-known/oauth-authorization-server") {
      return sendJson(response, {
        issuer: url,
        token_endpoint: `${url}/token`,
        jwks_uri: `${url}/keys`,
        introspection_endpoint: `${url}/introspect`,
      });
    }
    if (request.url === "/keys") return sendJson(response, { keys: [jwk] });
    if (request.url !== "/introspect") return refuse(response, 404);
    const params = new URLSearchParams(await readBody(request));
    await issuer.wait;
    if (request.headers.authorization !== `Basic ${btoa("gateway:secret")}`) return refuse(response, 401);
    const said = issuer.said[params.get("token") ?? ""] ?? { active: false };
    return typeof said === "number" ? refuse(response, said) : sendJson(response, said);
  });
  const url = new URL(listening.url).origin;
  return Object.assign(issuer, {
    url,
    sign: (claims: object = {}) =>
      new SignJWT({ iss: url, aud: AUDIENCE, sub: "ada", scope: "read", ...claims })
        .setProtectedHeader({ alg: "ES256", kid: jwk.kid })
        .setExpirationTime("5m")
        .sign(privateKey),
    close: () => listening.close(),
  });
}

beforeEach(async () => {
  issuers = await Promise.all([startIssuer(), startIssuer()]);
});
afterEach(async () => {
  vi.useRealTimers();
  await Promise.all(issuers.map((issuer) => issuer.close()));
});

const one = () => issuers[0] as Issuer;
const two = () => issuers[1] as Issuer;
const asking = { clientId: "gateway", clientSecret: "secret" };
const inSeconds = (seconds: number) => Math.floor(Date.now() / 1_000) + seconds;

function requestWith(
  authorization: string | undefined,
  more: Readonly<Record<string, string>> = {},
): RequestHead {
  const headers: Record<string, string | undefined> = { authorization, ...more };
  return { method: "POST", path: "/mcp", origin: "http://127.0.0.1:4100", header: (name) => headers[name] };
}

async function tryWith(
  bearer: ReturnType<typeof createBearerCheck>,
  authorization: string | undefined,
  more = {},
) {
  const checked = await bearer.check(requestWith(authorization, more));
  if ("identity" in checked) return { who: checked.identity.subject, identity: checked.identity };
  const { status, headers } = checked.refusal;
  return { status, challenge: headers["www-authenticate"], headers };
}

describe("tokens of several issuers", () => {
  it("are each checked with the keys that their own issuer publishes", async () => {
    const bearer = createBearerCheck({
      audience: AUDIENCE,
      issuers: [{ issuer: one().url }, { issuer: two().url }],
    });
    const tokens = await Promise.all([one().sign(), two().sign({ sub: "bob" })]);
    const found = await Promise.all(tokens.map((token) => tryWith(bearer, `Bearer ${token}`)));
    expect(found.map(({ who }) => who)).toEqual(["ada", "bob"]);
    expect(found.map(({ identity }) => identity?.claims?.["iss"])).toEqual([one().url, two().url]);
    const forged = await Promise.all([
      one().sign({ iss: two().url }),
      two().sign({ iss: "https://unknown.example" }),
      one().sign({ iss: undefined }),
    ]);
    for (const token of forged) {
      expect(await tryWith(bearer, `Bearer ${token}`)).toMatchObject({ status: 401 });
    }
    for (const { asked } of issuers) {
      expect(asked).toEqual(["GET /.well-known/oauth-authorization-server", "GET /keys"]);
    }
  });

  it("go on where one of the issuers is down, which is asked no more for a while", async () => {
    const bearer = createBearerCheck({
      audience: AUDIENCE,
      issuers: [{ issuer: one().url }, { issuer: two().url }],
    });
    const token = await one().sign();
    await one().close();
    expect(await tryWith(bearer, `Bearer ${token}`)).toMatchObject({
      status: 503,
      headers: { "retry-after": "5" },
    });
    expect(await tryWith(bearer, `Bearer ${token}`)).toMatchObject({ status: 503 });
    expect(await tryWith(bearer, `Bearer ${await two().sign()}`)).toMatchObject({ who: "ada" });
  });

  it.each<[string, Partial<BearerAuth>]>([
    ["none", { issuers: [] }],
    ["one twice", { issuers: [{ issuer: "https://a.example" }, { issuer: "https://a.example" }] }],
    ["keys beside them", { issuers: [{ issuer: "https://a.example" }], keys: "https://a.example/keys" }],
    ["an issuer beside them", { issuers: [{ issuer: "https://a.example" }], issuer: "https://b.example" }],
    [
      "two that are asked",
      { issuers: ["a", "b"].map((name) => ({ issuer: `https://${name}.example`, introspection: asking })) },
    ],
    ["an address in the clear", { issuers: [{ issuer: "http://a.example", introspection: asking }] }],
    ["neither keys nor an issuer", {}],
    ["two issuers without keys", { issuer: ["https://a.example", "https://b.example"] }],
    [
      "an issuer that is asked without a client",
      { issuer: "https://a.example", introspection: { clientId: "a" } },
    ],
    [
      "answers believed for too long",
      { issuer: "https://a.example", introspection: { ...asking, cacheMs: 300_001 } },
    ],
  ])("are not made of %s", (_what, auth) => {
    expect(() => createBearerCheck({ audience: AUDIENCE, ...auth })).toThrow(TypeError);
  });
});

describe("a token that says nothing by itself", () => {
  const good = (more: object = {}) => ({
    active: true,
    aud: AUDIENCE,
    sub: "ada",
    scope: "read",
    exp: inSeconds(60),
    ...more,
  });
  const checkAt = (introspection: object = {}) =>
    createBearerCheck({
      audience: AUDIENCE,
      issuer: one().url,
      introspection: { ...asking, ...introspection },
    });
  const asks = () => one().asked.filter((each) => each === "POST /introspect").length;

  it("is asked about at its issuer, once for all who show it at a time, and believed for a while", async () => {
    one().said["opaque"] = good();
    const bearer = checkAt();
    let go = (): void => {};
    one().wait = new Promise<void>((resolve) => {
      go = resolve;
    });
    const first = Array.from({ length: 20 }, () => tryWith(bearer, "Bearer opaque"));
    await vi.waitFor(() => expect(asks()).toBe(1));
    go();
    const found = await Promise.all(first);
    expect(new Set(found.map(({ who }) => who))).toEqual(new Set(["ada"]));
    expect(found[0]?.identity).toMatchObject({ scopes: ["read"], claims: { iss: one().url } });
    await tryWith(bearer, "Bearer opaque");
    expect(asks()).toBe(1);
  });

  it("is believed no longer than is said, and no longer than it lives", async () => {
    vi.useFakeTimers({ toFake: ["performance", "Date"] });
    one().said["long"] = good({ exp: inSeconds(3_600) });
    one().said["short"] = good({ exp: inSeconds(2) });
    const bearer = checkAt({ cacheMs: 10_000 });
    for (const token of ["long", "short"]) await tryWith(bearer, `Bearer ${token}`);
    expect(asks()).toBe(2);
    vi.advanceTimersByTime(3_000);
    one().said["short"] = { active: false };
    expect(await tryWith(bearer, "Bearer short")).toMatchObject({ status: 401 });
    expect(await tryWith(bearer, "Bearer long")).toMatchObject({ who: "ada" });
    expect(asks()).toBe(3);
    vi.advanceTimersByTime(7_001);
    one().said["long"] = { active: false };
    expect(await tryWith(bearer, "Bearer long")).toMatchObject({ status: 401 });
    expect(asks()).toBe(4);
  });

  it("is refused where the issuer says so, or says that it is for others, of others, of nobody, or without an end", async () => {
    const bad: Record<string, object> = {
      inactive: { active: false },
      audience: good({ aud: "https://other.example" }),
      "no-audience": good({ aud: undefined }),
      issuer: good({ iss: "https://other.example" }),
      nobody: good({ sub: undefined }),
      endless: good({ exp: undefined }),
      expired: good({ exp: inSeconds(-10) }),
      early: good({ nbf: inSeconds(60) }),
    };
    Object.assign(one().said, bad);
    const bearer = checkAt();
    for (const token of Object.keys(bad)) {
      expect([token, (await tryWith(bearer, `Bearer ${token}`)).status]).toEqual([token, 401]);
    }
  });

  it("is taken with an answer of as many characters as allowed, and no more", async () => {
    const length = JSON.stringify(good({ pad: "" })).length;
    one().said["most"] = good({ pad: "x".repeat(16_384 - length) });
    one().said["more"] = good({ pad: "x".repeat(16_385 - length) });
    expect(await tryWith(checkAt(), "Bearer most")).toMatchObject({ who: "ada" });
    expect(await tryWith(checkAt(), "Bearer more")).toMatchObject({ status: 503 });
  });

  it("is for later where the issuer fails, answers at length, or says something else", async () => {
    const failures: Said[] = [500, {}, { active: "yes" }, { active: true, pad: "x".repeat(1_100_000) }];
    for (const said of failures) {
      one().said["opaque"] = said;
      expect(await tryWith(checkAt(), "Bearer opaque")).toMatchObject({ status: 503 });
    }
    expect(await tryWith(checkAt({ clientSecret: "wrong" }), "Bearer opaque")).toMatchObject({ status: 503 });
  });

  it("that the issuer cannot make sense of is refused, and others are asked about", async () => {
    Object.assign(one().said, { odd: 400, opaque: good() });
    const bearer = checkAt();
    expect(await tryWith(bearer, "Bearer odd")).toMatchObject({ status: 401 });
    expect(await tryWith(bearer, "Bearer opaque")).toMatchObject({ who: "ada" });
  });

  it("is asked about with so many others at once, and one more is for later", async () => {
    let go = (): void => {};
    one().wait = new Promise<void>((resolve) => {
      go = resolve;
    });
    const bearer = checkAt();
    const waiting = Array.from({ length: 32 }, (_, at) => tryWith(bearer, `Bearer opaque${at}`));
    await vi.waitFor(() => expect(asks()).toBe(32));
    expect(await tryWith(bearer, "Bearer one-more")).toMatchObject({ status: 503 });
    go();
    for (const each of await Promise.all(waiting)) expect(each).toMatchObject({ status: 401 });
    expect(asks()).toBe(32);
  });

  it("of one of several issuers is shown to the one that is asked, and signed ones to nobody", async () => {
    one().said["opaque"] = good();
    const bearer = createBearerCheck({
      audience: AUDIENCE,
      issuers: [{ issuer: two().url }, { issuer: one().url, introspection: asking }],
    });
    expect(await tryWith(bearer, "Bearer opaque")).toMatchObject({ who: "ada" });
    expect(await tryWith(bearer, `Bearer ${await two().sign({ sub: "bob" })}`)).toMatchObject({ who: "bob" });
    expect([asks(), two().asked]).toEqual([1, ["GET /.well-known/oauth-authorization-server", "GET /keys"]]);
  });
});

describe("a token that is bound to a key", () => {
  const make = (auth: Partial<BearerAuth> = {}) =>
    createBearerCheck({ audience: AUDIENCE, issuer: one().url, ...auth });

  it("is taken with a proof of the key, and refused without it, with another, and as a plain one", async () => {
    const [key, other] = [await createDpopKey(), await createDpopKey()];
    const token = await one().sign({ cnf: { jkt: key.thumbprint } });
    const bearer = make();
    const dpop = async (by = key) => ({ dpop: await by.prove({ method: "POST", url: MCP, token }) });
    expect(await tryWith(bearer, `DPoP ${token}`, await dpop())).toMatchObject({ who: "ada" });
    expect((await tryWith(bearer, `Bearer ${token}`, await dpop())).challenge).toBe(
      'Bearer error="invalid_token"',
    );
    for (const more of [{}, await dpop(other)]) {
      const { challenge } = await tryWith(bearer, `DPoP ${token}`, more);
      expect(challenge).toMatch(/^DPoP error="invalid_dpop_proof", algs="ES256 [^"]+"$/);
    }
  });

  it("is refused as bound where it is not, or to something that cannot be checked", async () => {
    const key = await createDpopKey();
    for (const cnf of [
      undefined,
      {},
      { "x5t#S256": "a" },
      { jkt: key.thumbprint, "x5t#S256": "a" },
      "text",
      { jkt: 5 },
    ]) {
      const token = await one().sign({ cnf });
      const proof = { dpop: await key.prove({ method: "POST", url: MCP, token }) };
      expect(await tryWith(make(), `DPoP ${token}`, proof)).toMatchObject({ status: 401 });
      const plain = await tryWith(make(), `Bearer ${token}`);
      expect(plain).toMatchObject(cnf === undefined ? { who: "ada" } : { status: 401 });
    }
  });

  it("may be the only kind that is taken, and its nonce is told", async () => {
    const key = await createDpopKey();
    const bearer = make({ dpop: { required: true, nonce: true, algorithms: ["ES256"] } });
    expect(await tryWith(bearer, undefined)).toMatchObject({ status: 401, challenge: 'DPoP algs="ES256"' });
    expect(await tryWith(bearer, `Bearer ${await one().sign()}`)).toMatchObject({ status: 401 });
    const token = await one().sign({ cnf: { jkt: key.thumbprint } });
    const send = async () =>
      await tryWith(bearer, `DPoP ${token}`, { dpop: await key.prove({ method: "POST", url: MCP, token }) });
    const refused = await send();
    expect(refused.challenge).toBe('DPoP error="use_dpop_nonce", algs="ES256"');
    key.noteNonce(
      MCP,
      new Response(null, { headers: { "dpop-nonce": refused.headers?.["dpop-nonce"] ?? "" } }),
    );
    expect(await send()).toMatchObject({ who: "ada" });
  });

  it("is bound by what its issuer says, where it says nothing itself", async () => {
    const key = await createDpopKey();
    const token = "opaque";
    one().said[token] = {
      ...{ active: true, aud: AUDIENCE, sub: "ada", exp: inSeconds(60) },
      cnf: { jkt: key.thumbprint },
    };
    const bearer = make({ introspection: asking });
    expect(await tryWith(bearer, `Bearer ${token}`)).toMatchObject({ status: 401 });
    const proof = { dpop: await key.prove({ method: "POST", url: MCP, token }) };
    expect(await tryWith(bearer, `DPoP ${token}`, proof)).toMatchObject({ who: "ada" });
  });
});

describe("where tokens are had", () => {
  it("is told of every address that they are for, and in each refusal of the one that was asked", async () => {
    const bearer = createBearerCheck({
      audience: ["https://gw.example/mcp", "https://gw.example", "not-an-address"],
      issuer: one().url,
      requiredScopes: ["use"],
      dpop: { algorithms: ["ES256"] },
      publicUrl: "https://gw.example",
      resourceMetadata: { authorizationServers: [one().url], scopesSupported: ["use", "write"] },
    });
    const at = (path: string) => ({ ...requestWith(undefined), method: "GET", path });
    const read = (path: string) => {
      const described = bearer.describe(at(path));
      return described !== undefined && "answer" in described
        ? JSON.parse(String(described.answer.body))
        : described;
    };
    const base = "/.well-known/oauth-protected-resource";
    expect(read(`${base}/mcp`)).toEqual({
      resource: "https://gw.example/mcp",
      authorization_servers: [one().url],
      scopes_supported: ["use", "write"],
      bearer_methods_supported: ["header"],
      dpop_signing_alg_values_supported: ["ES256"],
    });
    expect(read(base)).toMatchObject({ resource: "https://gw.example" });
    expect(read(`${base}/other`)).toMatchObject({ refusal: { status: 404 } });
    const told = async (path: string) => {
      const checked = await bearer.check({ ...at(path), method: "POST" });
      return "refusal" in checked ? checked.refusal.headers["www-authenticate"] : undefined;
    };
    const scope = 'scope="use"';
    expect(await told("/mcp")).toBe(
      `Bearer ${scope}, resource_metadata="https://gw.example${base}/mcp", DPoP algs="ES256"`,
    );
    expect(await told("/mcp-other")).toBe(
      `Bearer ${scope}, resource_metadata="https://gw.example${base}", DPoP algs="ES256"`,
    );
    const identity = { subject: "ada", scopes: ["use", 'a"b'] };
    expect(bearer.stepUp(requestWith("Bearer t"), identity, ["write"])).toBe(
      `Bearer error="insufficient_scope", scope="use write", resource_metadata="https://gw.example${base}/mcp"`,
    );
  });
});
