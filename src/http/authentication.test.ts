import { describe, expect, it } from "vitest";
import { CallError } from "../core/errors/errors.ts";
import { createAuthentication, type HttpAuthenticationOptions } from "./authentication.ts";
import { FetchRequest } from "./fetch-exchange.ts";

const SECRET = new Uint8Array(32).fill(7);
const requestTo = (url: string) => new FetchRequest(new Request(url));
const REQUEST = requestTo("http://localhost/");

function create(options: HttpAuthenticationOptions) {
  return createAuthentication(options);
}

describe("createAuthentication", () => {
  it("Http: knows nobody and decides nothing where it is given neither way", async () => {
    const open = create({});
    expect([open.decides, await open.identify(REQUEST)]).toEqual([false, { identity: undefined }]);
    expect(open.describe(REQUEST)).toBeUndefined();
  });

  it("Http: asks for a bearer token where auth is given, and describes how to get one", async () => {
    const resourceMetadata = { authorizationServers: ["https://id.example"] };
    const bearer = create({
      auth: { bearer: { audience: "https://api.example", keys: SECRET, resourceMetadata } },
    });
    const outcome = await bearer.identify(REQUEST);
    expect(bearer.decides).toBe(true);
    expect("refusal" in outcome && outcome.refusal.status).toBe(401);
    const path = "http://localhost/.well-known/oauth-protected-resource";
    expect(bearer.describe(requestTo(path))).toMatchObject({ answer: { status: 200 } });
  });

  it("Http: takes an API key in place of a bearer token, and says which of them it wants", async () => {
    const apiKeys = { header: "X-Key", keys: { "key-of-ada": { subject: "ada" } } };
    const withKey = (key: string) =>
      new FetchRequest(new Request("http://localhost/", { headers: { "x-key": key } }));
    const keys = create({ auth: { apiKeys } });
    expect([keys.decides, keys.keyHeader]).toEqual([true, "x-key"]);
    expect(await keys.identify(withKey("key-of-ada"))).toMatchObject({ identity: { subject: "ada" } });
    for (const [auth, request, challenge] of [
      [{ apiKeys }, withKey("another"), "ApiKey"],
      [{ apiKeys }, REQUEST, "ApiKey"],
      [{ apiKeys, bearer: { audience: "a", keys: SECRET } }, REQUEST, "Bearer"],
    ] as const) {
      const outcome = await create({ auth }).identify(request);
      if (!("refusal" in outcome)) throw new Error("not refused");
      expect(outcome.refusal).toMatchObject({ status: 401, headers: { "www-authenticate": challenge } });
    }
  });

  it("Http: takes whom authenticate names, checked, and nobody for an anonymous caller", async () => {
    const named = create({ authenticate: async () => ({ subject: "ann", scopes: ["read"] }) });
    expect(await named.identify(REQUEST)).toMatchObject({ identity: { subject: "ann", scopes: ["read"] } });
    for (const none of [undefined, null]) {
      const nobody = create({ authenticate: () => none });
      expect([nobody.decides, await nobody.identify(REQUEST)]).toEqual([true, { identity: undefined }]);
      expect(nobody.describe(REQUEST)).toBeUndefined();
    }
  });

  it.each([
    ["UNAUTHENTICATED", 401, "Bearer"],
    ["ACCESS_DENIED", 403, undefined],
  ] as const)(
    "Http: refuses with the status of a %s that authenticate throws",
    async (code, status, challenge) => {
      const authenticate = () => {
        throw new CallError(code, "Not you.");
      };
      const outcome = await create({ authenticate }).identify(REQUEST);
      if (!("refusal" in outcome)) throw new Error("not refused");
      expect([outcome.refusal.status, outcome.refusal.message]).toEqual([status, "Not you."]);
      expect(outcome.refusal.headers["www-authenticate"]).toBe(challenge);
    },
  );

  it("Http: passes on what else authenticate throws: a fault of this side is no refusal", async () => {
    const authenticate = () => {
      throw new Error("database down");
    };
    await expect(create({ authenticate }).identify(REQUEST)).rejects.toThrow("database down");
  });

  it("Http: refuses both ways at once", () => {
    const both = { auth: { bearer: { audience: "a", keys: SECRET } }, authenticate: () => undefined };
    expect(() => create(both)).toThrow(TypeError);
  });
});
