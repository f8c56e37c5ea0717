import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createGuardedFetch } from "./guarded-fetch.ts";
import { logIn } from "./login.ts";

let server: Server;
let origin: string;
let asked: string[];
let body: string;

beforeEach(async () => {
  asked = [];
  body = "{}";
  server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    if (request.url === "/away") response.writeHead(302, { location: "http://10.0.0.1/" });
    response.end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://localhost:${(server.address() as AddressInfo).port}`;
});
afterEach(() => new Promise((resolve) => server.close(resolve)));

const far = new URL("https://mcp.example/mcp");

describe("what a server on the internet names", () => {
  it.each([
    "https://10.0.0.1/",
    "https://169.254.169.254/latest",
    "https://192.168.1.1:8443/",
    "https://[fd00::1]/",
    "https://[::ffff:10.0.0.1]/",
    "http://2130706433/",
  ])("is not asked at a private address: %s", async (address) => {
    const asking = createGuardedFetch(far)(address);
    await expect(asking).rejects.toMatchObject({
      code: "ACCESS_DENIED",
      message: expect.stringContaining("name it as the issuer"),
    });
  });

  it("is not asked where its name leads to a private address", async () => {
    await expect(createGuardedFetch(far)(origin)).rejects.toMatchObject({ code: "ACCESS_DENIED" });
    expect(asked).toEqual([]);
  });

  it("is asked there where the user named that host and port", async () => {
    expect((await createGuardedFetch(far, [origin])(`${origin}/a`)).status).toBe(200);
    const other = createGuardedFetch(far, ["http://localhost:1"])(origin);
    await expect(other).rejects.toMatchObject({ code: "ACCESS_DENIED" });
    expect(asked).toEqual(["GET /a"]);
  });

  it("follows no redirect, and refuses one of what carries a secret", async () => {
    const fetch = createGuardedFetch(new URL(origin));
    expect((await fetch(`${origin}/away`)).status).toBe(302);
    const posting = fetch(`${origin}/away`, { method: "POST", body: "x", redirect: "error" });
    await expect(posting).rejects.toThrow("redirected");
  });

  it("gives no more than 1 MiB", async () => {
    const fetch = createGuardedFetch(new URL(origin));
    body = "x".repeat(1_048_576);
    expect((await (await fetch(origin)).text()).length).toBe(1_048_576);
    body = "x".repeat(1_048_577);
    await expect(fetch(origin)).rejects.toMatchObject({ code: "TOO_LARGE" });
  });

  it.each([
    ["a private address", { authorization_servers: ["https://10.1.2.3"] }, /private or reserved/],
    ["this machine", { authorization_servers: ["http://127.0.0.1:1"] }, /other machines than this one/],
    ["plain http", { authorization_servers: ["http://auth.example"] }, /https alone/],
  ])("leads no login to %s", async (_, metadata, said) => {
    const guarded = createGuardedFetch(far);
    const logging = logIn({
      serverUrl: far,
      client: {},
      way: { redirectUrl: "http://127.0.0.1:5000/callback", send: async () => "" },
      fetch: async (to, init) =>
        new URL(String(to)).hostname === "mcp.example"
          ? Response.json({ resource: far.href, ...metadata })
          : await guarded(to, init),
    });
    await expect(logging).rejects.toThrow(said);
    expect(asked).toEqual([]);
  });
});
