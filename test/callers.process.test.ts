import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ElicitRequest } from "../src/core/operation/caller-side.ts";
import type { LoadedConfig } from "../src/gateway/config/loaded-config.ts";
import { createGateway, type GatewayConfig, loadConfigObject, serveGateway } from "../src/gateway/index.ts";
import { findLoginTarget } from "../src/gateway/sources/login-target.ts";
import { loginsOf } from "../src/gateway/sources/source-login.ts";
import { logIn } from "../src/http/oauth/login.ts";
import { openMcpConnection } from "../src/mcp/client/mcp-connection.ts";
import { atEnd } from "./gateway-sources.ts";
import { codeIn, enterCode, logInByLink, open } from "./login-browser.ts";
import { type LoginWorld, startLoginWorld, walkLogin } from "./login-world.ts";
import { ROOT, runNode } from "./run-node.ts";

let world: LoginWorld;
beforeAll(async () => {
  world = await startLoginWorld();
});
afterAll(() => world.close());

const tokenOf = (who: string) => `the-token-of-${who}-1234`;
const PEOPLE = ["ann", "bob", "cyd"];

/** Logs the gateway itself in to a source, as \`waybill login\` does. */
async function logInGateway(loaded: LoadedConfig, name: string): Promise<void> {
  const login = loginsOf(loaded).find((one) => one.name === name);
  if (login === undefined) return;
  const send = async (url: URL) => await walkLogin(url.href, "operator");
  const stored = await logIn({
    ...(await findLoginTarget(login, loaded)),
    client: login.client,
    way: { redirectUrl: "http://127.0.0.1/callback", send },
  });
  await login.kept.save(stored);
}

async function served(config: GatewayConfig = {}) {
  const state = mkdtempSync(join(tmpdir(), "waybill-callers-"));
  atEnd(async () => rmSync(state, { recursive: true, force: true }));
  const env = { WAYBILL_STATE_DIR: state, WAYBILL_KEYRING: "off" };
  const loaded = await loadConfigObject(
    {
      mcpServers: {
        sdk: { url: `${world.issuer}/sdk`, identity: "caller" },
      },
      openapi: {
        people: {
          document: `${world.issuer}/openapi.json`,
          auth: { person: { login: true, scopes: ["read"] } },
          identity: "caller",
        },
      },
      ...config,
      serve: {
        port: 0,
        auth: { tokens: Object.fromEntries(PEOPLE.map((who) => [who, { token: tokenOf(who) }])) },
        ...config.serve,
      },
    },
    { baseDir: state, env },
  );
  await logInGateway(loaded, "sdk");
  const warnings: string[] = [];
  const gateway = await createGateway(loaded, { onWarning: (message) => warnings.push(message) });
  atEnd(() => gateway.close());
  await gateway.ready;
  const server = await serveGateway(gateway, loaded);
  atEnd(() => server.close({ timeoutMs: 0 }));
  const call = async (who: string, path = "people/whoami") => {
    const response = await fetch(`${server.url}/api/${path}`, {
      headers: { authorization: `Bearer ${tokenOf(who)}` },
    });
    return { status: response.status, body: (await response.json()) as Record<string, never> };
  };
  return { gateway, server, call, state, warnings };
}

describe("callers over HTTP", () => {
  it("each ask the API as themselves, once they have followed their link", async () => {
    const { call } = await served();
    const refused = await call("ann");
    expect(refused.status).toBe(401);
    const { login } = refused.body["details"] as unknown as { login: { url: string; code: string } };
    expect(refused.body["code"]).toBe("UNAUTHENTICATED");
    expect(await logInByLink(login.url, login.code, "ann-upstream")).toMatchObject({ status: 200 });
    expect((await call("ann")).body).toMatchObject({ who: "ann-upstream" });
    const other = await call("bob");
    expect(other.status).toBe(401);
    const link = (other.body["details"] as unknown as { login: { url: string; code: string } }).login;
    expect(link.url).not.toBe(login.url);
    await logInByLink(link.url, link.code, "bob-upstream");
    expect((await call("bob")).body).toMatchObject({ who: "bob-upstream" });
    expect((await call("ann")).body).toMatchObject({ who: "ann-upstream" });
  });
});

describe("callers over MCP", () => {
  it.each(["2025", "2026"] as const)(
    "of %s are shown the link in the middle of a call, which goes on when they are back",
    async (protocol) => {
      const { server, call } = await served();
      const told: string[] = [];
      const connect = async (who: string, upstream: string, can = true) => {
        const connection = await openMcpConnection({
          url: `${server.url}/mcp`,
          protocol,
          auth: { bearer: tokenOf(who) },
        });
        atEnd(() => connection.close());
        connection.onEvent((event) => event.type === "notification" && told.push(event.method));
        const asked: ElicitRequest[] = [];
        const elicit = async (request: ElicitRequest) => {
          asked.push(request);
          if (request.mode !== "url") throw new Error("It was a form.");
          await logInByLink(request.url, codeIn(request.message), upstream);
          return { action: "accept" } as const;
        };
        // One object for all its calls: a server of 2025 does not say which of them a question is about.
        const caller = { elicit };
        const whoami = async () => {
          const params = { name: "sdk_whoami", arguments: {} };
          const result = await connection.request("tools/call", params, can ? { caller } : {});
          return (result["content"] as readonly { readonly text: string }[])[0]?.text;
        };
        return { whoami, asked };
      };
      const [ann, bob] = [await connect("ann", "ann-upstream"), await connect("bob", "bob-upstream")];
      expect(await Promise.all([ann.whoami(), bob.whoami(), ann.whoami()])).toEqual([
        "ann-upstream",
        "bob-upstream",
        "ann-upstream",
      ]);
      expect([ann.asked.length, bob.asked.length]).toEqual([1, 1]);
      expect(await ann.whoami()).toBe("ann-upstream");
      // The 2025 revisions have a way to say that a person is back.
      const isTold = told.includes("notifications/elicitation/complete");
      expect(isTold).toBe(protocol === "2025");
      const cyd = await connect("cyd", "cyd-upstream", false);
      expect(await cyd.whoami()).toMatch(/asked as you.*Open http:\/\/127\.0\.0\.1:\d+\/login\/\S+/s);
      // What one source has is nothing for another.
      expect((await call("ann")).status).toBe(401);
    },
  );
});

interface Link {
  readonly url: string;
  readonly code: string;
}

const linkIn = ({ body }: { readonly body: Record<string, never> }): Link =>
  (body["details"] as unknown as { readonly login: Link }).login;

describe("the page on which callers log in", () => {
  it("does nothing for a link without its code, for a wrong code, and for a link that was used", async () => {
    const { call } = await served();
    const { url, code } = linkIn(await call("ann"));
    expect((await open(url)).text).toContain("the caller &quot;ann&quot;");
    expect(await enterCode(url, "BBBB-BBBB")).toMatchObject({ status: 403, location: "", cookie: "" });
    // Another caller's code is worth nothing here.
    expect(await enterCode(url, linkIn(await call("bob")).code)).toMatchObject({ status: 403 });
    expect(await logInByLink(url, code, "ann-upstream")).toMatchObject({ status: 200 });
    expect(await enterCode(url, code)).toMatchObject({ status: 404 });
    expect(await open(`${url}x`)).toMatchObject({ status: 404 });
  });

  it("takes nobody back with another state, or without the cookie of the browser that was sent", async () => {
    const { call, server } = await served();
    const [ann, bob] = [linkIn(await call("ann")), linkIn(await call("bob"))];
    const [first, second] = [await enterCode(ann.url, ann.code), await enterCode(bob.url, bob.code)];
    const back = await walkLogin(first.location, "ann-upstream");
    const forged = new URL(back);
    forged.searchParams.set("state", "forged");
    for (const [address, cookie] of [
      [forged.href, first.cookie],
      [back, ""],
      [back, second.cookie],
      [`${server.url}/login/callback`, first.cookie],
    ] as const) {
      expect(await open(address, cookie)).toMatchObject({ status: 400 });
      expect((await call("ann")).status).toBe(401);
    }
    // Both logins still wait, and each ends where it began.
    expect(await open(await walkLogin(second.location, "bob-upstream"), second.cookie)).toMatchObject({
      status: 200,
    });
    expect(await open(back, first.cookie)).toMatchObject({ status: 200 });
    expect(await open(back, first.cookie)).toMatchObject({ status: 400 });
    expect((await call("ann")).body).toMatchObject({ who: "ann-upstream" });
    expect((await call("bob")).body).toMatchObject({ who: "bob-upstream" });
  });

  it("takes no form of another site", async () => {
    const { call } = await served();
    const { url, code } = linkIn(await call("ann"));
    for (const headers of [
      { origin: "https://elsewhere.example" },
      { origin: "null" },
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
    ]) {
      expect((await enterCode(url, code, headers)).status).toBe(403);
    }
    const own = { origin: new URL(url).origin, "sec-fetch-site": "same-origin" };
    expect((await enterCode(url, code, own)).status).toBe(303);
  });

  it("lets a caller log out, who is asked again then, and nobody else", async () => {
    const { call, server } = await served();
    for (const who of ["ann", "bob"]) {
      const { url, code } = linkIn(await call(who));
      await logInByLink(url, code, `${who}-upstream`);
    }
    const post = async (path: string, form: Record<string, string>) => {
      const response = await fetch(`${server.url}/login/${path}`, {
        method: "POST",
        body: new URLSearchParams(form),
      });
      return { status: response.status, text: await response.text() };
    };
    expect(await post("token", { token: "x".repeat(40) })).toMatchObject({ status: 403 });
    const { text } = await post("token", { token: tokenOf("ann") });
    const handle = /name="handle" value="([^"]+)"/.exec(text)?.[1] ?? "";
    expect(text).toContain("The logins of ann");
    const before = await world.counts();
    expect(await post("end", { handle: "guessed", source: "people" })).toMatchObject({ status: 404 });
    expect((await call("ann")).status).toBe(200);
    expect((await post("end", { handle, source: "people" })).text).toContain("logged out of people");
    expect((await world.counts()).revoked).toBeGreaterThan(before.revoked);
    expect((await call("ann")).status).toBe(401);
    expect((await call("bob")).body).toMatchObject({ who: "bob-upstream" });
  });
});

describe("a grant that ends", () => {
  it("is asked for again, of its caller alone, and the call goes on", async () => {
    const { call, server } = await served();
    for (const who of ["ann", "bob"]) {
      const { url, code } = linkIn(await call(who));
      await logInByLink(url, code, `${who}-upstream`);
    }
    const connection = await openMcpConnection({
      url: `${server.url}/mcp`,
      auth: { bearer: tokenOf("ann") },
    });
    atEnd(() => connection.close());
    const asked: string[] = [];
    const elicit = async (request: ElicitRequest) => {
      asked.push(request.message);
      if (request.mode === "url") await logInByLink(request.url, codeIn(request.message), "ann-again");
      return { action: "accept" } as const;
    };
    await world.end("ann-upstream");
    const result = await connection.request("tools/call", { name: "people_whoami" }, { caller: { elicit } });
    expect(JSON.stringify(result)).toContain("ann-again");
    expect(asked).toHaveLength(1);
    expect((await call("bob")).body).toMatchObject({ who: "bob-upstream" });
  });
});

describe("a login that lacks a scope", () => {
  it("is asked for with that scope beside those it has, of its caller alone", async () => {
    const { call, gateway } = await served();
    for (const who of ["ann", "bob"]) {
      const { url, code } = linkIn(await call(who));
      await logInByLink(url, code, `${who}-upstream`);
    }
    const refused = await call("ann", "people/write");
    expect(refused).toMatchObject({ status: 403, body: { code: "ACCESS_DENIED" } });
    expect(refused.body["detail"]).toContain("has ended or lacks a scope");
    const { url, code } = linkIn(refused);
    const source = gateway.logins.sources.get("people");
    // The scope is noted behind the answer.
    await expect
      .poll(
        async () =>
          source &&
          (await gateway.logins.heldBy(source, { key: "token:ann", subject: "ann" }))?.stored["wanted"],
      )
      .toBe("read write");
    const { location, cookie } = await enterCode(url, code);
    expect(new URL(location).searchParams.get("scope")).toContain("read write");
    expect(await open(await walkLogin(location, "ann-upstream"), cookie)).toMatchObject({ status: 200 });
    expect((await call("ann", "people/write")).body).toMatchObject({ who: "ann-upstream" });
    expect((await call("ann", "people/whoami")).body).toMatchObject({ who: "ann-upstream" });
    expect((await call("bob", "people/whoami")).body).toMatchObject({ scope: "read" });
  });
});

describe("waybill logout --caller", () => {
  it("ends what one caller has, and then what all have; the gateway asks them again", async () => {
    const { call, state } = await served();
    for (const who of PEOPLE) {
      const { url, code } = linkIn(await call(who));
      await logInByLink(url, code, `${who}-upstream`);
    }
    const config = {
      openapi: {
        people: {
          document: `${world.issuer}/openapi.json`,
          auth: { person: { login: true, scopes: ["read"] } },
          identity: "caller",
        },
      },
      serve: { auth: { tokens: { ann: { token: tokenOf("ann") } } } },
    };
    writeFileSync(join(state, "waybill.config.json"), JSON.stringify(config));
    const env = { WAYBILL_STATE_DIR: state, WAYBILL_KEYRING: "off" };
    const logout = async (...flags: string[]) =>
      await runNode([join(ROOT, "dist/cli.js"), "logout", "people", ...flags], { cwd: state, env });
    const before = await world.counts();
    expect(await logout("--caller", "bob")).toMatchObject({
      code: 0,
      stdout: "people: 1 login or key of bob removed.\n",
    });
    expect((await world.counts()).revoked).toBe(before.revoked + 1);
    expect((await Promise.all(PEOPLE.map((who) => call(who)))).map(({ status }) => status)).toEqual([
      200, 401, 200,
    ]);
    expect(await logout("--all-callers")).toMatchObject({ stdout: "people: 2 logins and keys removed.\n" });
    expect((await Promise.all(PEOPLE.map((who) => call(who)))).map(({ status }) => status)).toEqual([
      401, 401, 401,
    ]);
  });
});

describe("metadata of another server", () => {
  it("sends no caller anywhere", async () => {
    const { server } = await served();
    const connection = await openMcpConnection({
      url: `${server.url}/mcp`,
      auth: { bearer: tokenOf("ann") },
    });
    atEnd(() => connection.close());
    const whoami = async (): Promise<string> =>
      JSON.stringify(await connection.request("tools/call", { name: "sdk_whoami", arguments: {} }));
    const said = await whoami();
    const url = /http:\S+?\/login\/[\w-]+/.exec(said)?.[0] ?? "";
    await world.set({
      metadata: { resource: "https://elsewhere.example/sdk", authorization_servers: [world.issuer] },
    });
    try {
      const { status, location, cookie } = await enterCode(url, codeIn(said));
      expect([status, location, cookie]).toEqual([502, "", ""]);
    } finally {
      await world.set({ metadata: null });
    }
    expect(await whoami()).toContain("you are not logged in to it");
  });
});

describe("a revoked grant under load", () => {
  it("fails the calls of its caller alone, with a link each, and renews nothing for ever", async () => {
    const { call } = await served();
    for (const who of PEOPLE) {
      const { url, code } = linkIn(await call(who));
      await logInByLink(url, code, `${who}-load`);
    }
    const before = await world.counts();
    const calls = Array.from({ length: 60 }, (_, at) => PEOPLE[at % 3] ?? "");
    const running = calls.map((who) => call(who));
    await world.end("ann-load");
    const more = await Promise.all([...running, ...calls.map((who) => call(who))]);
    const told = [...calls, ...calls].map(
      (who, at) => [who, more[at]?.body["who"], more[at]?.status] as const,
    );
    for (const [who, upstream, status] of told) {
      if (who === "ann") expect([`ann-load`, undefined]).toContain(upstream);
      else expect([upstream, status]).toEqual([`${who}-load`, 200]);
    }
    expect((await call("ann")).status).toBe(401);
    expect((await world.counts()).refused - before.refused).toBeLessThanOrEqual(2);
  });
});
