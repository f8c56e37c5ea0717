import type { ServerResponse } from "node:http";
import { inspect } from "node:util";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { CallError } from "../src/index.ts";
import type { AuthOptions, OAuthCredential } from "../src/openapi/index.ts";
import { rejection, sleep, until } from "./make-operation.ts";
import type { Send } from "./openapi-auth-calls.ts";
import {
  type Caller,
  createCaller,
  type RecordingServer,
  record,
  type Secured,
  type Seen,
  send,
  toDraft,
} from "./openapi-auth-calls.ts";
import { type AuthorizationServer, startAuthorizationServer } from "./openapi-authorization-server.ts";
import type { SecuritySchemePlan } from "./operation-plans.ts";

let server: AuthorizationServer;
let api: RecordingServer;
const opened: RecordingServer[] = [];

beforeAll(async () => {
  server = await startAuthorizationServer();
  api = await record();
});
beforeEach(() => {
  api.seen.length = 0;
});
afterEach(async () => {
  vi.useRealTimers();
  await Promise.all(opened.splice(0).map((one) => one.close()));
});
afterAll(async () => {
  await Promise.all([server.close(), api.close()]);
});

const MACHINE = { clientId: "machine.one-1", clientSecret: "secret-of-machine.one-1/+=: %" };
const APP = { clientId: "app", clientSecret: "secret-of-app" };

const oauth2 = (tokenUrl: string): SecuritySchemePlan => ({
  type: "oauth2",
  flows: { clientCredentials: { tokenUrl, scopes: ["read", "write"] } },
});
const oidc = (openIdConnectUrl: string): SecuritySchemePlan => ({ type: "openIdConnect", openIdConnectUrl });
const only = (scheme: SecuritySchemePlan, scopes: readonly string[] = ["read"]): Secured => ({
  schemes: { main: scheme },
  security: [{ main: scopes }],
});
const real = (scopes?: readonly string[]) => only(oauth2(`${server.issuer}/token`), scopes);
const sentTokens = () => api.seen.map((seen) => seen.headers.authorization?.replace("Bearer ", "") ?? "");

/** Starts a server that plays an authorization server. */
async function play(answer: (seen: Seen, response: ServerResponse) => unknown): Promise<RecordingServer> {
  const one = await record(answer);
  opened.push(one);
  return one;
}

const json = (response: ServerResponse, body: unknown, status = 200) =>
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));

/** Plays a token endpoint that numbers its tokens. */
const numbered = (extra: object = {}, answering: () => unknown = () => {}) => {
  let count = 0;
  return play(async (_seen, response) => {
    const access_token = `token-${++count}`;
    await answering();
    json(response, { access_token, token_type: "Bearer", expires_in: 3600, ...extra });
  });
};

const callerAt = (
  one: RecordingServer,
  extra: Partial<OAuthCredential> = {},
  scopes?: readonly string[],
): Caller =>
  createCaller(api, only(oauth2(`${one.origin}/token`), scopes), {
    main: { clientId: "me", clientSecret: "hush-hush", ...extra },
  });

describe("a real authorization server", () => {
  it("RE-25 gives tokens for a client's own credentials, with the scopes that the operation asks for", async () => {
    await createCaller(api, real(), { main: MACHINE }).call();
    const [token = ""] = sentTokens();
    expect(await server.look(token)).toMatchObject({ client: "machine.one-1", scope: "read" });
  });

  it("RE-25 takes the secret in the body, the scopes of the credential and a token address of its own", async () => {
    const clientSecret = "secret-of-posting/+=: %";
    const credential = { clientId: "posting", clientSecret, clientAuth: "post", scopes: ["write"] } as const;
    const secured = only({ type: "http", scheme: "bearer" });
    await createCaller(api, secured, {
      bearer: { ...credential, tokenUrl: `${server.issuer}/token` },
    }).call();
    expect(await server.look(sentTokens()[0] ?? "")).toMatchObject({ client: "posting", scope: "write" });
  });

  it.each(["", "/.well-known/openid-configuration"])(
    "RE-25 is found by OpenID Connect discovery at its issuer%s",
    async (path) => {
      await createCaller(api, only(oidc(server.issuer + path)), { oauth2: MACHINE }).call();
      expect(await server.look(sentTokens()[0] ?? "")).toMatchObject({
        client: "machine.one-1",
        scope: "read",
      });
    },
  );

  it("RE-25 is asked once for a hundred calls at a time, and not again for the next", async () => {
    const before = await server.counts();
    const caller = createCaller(api, real(), { main: MACHINE });
    await Promise.all(Array.from({ length: 100 }, () => caller.call()));
    await caller.call();
    expect(new Set(sentTokens()).size).toBe(1);
    expect(api.seen).toHaveLength(101);
    expect((await server.counts()).success - before.success).toBe(1);
  });

  it("RE-25 replaces refresh tokens: the new one is told and used, the old one never again", async () => {
    const refreshToken = await server.grant();
    const told: string[] = [];
    const credential = { ...APP, refreshToken, onRefreshToken: (next: string) => void told.push(next) };
    const caller = createCaller(api, real(), { main: credential });
    await caller.call();
    await Promise.all(
      Array.from({ length: 3 }, () => caller.authorize(toDraft(api.origin), { refused: true })),
    );
    await caller.authorize(toDraft(api.origin), { refused: true });
    expect(told).toHaveLength(3);
    expect(new Set([refreshToken, ...told]).size).toBe(4);
    expect(await server.look(sentTokens()[0] ?? "")).toMatchObject({ account: "ann", client: "app" });
  });

  it("RE-25 X-5 says no to a wrong secret and a used refresh token, and nobody shows them", async () => {
    const wrong = createCaller(api, real(), { main: { ...MACHINE, clientSecret: "wrong-secret" } });
    const error = (await rejection(wrong.call())) as CallError;
    expect(error).toMatchObject({ code: "UNAUTHENTICATED", retryable: false });
    expect(error.message).toBe(
      'No token could be had for the security scheme "main": the authorization server refused with invalid_client.',
    );
    expect(inspect(error, { depth: 10 })).not.toContain("wrong-secret");
    const refreshToken = await server.grant();
    await createCaller(api, real(), { main: { ...APP, refreshToken } }).call();
    const used = createCaller(api, real(), { main: { ...APP, refreshToken } });
    const again = (await rejection(used.call())) as CallError;
    expect(again.message).toContain("refused with invalid_grant");
    expect(inspect(again, { depth: 10 })).not.toContain(refreshToken);
  });
});

describe("keeping tokens", () => {
  it("RE-25 keeps one token for each set of scopes, whatever their order", async () => {
    const one = await numbered();
    const schemes = { main: oauth2(`${one.origin}/token`) };
    const auth: AuthOptions = { main: { clientId: "me", clientSecret: "hush-hush" } };
    for (const scopes of [["a", "b"], ["b", "a", "a"], ["a"], []]) {
      const caller = createCaller(api, { schemes, security: [{ main: scopes }] }, auth);
      await caller.call();
      await caller.call();
    }
    expect(one.seen.map(({ body }) => new URLSearchParams(body).get("scope"))).toEqual([
      "a b",
      "a b",
      "a",
      null,
    ]);
  });

  it("RE-25 a held token is added at once, without a promise", async () => {
    const caller = callerAt(await numbered());
    await caller.call();
    const request = {
      operationId: "a.b",
      context: { signal: new AbortController().signal } as never,
      refused: false,
    };
    const draft = toDraft(api.origin);
    expect(caller.authorizer?.authorize(caller.plan, draft, request)).toBeUndefined();
    expect(draft.headers).toEqual({ authorization: "Bearer token-1" });
  });

  it.each([
    [3600, 3_540_000],
    [100, 90_000],
  ])("RE-25 renews a token of %d seconds after %d ms and not before", async (expires_in, renewAt) => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const caller = callerAt(await numbered({ expires_in }));
    await caller.call();
    vi.advanceTimersByTime(renewAt - 1);
    await caller.call();
    vi.advanceTimersByTime(1);
    await caller.call();
    expect(sentTokens()).toEqual(["token-1", "token-1", "token-2"]);
  });

  it("RE-25 a token without a lifetime is kept; one that is over at once serves those who waited for it", async () => {
    const forever = callerAt(await numbered({ expires_in: undefined }));
    await forever.call();
    await forever.call();
    expect(sentTokens()).toEqual(["token-1", "token-1"]);
    api.seen.length = 0;
    const never = callerAt(await numbered({ expires_in: 0 }, () => sleep(20)));
    await Promise.all([never.call(), never.call()]);
    await never.call();
    expect(sentTokens()).toEqual(["token-1", "token-1", "token-2"]);
  });

  it("RE-25 uses the token it has until its end when it cannot be renewed early", async () => {
    let count = 0;
    const one = await play((_seen, response) =>
      ++count === 1
        ? json(response, { access_token: "t", token_type: "bearer", expires_in: 100 })
        : response.writeHead(503),
    );
    vi.useFakeTimers({ toFake: ["performance"] });
    const caller = callerAt(one);
    await caller.call();
    vi.advanceTimersByTime(99_999);
    await caller.call();
    expect([sentTokens(), count]).toEqual([["t", "t"], 2]);
    vi.advanceTimersByTime(1);
    expect(await rejection(caller.call())).toMatchObject({ code: "UNAUTHENTICATED", retryable: true });
  });

  it("RE-25 after a 401 a new token is asked for, once for all calls that were refused the same one", async () => {
    const one = await numbered({}, () => sleep(20));
    const strict = await play(({ headers }, response) =>
      response.writeHead(headers.authorization === "Bearer token-1" ? 401 : 200),
    );
    const caller = createCaller(strict, only(oauth2(`${one.origin}/token`)), {
      main: { clientId: "me", clientSecret: "hush-hush" },
    });
    expect(caller.authorizer?.mayRetry(caller.plan)).toBe(true);
    expect(await Promise.all(Array.from({ length: 20 }, () => caller.call()))).toEqual(Array(20).fill(200));
    expect(one.seen).toHaveLength(2);
  });

  it("RE-25 a call that was refused an older token takes the newer one that is there", async () => {
    const one = await numbered();
    const caller = callerAt(one);
    const { signal } = new AbortController();
    const late = { operationId: "a.b", context: { signal } as never };
    const early = { operationId: "a.b", context: { signal } as never };
    const headers: unknown[] = [];
    for (const request of [
      { ...late, refused: false },
      { ...early, refused: false },
      { ...early, refused: true },
      { ...late, refused: true },
    ]) {
      const draft = toDraft(api.origin);
      await caller.authorizer?.authorize(caller.plan, draft, request);
      headers.push(draft.headers["authorization"]);
    }
    expect(headers).toEqual(["Bearer token-1", "Bearer token-1", "Bearer token-2", "Bearer token-2"]);
  });

  it("RE-25 a caller that leaves does not take the token from those who wait on", async () => {
    let answer = (): void => {};
    const held = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const one = await numbered({}, () => held);
    const caller = callerAt(one);
    const leaving = new AbortController();
    const left = rejection(caller.call({ signal: leaving.signal }));
    const staying = caller.call();
    await until(() => one.seen.length === 1);
    leaving.abort();
    expect(await left).toMatchObject({ code: "ABORTED" });
    expect(await rejection(callerAt(await numbered({}, () => held)).call({ timeoutMs: 20 }))).toMatchObject({
      code: "TIMEOUT",
    });
    answer();
    expect(await staying).toBe(200);
    expect(one.seen).toHaveLength(1);
  });

  it("RE-25 a caller that leaves while a good token is renewed early is not given the old one", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const caller = callerAt(await numbered({ expires_in: 100 }, () => sleep(20)));
    await caller.call();
    vi.advanceTimersByTime(95_000);
    const leaving = new AbortController();
    const draft = toDraft(api.origin);
    const request = { operationId: "a.b", context: { signal: leaving.signal } as never, refused: false };
    const waiting = Promise.resolve(caller.authorizer?.authorize(caller.plan, draft, request));
    leaving.abort();
    expect(await rejection(waiting)).toMatchObject({ code: "ABORTED" });
    expect(draft.headers).toEqual({});
  });

  it("RE-25 a failure answers for a second and is then forgotten", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    let count = 0;
    const one = await play((_seen, response) =>
      ++count === 1 ? response.writeHead(500) : json(response, { access_token: "t", token_type: "bearer" }),
    );
    const caller = callerAt(one);
    const errors = await Promise.all([rejection(caller.call()), rejection(caller.call())]);
    expect(errors).toEqual([
      expect.objectContaining({ retryable: true }),
      expect.objectContaining({ retryable: true }),
    ]);
    vi.advanceTimersByTime(999);
    expect(await rejection(caller.call())).toMatchObject({ code: "UNAUTHENTICATED" });
    expect(count).toBe(1);
    vi.advanceTimersByTime(1);
    expect(await caller.call()).toBe(200);
  });

  it("RE-25 never gives a token of one identity to another", async () => {
    const one = await play(({ headers }, response) => {
      const [name] = Buffer.from(headers.authorization?.split(" ")[1] ?? "", "base64")
        .toString()
        .split(":");
      json(response, { access_token: `of-${name}`, token_type: "bearer" });
    });
    const main = ({ context }: { context: { identity: { subject: string } | undefined } }) => ({
      clientId: context.identity?.subject ?? "",
      clientSecret: "hush-hush",
    });
    const caller = createCaller(api, only(oauth2(`${one.origin}/token`)), { main });
    for (const subject of ["ann", "bob", "ann", "bob"]) await caller.call({ identity: { subject } });
    expect(sentTokens()).toEqual(["of-ann", "of-bob", "of-ann", "of-bob"]);
    expect(one.seen).toHaveLength(2);
  });

  it("RE-25 sends what else is to be sent, and a public client no secret; a listener that fails is only a warning", async () => {
    const one = await numbered({ refresh_token: "next", id_token: "not.a.token" });
    const onRefreshToken = () => Promise.reject(new Error("disk full"));
    const credential = {
      clientSecret: undefined,
      refreshToken: "first",
      parameters: { audience: "x&y" },
      onRefreshToken,
    };
    const caller = callerAt(one, credential);
    await caller.call();
    expect(one.seen[0]?.headers).not.toHaveProperty("authorization");
    expect(Object.fromEntries(new URLSearchParams(one.seen[0]?.body))).toEqual({
      audience: "x&y",
      client_id: "me",
      grant_type: "refresh_token",
      refresh_token: "first",
    });
    expect(caller.warnings).toEqual([expect.stringContaining("onRefreshToken failed")]);
  });

  it("RE-25 writes a client id of plain letters as it is, which servers that do not decode it need", async () => {
    const one = await numbered();
    await callerAt(one, { clientId: "a-b_c.d", clientSecret: "x y" }).call();
    const [, pair = ""] = one.seen[0]?.headers.authorization?.split(" ") ?? [];
    expect(Buffer.from(pair, "base64").toString()).toBe("a-b_c.d:x+y");
  });

  it("RE-25 may send a client's own credentials again, but never a refresh token", async () => {
    const one = await numbered();
    const repeatable: boolean[] = [];
    const noting: Send = (request, options) => {
      repeatable.push(options.repeatable);
      return send(request, options);
    };
    const secured = only(oauth2(`${one.origin}/token`));
    const credential = { clientId: "me", clientSecret: "hush-hush" };
    await createCaller(api, secured, { main: credential }, { send: noting }).call();
    await createCaller(api, secured, { main: { ...credential, refreshToken: "r" } }, { send: noting }).call();
    expect(repeatable).toEqual([true, false]);
  });
});

describe("hostile authorization servers", () => {
  const good = { access_token: "sekret-token", token_type: "Bearer", expires_in: 60 };
  const html = "<html>sekret-token</html>";

  it.each<[string, (response: ServerResponse) => unknown]>([
    ["HTML", (response) => response.writeHead(200, { "content-type": "text/html" }).end(html)],
    ["an empty answer", (response) => response.writeHead(204).end()],
    ["a huge answer", (response) => json(response, { ...good, more: "x".repeat(1_100_000) })],
    ["deep JSON", (response) => response.end("[".repeat(100_000))],
    ["no token", (response) => json(response, { ...good, access_token: undefined })],
    [
      "a token that is no text",
      (response) => json(response, { ...good, access_token: { sekret: "sekret-token" } }),
    ],
    ["an empty token", (response) => json(response, { ...good, access_token: "" })],
    ["a token of another type", (response) => json(response, { ...good, token_type: "mac" })],
    ["a token that needs proof", (response) => json(response, { ...good, token_type: "DPoP" })],
    ["a negative lifetime", (response) => json(response, { ...good, expires_in: -1 })],
    ["a lifetime that is no number", (response) => json(response, { ...good, expires_in: "abc" })],
    [
      "line breaks in the token",
      (response) => json(response, { ...good, access_token: "sekret-token\r\nx: y" }),
    ],
    ["spaces in the token", (response) => json(response, { ...good, access_token: "sekret-token b" })],
    ["a list", (response) => json(response, [good])],
    ["null", (response) => json(response, null)],
    ["a redirect", (response) => response.writeHead(302, { location: "https://evil.example" }).end()],
    [
      "an error with the secret in it",
      (response) => json(response, { error: "hush-hush", error_description: "hush-hush <b>" }, 400),
    ],
    [
      "a challenge",
      (response) => response.writeHead(401, { "www-authenticate": 'Basic realm="sekret-token' }).end(),
    ],
  ])("RE-25 X-5 %s is no token, and shows nothing of it", async (_title, answer) => {
    const one = await play((_seen, response) => answer(response));
    const error = (await rejection(callerAt(one).call())) as CallError;
    expect(error).toMatchObject({ code: "UNAUTHENTICATED", retryable: false });
    expect(error.message).toBe(
      'No token could be had for the security scheme "main": the authorization server gave an answer that is no token.',
    );
    expect(inspect(error, { depth: 10 })).not.toMatch(/sekret-token|hush-hush/);
    expect(api.seen).toEqual([]);
  });

  it("RE-25 reads answers of a megabyte and no more", async () => {
    const empty = JSON.stringify({ ...good, more: "" }).length;
    const sized = (bytes: number) =>
      play((_seen, response) => json(response, { ...good, more: "x".repeat(bytes - empty) }));
    expect(await callerAt(await sized(1_048_576)).call()).toBe(200);
    expect(await rejection(callerAt(await sized(1_048_577)).call())).toMatchObject({
      code: "UNAUTHENTICATED",
    });
  });

  it("RE-25 X-5 one that does not answer is an error worth trying again", async () => {
    const one = await record();
    await one.close();
    const error = await rejection(callerAt(one).call());
    expect(error).toMatchObject({ code: "UNAUTHENTICATED", retryable: true, cause: { code: "UNAVAILABLE" } });
  });

  it("RE-25 an answer from another origin than was asked is refused", async () => {
    const one = await numbered();
    const moved: Send = async (request, options) => ({
      ...(await send(request, options)),
      url: "https://evil.example/token",
    });
    const secured = only(oauth2(`${one.origin}/token`));
    const caller = createCaller(
      api,
      secured,
      { main: { clientId: "me", clientSecret: "hush-hush" } },
      { send: moved },
    );
    expect(await rejection(caller.call())).toMatchObject({ code: "UNAUTHENTICATED" });
  });

  it("RE-25 a scope from a document that would be two is not asked for", async () => {
    const one = await numbered();
    await callerAt(one, {}, ["read", "a admin", "b\n"]).call();
    expect(new URLSearchParams(one.seen[0]?.body).get("scope")).toBe("read");
  });
});

describe("discovery", () => {
  const discovered = (one: RecordingServer, path = "") =>
    createCaller(api, only(oidc(`${one.origin}${path}/.well-known/openid-configuration`)), {
      main: { clientId: "me", clientSecret: "hush-hush" },
    });

  it.each<[string, (origin: string) => unknown]>([
    ["another issuer", (origin) => ({ issuer: "https://evil.example", token_endpoint: `${origin}/token` })],
    ["no issuer", (origin) => ({ token_endpoint: `${origin}/token` })],
    ["an issuer below it", (origin) => ({ issuer: `${origin}/other`, token_endpoint: `${origin}/token` })],
    [
      "plain http on another host",
      (origin) => ({ issuer: origin, token_endpoint: "http://login.example/token" }),
    ],
    ["plain http on another port", (origin) => ({ issuer: origin, token_endpoint: `${api.origin}/token` })],
    ["no token endpoint", (origin) => ({ issuer: origin })],
    [
      "a token endpoint that is a file",
      (origin) => ({ issuer: origin, token_endpoint: "file:///etc/passwd" }),
    ],
    [
      "a token endpoint with a name in it",
      (origin) => ({ issuer: origin, token_endpoint: "https://a:b@c/token" }),
    ],
    [
      "a token endpoint that is a list",
      (origin) => ({ issuer: origin, token_endpoint: [`${origin}/token`] }),
    ],
    ["a list", () => []],
  ])("RE-25 a document with %s is refused, and no secret is sent", async (_title, document) => {
    const one: RecordingServer = await play((_seen, response) => json(response, document(one.origin)));
    expect(await rejection(discovered(one).call())).toMatchObject({
      code: "UNAUTHENTICATED",
      retryable: false,
    });
    expect(api.seen).toEqual([]);
    expect(one.seen.map(({ path, headers }) => [path, headers.authorization])).toEqual([
      ["/.well-known/openid-configuration", undefined],
    ]);
  });

  it.each(["", "/"])("RE-25 is done once, for an issuer with a path that ends with %j", async (end) => {
    const one: RecordingServer = await play(({ path }, response) =>
      path === "/token"
        ? json(response, { access_token: "t", token_type: "bearer", expires_in: 0 })
        : json(response, { issuer: `${one.origin}/tenant${end}`, token_endpoint: `${one.origin}/token` }),
    );
    const caller = discovered(one, "/tenant");
    await caller.call();
    await caller.call();
    expect(one.seen.map(({ path }) => path)).toEqual([
      "/tenant/.well-known/openid-configuration",
      "/token",
      "/token",
    ]);
  });
});
