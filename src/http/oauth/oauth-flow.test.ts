import { inspect } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type Listening,
  listen,
  readBody,
  refuse,
  sendJson,
} from "../../../test/mcp-servers/http-servers.ts";
import { openMcpConnection } from "../../mcp/client/mcp-connection.ts";
import { createMemoryTokenStore, createOAuthStore, type OAuthStoreOptions } from "./oauth-store.ts";

/** One answer: a body of JSON, or the status of a refusal. */
type Answer = { readonly body: object; readonly status?: number } | number;

/** What stands where; what is not given answers 404. */
let answers: Record<string, Answer | ((params: URLSearchParams) => Answer)>;
/** Every request but those for MCP, as "GET /path", and what was posted. */
let asked: string[];
let posted: { readonly path: string; readonly params: URLSearchParams; readonly authorization: string }[];
let consents: URLSearchParams[];
let challenge: string;
/** Tokens whose scope is not enough, which the server says without saying where tokens are had. */
let narrow: Set<string>;
let goodTokens: Set<string>;
let server: Listening;
let base: string;

beforeEach(async () => {
  asked = [];
  posted = [];
  consents = [];
  goodTokens = new Set();
  challenge = "Bearer";
  narrow = new Set();
  server = await listen(async (request, response) => {
    const { pathname } = new URL(request.url ?? "/", base);
    const body = await readBody(request);
    if (pathname === "/mcp") {
      if (!goodTokens.has(request.headers.authorization ?? "")) {
        return refuse(response, 401, { "www-authenticate": challenge });
      }
      if (narrow.has(request.headers.authorization ?? "")) {
        return refuse(response, 403, {
          "www-authenticate": 'Bearer error="insufficient_scope", scope="more"',
        });
      }
      if (request.method !== "POST") return refuse(response, 405);
      const { id } = JSON.parse(body);
      const serverInfo = { name: "guarded", version: "1.0.0" };
      const result = { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo };
      return id === undefined ? refuse(response, 202) : sendJson(response, { jsonrpc: "2.0", id, result });
    }
    asked.push(`${request.method} ${request.url}`);
    const isJson = request.headers["content-type"] === "application/json";
    const params = new URLSearchParams(isJson ? JSON.parse(body) : body);
    if (request.method === "POST") {
      posted.push({ path: pathname, params, authorization: request.headers.authorization ?? "" });
    }
    const given = Object.hasOwn(answers, pathname) ? answers[pathname] : undefined;
    const answer = typeof given === "function" ? given(params) : (given ?? 404);
    if (typeof answer === "number") return refuse(response, answer);
    sendJson(response, answer.body, answer.status ?? 200);
  });
  base = new URL(server.url).origin;
  answers = {
    "/.well-known/oauth-protected-resource/mcp": { body: resource() },
    "/.well-known/oauth-authorization-server": { body: metadata() },
    "/register": { body: { client_id: "registered" }, status: 201 },
    "/token": () => ({ body: tokens() }),
  };
});

afterEach(async () => {
  await server.close();
});

const resource = (more: object = {}) => ({ resource: `${base}/mcp`, authorization_servers: [base], ...more });

const metadata = (more: object = {}) => ({
  issuer: base,
  authorization_endpoint: `${base}/authorize`,
  token_endpoint: `${base}/token`,
  registration_endpoint: `${base}/register`,
  response_types_supported: ["code"],
  code_challenge_methods_supported: ["S256"],
  ...more,
});

/** A token that the server takes, and that nobody has seen before. */
function tokens(more: object = {}): object {
  const access_token = `access-${goodTokens.size}`;
  goodTokens.add(`Bearer ${access_token}`);
  return { access_token, token_type: "Bearer", refresh_token: `refresh-${goodTokens.size}`, ...more };
}

/** Connects with a person who consents at once, and comes back with these parameters too. */
async function connect(options: Partial<OAuthStoreOptions> = {}, back: object = {}): Promise<void> {
  const auth = createOAuthStore({
    redirectUrl: "http://127.0.0.1:9/callback",
    onAuthorize: async ({ searchParams, origin, pathname }) => {
      asked.push(`SHOW ${origin === base ? "" : origin}${pathname}`);
      consents.push(searchParams);
      const given = { code: "the-code", state: String(searchParams.get("state")), ...back };
      return `http://127.0.0.1:9/callback?${new URLSearchParams(given)}`;
    },
    ...options,
  });
  const connection = await openMcpConnection({ url: server.url, auth: { oauth2: auth }, protocol: "2025" });
  await connection.close();
}

const unauthenticated = { code: "UNAUTHENTICATED" };
const grants = () => posted.filter(({ path }) => path === "/token").map(({ params }) => params);

describe("where tokens are had", () => {
  it("Mcp: is looked for below the path of the server, then at its root, then by every way an issuer may be described", async () => {
    const issuer = `${base}/tenant`;
    answers["/.well-known/oauth-protected-resource/mcp"] = 404;
    answers["/.well-known/oauth-protected-resource"] = {
      body: resource({ authorization_servers: [issuer] }),
    };
    answers["/tenant/.well-known/openid-configuration"] = { body: metadata({ issuer }) };
    await connect();
    expect(asked).toEqual([
      "GET /.well-known/oauth-protected-resource/mcp",
      "GET /.well-known/oauth-protected-resource",
      "GET /.well-known/oauth-authorization-server/tenant",
      "GET /.well-known/openid-configuration/tenant",
      "GET /tenant/.well-known/openid-configuration",
      "POST /register",
      "SHOW /authorize",
      "POST /token",
    ]);
  });

  it.each([
    ['Bearer resource_metadata="BASE/elsewhere"', true],
    ["bearer resource_metadata=BASE/elsewhere", true],
    ['DPoP algs="ES256", resource_metadata="BASE/elsewhere"', true],
    ['Basic realm="a, b", Bearer error="invalid_token", resource_metadata="BASE/elsewhere"', true],
    [
      'Bearer error_description="see \\"resource_metadata=BASE/other\\"", resource_metadata="BASE/elsewhere"',
      true,
    ],
    ['Bearer scope=a b, resource_metadata="BASE/elsewhere"', true],
    ['Basic resource_metadata="BASE/elsewhere"', false],
    ['Bearer resource_metadata="no address"', false],
    ['Bearer resource_metadata="http://192.0.2.1/elsewhere"', false],
    ["", false],
  ])("Mcp: is where the challenge says, if it says so: %s", async (says, isNamed) => {
    challenge = says.replaceAll("BASE", base);
    answers["/elsewhere"] = { body: resource() };
    await connect();
    expect(asked[0]).toBe(isNamed ? "GET /elsewhere" : "GET /.well-known/oauth-protected-resource/mcp");
  });

  it("Mcp: is the server itself, with the endpoints of 2025-03-26, where nothing is described", async () => {
    answers = {
      "/register": { body: { client_id: "registered" } },
      "/token": () => ({ body: tokens() }),
    };
    await connect();
    expect(asked.slice(-3)).toEqual(["POST /register", "SHOW /authorize", "POST /token"]);
    expect(consents[0]?.has("resource")).toBe(false);
    expect(grants()[0]?.has("resource")).toBe(false);
  });

  it.each([
    ["at the origin of the endpoints", "BASE/tenant", 1],
    ["elsewhere", "https://other.example", 0],
    ["no address", "nobody", 0],
  ])(
    "Mcp: answers without metadata as an issuer that is %s: %s, codes exchanged: %i",
    async (_what, iss, codes) => {
      answers = { "/register": { body: { client_id: "registered" } }, "/token": () => ({ body: tokens() }) };
      const connecting = connect({}, { iss: iss.replace("BASE", base) });
      if (codes === 0) await expect(connecting).rejects.toMatchObject(unauthenticated);
      else await connecting;
      expect(grants()).toHaveLength(codes);
    },
  );

  it.each([
    ["of its own origin, as 2025-03-26 has it", false, "BASE/oauth", 1],
    ["of another origin", false, "https://other.example/oauth", 0],
    ["of its own origin, where it says who its authorization server is", true, "BASE/oauth", 0],
  ])("Mcp: may have an issuer %s", async (_what, isDescribed, issuer, codes) => {
    if (!isDescribed) answers["/.well-known/oauth-protected-resource/mcp"] = 404;
    const body = metadata({ issuer: issuer.replace("BASE", base) });
    answers["/.well-known/oauth-authorization-server"] = { body };
    const connecting = connect();
    if (codes === 0) await expect(connecting).rejects.toMatchObject(unauthenticated);
    else await connecting;
    expect(grants()).toHaveLength(codes);
  });

  it("Mcp: is not known while the authorization server fails", async () => {
    answers["/.well-known/oauth-authorization-server"] = 503;
    await expect(connect()).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(asked.at(-1)).toBe("GET /.well-known/oauth-authorization-server");
  });

  it.each([
    ["names another issuer", { issuer: "https://other.example" }],
    ["names the issuer with a slash", { issuer: "BASE/" }],
    ["knows no S256", { code_challenge_methods_supported: ["plain"] }],
    ["gives no codes", { response_types_supported: ["token"] }],
    ["names an endpoint that is no web address", { authorization_endpoint: "javascript:alert(1)" }],
    ["has no token endpoint", { token_endpoint: undefined }],
    ["registers nobody", { registration_endpoint: undefined }],
  ])("Mcp: is nowhere, and nobody is asked, where the authorization server %s", async (_what, more) => {
    const body = JSON.parse(JSON.stringify(metadata(more)).replaceAll("BASE", base));
    answers["/.well-known/oauth-authorization-server"] = { body };
    await expect(connect()).rejects.toMatchObject(unauthenticated);
    expect([consents, grants()]).toEqual([[], []]);
  });

  it("Mcp: may leave out the slash at the end of its issuer", async () => {
    const body = resource({ authorization_servers: [`${base}/`] });
    answers["/.well-known/oauth-protected-resource/mcp"] = { body };
    await connect();
    expect(grants()).toHaveLength(1);
  });
});

describe("what a token is for", () => {
  it.each(["BASE", "BASE/", "BASE/mcp"])("Mcp: is said as the server says it: %s", async (written) => {
    const id = written.replace("BASE", base);
    answers["/.well-known/oauth-protected-resource/mcp"] = { body: resource({ resource: id }) };
    const kept = createMemoryTokenStore();
    await connect({ tokens: kept });
    goodTokens = new Set(["Bearer next"]);
    answers["/token"] = { body: { access_token: "next", token_type: "bearer" } };
    await connect({ tokens: kept });
    expect([consents[0], ...grants()].map((params) => params?.get("resource"))).toEqual([id, id, id]);
    expect(grants().map((params) => params.get("grant_type"))).toEqual([
      "authorization_code",
      "refresh_token",
    ]);
  });

  it.each(["https://other.example/mcp", "BASE/mc", "BASE/mcp/more"])(
    "Mcp: is never another server: %s",
    async (written) => {
      const body = resource({ resource: written.replace("BASE", base) });
      answers["/.well-known/oauth-protected-resource/mcp"] = { body };
      await expect(connect()).rejects.toMatchObject(unauthenticated);
      expect([consents, posted]).toEqual([[], []]);
    },
  );
});

describe("the scope that is asked for", () => {
  it.each([
    ["named", 'Bearer scope="named"', { scopes_supported: ["known"] }, {}],
    ["known other", "Bearer", { scopes_supported: ["known", "other"] }, {}],
    ["own", "Bearer", {}, {}],
    ["own offline_access", "Bearer", {}, { scopes_supported: ["own", "offline_access"] }],
    ["offline_access", 'Bearer scope="offline_access"', {}, { scopes_supported: ["offline_access"] }],
  ])("Mcp: is %s for %s, %o and %o", async (scope, says, known, more) => {
    challenge = says;
    answers["/.well-known/oauth-protected-resource/mcp"] = { body: resource(known) };
    answers["/.well-known/oauth-authorization-server"] = { body: metadata(more) };
    await connect({ scope: "own" });
    expect(consents[0]?.get("scope")).toBe(scope);
    expect(consents[0]?.get("prompt")).toBe(scope.includes("offline_access") ? "consent" : null);
    expect(posted[0]?.params.get("scope")).toBe(scope);
  });
});

describe("a scope that is not enough", () => {
  it("Mcp: is widened where the tokens were had before, also in the next run", async () => {
    challenge = `Bearer resource_metadata="${base}/elsewhere"`;
    answers["/elsewhere"] = { body: resource() };
    answers["/.well-known/oauth-protected-resource/mcp"] = 404;
    const kept = createMemoryTokenStore();
    await connect({ tokens: kept, scope: "some" });
    narrow.add("Bearer access-0");
    asked = [];
    await connect({ tokens: kept, scope: "some" });
    expect(asked).toEqual([
      "GET /elsewhere",
      "GET /.well-known/oauth-authorization-server",
      "SHOW /authorize",
      "POST /token",
    ]);
    expect(consents.map((params) => params.get("scope"))).toEqual(["some", "some more"]);
  });
});

describe("a consent", () => {
  it.each([
    ["from another issuer", false, { iss: "https://other.example" }],
    ["from an issuer that is written differently", false, { iss: "BASE/" }],
    ["from nobody", false, { iss: "" }],
    ["without the issuer that is announced", true, {}],
  ])("Mcp: is not exchanged when it comes %s", async (_what, isAnnounced, back) => {
    const more = { authorization_response_iss_parameter_supported: isAnnounced };
    answers["/.well-known/oauth-authorization-server"] = { body: metadata(more) };
    const given = Object.fromEntries(
      Object.entries(back).map(([name, value]) => [name, value.replace("BASE", base)]),
    );
    await expect(connect({}, given)).rejects.toMatchObject(unauthenticated);
    expect([consents.length, grants()]).toEqual([1, []]);
  });

  it("Mcp: is exchanged when its issuer is the right one, or not announced and not there", async () => {
    await connect({}, { iss: base });
    await connect();
    expect(grants()).toHaveLength(2);
  });
});

describe("a client that shows an assertion", () => {
  const assertion = "workload.identity.assertion";
  const jwtBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer";

  it("Mcp: gets a token for it, at the issuer it is for alone", async () => {
    const asks: string[] = [];
    const given = ({ issuer }: { readonly issuer: string }) => {
      asks.push(issuer);
      return assertion;
    };
    const own = {
      redirectUrl: undefined,
      clientId: "workload",
      issuer: base,
      assertion: given,
      scope: "read",
    };
    await connect(own);
    expect(asks).toEqual([base]);
    expect(Object.fromEntries(grants()[0] ?? [])).toEqual({
      grant_type: jwtBearer,
      assertion,
      client_id: "workload",
      scope: "read",
      resource: `${base}/mcp`,
    });
    await expect(connect({ ...own, issuer: "https://elsewhere.example" })).rejects.toMatchObject(
      unauthenticated,
    );
    expect([asks.length, grants().length]).toEqual([1, 1]);
  });

  it.each(["invalid_grant", "unauthorized_client", "invalid_client"])(
    "Mcp: is not tried again when that is refused with %s",
    async (error) => {
      answers["/token"] = { body: { error }, status: 400 };
      const own = { redirectUrl: undefined, clientId: "workload", issuer: base, assertion };
      await expect(connect(own)).rejects.toMatchObject(unauthenticated);
      expect(grants()).toHaveLength(1);
    },
  );

  it("Mcp: gets it from the identity provider of a person", async () => {
    const idp = {
      access_token: "id.jag",
      issued_token_type: "urn:ietf:params:oauth:token-type:id-jag",
      token_type: "N_A",
    };
    answers["/idp/token"] = { body: idp };
    const identity = {
      issuer: `${base}/idp`,
      tokenUrl: `${base}/idp/token`,
      clientId: "at-idp",
      token: () => "id-token",
    };
    await connect({
      redirectUrl: undefined,
      clientId: "agent",
      clientSecret: "secret",
      issuer: base,
      identity,
    });
    const [exchange, grant] = posted;
    expect(Object.fromEntries(exchange?.params ?? [])).toEqual({
      grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
      subject_token: "id-token",
      subject_token_type: "urn:ietf:params:oauth:token-type:id_token",
      requested_token_type: "urn:ietf:params:oauth:token-type:id-jag",
      audience: base,
      resource: `${base}/mcp`,
      client_id: "at-idp",
    });
    expect(grant?.authorization).toBe(`Basic ${btoa("agent:secret")}`);
    expect(Object.fromEntries(grant?.params ?? [])).toEqual({
      grant_type: jwtBearer,
      assertion: "id.jag",
      resource: `${base}/mcp`,
    });
  });

  it("Mcp: sends no access token on where an identity provider gives that for an assertion", async () => {
    const token = {
      access_token: "access",
      issued_token_type: "urn:ietf:params:oauth:token-type:access_token",
      token_type: "Bearer",
    };
    answers["/idp/token"] = { body: token };
    const identity = {
      issuer: `${base}/idp`,
      tokenUrl: `${base}/idp/token`,
      clientId: "at-idp",
      token: "id-token",
    };
    const own = { redirectUrl: undefined, clientId: "agent", clientSecret: "secret", issuer: base, identity };
    await expect(connect(own)).rejects.toMatchObject(unauthenticated);
    expect(posted.map(({ path }) => path)).toEqual(["/idp/token"]);
  });

  it.each([
    ["an assertion without an issuer", { clientId: "a", assertion }],
    [
      "an assertion beside a person",
      { clientId: "a", assertion, issuer: "https://a.example", redirectUrl: "http://127.0.0.1/cb" },
    ],
    [
      "both",
      {
        clientId: "a",
        assertion,
        issuer: "https://a.example",
        identity: { issuer: "https://b.example", clientId: "b", token: "t" },
      },
    ],
    ["an assertion without a client", { assertion, issuer: "https://a.example" }],
  ])("Mcp: is not made of %s", (_what, options) => {
    expect(() => createOAuthStore(options)).toThrow(TypeError);
  });
});

describe("tokens bound to a key", () => {
  it("Mcp: are not taken where they are not bound after all", async () => {
    await expect(connect({ dpop: true })).rejects.toMatchObject(unauthenticated);
    expect(grants()).toHaveLength(1);
  });

  it("Mcp: are not asked for where the authorization server takes no such proofs", async () => {
    answers["/.well-known/oauth-authorization-server"] = {
      body: metadata({ dpop_signing_alg_values_supported: ["RS256"] }),
    };
    await expect(connect({ dpop: true })).rejects.toMatchObject(unauthenticated);
    expect(grants()).toHaveLength(0);
  });

  it("Mcp: are sent with a proof of their own, and codes are bound to the key as well; both keys are one, kept with the tokens", async () => {
    const kept = createMemoryTokenStore();
    goodTokens.add("DPoP access-0");
    answers["/token"] = () => ({ body: { access_token: "access-0", token_type: "DPoP" } });
    await connect({ dpop: true, tokens: kept });
    const stored = await kept.load();
    expect(stored?.["dpop"]).toMatchObject({ kty: "EC", crv: "P-256", d: expect.any(String) });
    expect(consents[0]?.get("dpop_jkt")).toMatch(/^[\w-]{43}$/);
    await connect({ dpop: true, tokens: kept });
    expect((await kept.load())?.["dpop"]).toEqual(stored?.["dpop"]);
    expect(grants()).toHaveLength(1);
  });
});

describe("a client with a secret", () => {
  const issued = { client_id: "registered:é", client_secret: "a+b/c=%" };
  const basic = `Basic ${btoa("registered%3A%C3%A9:a%2Bb%2Fc%3D%25")}`;

  it.each([
    [undefined, undefined, "basic"],
    [["client_secret_post", "client_secret_basic"], undefined, "basic"],
    [["client_secret_post", "client_secret_basic"], "client_secret_post", "post"],
    [["client_secret_post"], "client_secret_basic", "post"],
    [["none"], undefined, "none"],
    [["private_key_jwt"], undefined, "post"],
    [undefined, "none", "none"],
  ])("Mcp: shows it as the authorization server takes it, of %o with %s: %s", async (taken, own, way) => {
    answers["/register"] = { body: { ...issued, token_endpoint_auth_method: own }, status: 200 };
    const more = { token_endpoint_auth_methods_supported: taken };
    answers["/.well-known/oauth-authorization-server"] = { body: metadata(more) };
    await connect();
    const { params, authorization } = posted.at(-1) ?? {};
    expect(authorization).toBe(way === "basic" ? basic : "");
    expect(params?.get("client_id")).toBe(way === "basic" ? null : issued.client_id);
    expect(params?.get("client_secret")).toBe(way === "post" ? issued.client_secret : null);
  });

  it("Mcp: has it in no error, whatever the authorization server says", async () => {
    answers["/register"] = { body: issued, status: 201 };
    const said = { error: "odd a+b/c=%", error_description: "your secret is a+b/c=% and code the-code" };
    for (const answer of [
      { body: said, status: 400 },
      { body: said },
      { body: { secret: "a+b/c=%" } },
      500,
    ]) {
      answers["/token"] = answer;
      const failure = await connect().catch((thrown: unknown) => thrown);
      expect(failure).toMatchObject(unauthenticated);
      expect(inspect(failure, { depth: 9, showHidden: true })).not.toMatch(/a\+b|the-code/);
    }
  });
});

describe("tokens", () => {
  /** Signs in, makes the token invalid, and has the next one asked for with this answer. */
  async function renewed(answer: Answer | (() => Answer)): Promise<void> {
    const kept = createMemoryTokenStore();
    await connect({ tokens: kept });
    goodTokens.clear();
    goodTokens.add("nothing");
    const first = answers["/token"] ?? 404;
    answers["/token"] = (params) => {
      if (params.get("grant_type") === "refresh_token")
        return typeof answer === "function" ? answer() : answer;
      return typeof first === "function" ? first(params) : first;
    };
    asked = [];
    await connect({ tokens: kept });
  }

  it("Mcp: are taken as loosely as servers write them", async () => {
    const loose = {
      token_type: "BEARER",
      expires_in: "60",
      scope: null,
      refresh_token: "",
      id_token: "x.y.z",
    };
    answers["/token"] = () => ({ body: tokens(loose), status: 201 });
    await connect();
    expect(grants()).toHaveLength(1);
  });

  it.each([{ token_type: "mac" }, { token_type: "DPoP" }, { access_token: "a\nb" }, { access_token: "" }])(
    "Mcp: are refused when no request can be sent with them: %o",
    async (odd) => {
      answers["/token"] = () => ({ body: tokens(odd) });
      await expect(connect()).rejects.toMatchObject(unauthenticated);
    },
  );

  it("Mcp: are renewed with the refresh token there was, where no other comes", async () => {
    const kept = createMemoryTokenStore();
    await connect({ tokens: kept });
    for (const next of ["second", "third"]) {
      goodTokens.clear();
      goodTokens.add(`Bearer ${next}`);
      answers["/token"] = { body: { access_token: next, token_type: "bearer" } };
      await connect({ tokens: kept });
    }
    expect(grants().map((params) => params.get("refresh_token"))).toEqual([null, "refresh-1", "refresh-1"]);
  });

  it.each([
    ["invalid_client", 401, ["POST /register", "SHOW /authorize"]],
    ["unauthorized_client", 400, ["POST /register", "SHOW /authorize"]],
    ["invalid_grant", 400, ["SHOW /authorize"]],
    ["invalid_grant", 200, ["SHOW /authorize"]],
    ["server_error", 500, ["SHOW /authorize"]],
  ])("Mcp: are had anew after %s with HTTP status %i, by %o", async (error, status, way) => {
    await renewed({ body: { error }, status });
    const steps = asked.filter((step) => /register|SHOW/.test(step));
    expect(steps).toEqual(way);
    expect(grants().map((params) => params.get("grant_type"))).toEqual([
      "authorization_code",
      "refresh_token",
      "authorization_code",
    ]);
  });

  it("Mcp: are had anew where the answer to a renewal cannot be read", async () => {
    await renewed(503);
    expect(consents).toHaveLength(2);
  });

  it("Mcp: are not asked of a person when a renewal is refused for another reason", async () => {
    await expect(renewed({ body: { error: "invalid_scope" }, status: 400 })).rejects.toMatchObject(
      unauthenticated,
    );
    expect(consents).toHaveLength(1);
  });

  it("Mcp: are asked for with a code once, even where that is refused", async () => {
    answers["/token"] = { body: { error: "invalid_grant" }, status: 400 };
    await expect(connect()).rejects.toMatchObject(unauthenticated);
    expect([consents.length, grants().length]).toEqual([1, 1]);
  });

  it("Mcp: are not asked for in the clear on another machine, not even where requests are", async () => {
    const sent: string[] = [];
    const host = "http://mcp.example";
    const answer = async (to: string | URL | Request): Promise<Response> => {
      const { pathname } = new URL(String(to));
      sent.push(pathname);
      if (pathname === "/mcp") return new Response(null, { status: 401 });
      if (pathname !== "/.well-known/oauth-authorization-server") return new Response(null, { status: 404 });
      return Response.json({ ...metadata(), issuer: host, token_endpoint: `${host}/token` });
    };
    const auth = createOAuthStore({ clientId: "robot", clientSecret: "secret", issuer: host });
    const connecting = openMcpConnection({
      url: `${host}/mcp`,
      allowHttp: true,
      auth: { oauth2: auth },
      fetch: answer,
    });
    await expect(connecting).rejects.toMatchObject(unauthenticated);
    expect(sent).not.toContain("/token");
  });
});
