import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { consentOnDevice } from "./device-consent.ts";
import { createMemoryTokenStore, createOAuthStore } from "./oauth-store.ts";

it("asks no more often than it was told to, however long an interval it was told", async () => {
  let asked = 0;
  const server = createServer((request, response) => {
    const isToken = request.url === "/token";
    if (isToken) asked += 1;
    response.writeHead(isToken ? 400 : 200, { "content-type": "application/json" });
    const code = {
      device_code: "d",
      user_code: "u",
      verification_uri: `${issuer}/device`,
      expires_in: 1e9,
      interval: 1e9,
    };
    response.end(JSON.stringify(isToken ? { error: "authorization_pending" } : code));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => new Promise<void>((resolve) => void server.close(() => resolve())));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const store = createOAuthStore({
    redirectUrl: "http://127.0.0.1/callback",
    tokens: createMemoryTokenStore(),
  });
  const stopping = new AbortController();
  const serverUrl = new URL(issuer);
  const flow = {
    server: { issuer, token_endpoint: `${issuer}/token`, device_authorization_endpoint: `${issuer}/code` },
    address: issuer,
    isGuessed: false,
    resource: undefined,
    at: { issuer },
    client: { client_id: "c" },
    scope: undefined,
    fetch,
    serverUrl,
  };
  const shown = new Promise<void>((resolve) => {
    const options = {
      serverUrl,
      fetch,
      resourceMetadataUrl: undefined,
      scope: undefined,
      isWider: false,
      onDevice: () => resolve(),
      signal: stopping.signal,
    };
    consentOnDevice(store, flow, options).catch(() => resolve());
  });
  await shown;
  await delay(200);
  expect(asked).toBe(0);
  stopping.abort();
});
