import { describe, expect, it } from "vitest";
import { loadedConfig } from "../../../test/served-gateway.ts";
import { createOwnerToken, OWNER_TOKEN, withOwnerToken } from "./owner-token.ts";

describe("the token of whoever runs waybill inspect", () => {
  it("is another one each time, of 256 bits, and needs no escaping in an address", () => {
    const tokens = Array.from({ length: 50 }, createOwnerToken);
    expect(new Set(tokens).size).toBe(50);
    for (const token of tokens) expect(token).toMatch(/^[A-Za-z0-9_-]{43}$/);
  });

  it("stands beside those of the config, and is a secret from then on", () => {
    const ada = { token: "0123456789abcdef-ada" };
    const loaded = loadedConfig({ serve: { port: 5_000, auth: { tokens: { ada } } } });
    const token = createOwnerToken();
    const { config, secrets } = withOwnerToken(loaded, token);
    expect(config.serve).toEqual({ port: 5_000, auth: { tokens: { ada, [OWNER_TOKEN]: { token } } } });
    expect(secrets.mask(`http://127.0.0.1:4101/inspect/#token=${token}`)).not.toContain(token);
    expect(loaded.config.serve?.auth?.tokens).toEqual({ ada });
  });

  it("leaves other ways to sign in as they are", () => {
    const jwt = { audience: "https://a.example", jwksUrl: "https://b.example/keys" };
    const { config } = withOwnerToken(loadedConfig({ serve: { auth: { jwt } } }), createOwnerToken());
    expect(config.serve?.auth?.jwt).toEqual(jwt);
  });
});
