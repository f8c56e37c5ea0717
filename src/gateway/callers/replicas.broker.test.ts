import { tmpdir } from "node:os";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { type EchoingUpstream, startEchoingUpstream } from "../../../test/echoing-upstream.ts";
import { type NatsServer, natsSuite, startNats } from "../../../test/nats-server.ts";
import { createGateway, loadConfigObject, serveGateway } from "../index.ts";

const TOKEN = "the-token-of-ann-1234";
const KEY = "a key that all replicas of this gateway share";
const ann = { key: "token:ann", subject: "ann" };

natsSuite("callers of several replicas", () => {
  let broker: NatsServer;
  let upstream: EchoingUpstream;
  let names = 0;
  const closing: (() => Promise<unknown>)[] = [];
  beforeAll(async () => {
    broker = await startNats({ jetstream: true });
    upstream = await startEchoingUpstream();
  });
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });
  afterAll(async () => {
    await upstream.close();
    await broker.stop();
  });

  const start = async (name: string) => {
    const { origin } = upstream;
    const auth = { person: { login: true as const, clientId: "waybill", issuer: origin } };
    const loaded = await loadConfigObject(
      {
        name,
        bus: { nats: broker.url },
        openapi: { api: { document: `${origin}/openapi.json`, auth, identity: "caller" } },
        serve: { port: 0, auth: { tokens: { ann: { token: TOKEN } } }, sessions: { key: KEY } },
      },
      { baseDir: tmpdir(), env: { WAYBILL_STATE_DIR: "/nowhere", WAYBILL_KEYRING: "off" } },
    );
    const gateway = await createGateway(loaded);
    await gateway.ready;
    const server = await serveGateway(gateway, loaded);
    closing.push(async () => {
      await server.close({ timeoutMs: 0 });
      await gateway.close();
    });
    const source = gateway.logins.sources.get("api");
    if (source === undefined) throw new Error("There is no source.");
    const call = async () => {
      const response = await fetch(`${server.url}/api/api/whoami`, {
        headers: { authorization: `Bearer ${TOKEN}` },
      });
      const body = (await response.json()) as Readonly<Record<string, unknown>>;
      return response.ok ? body["account"] : body;
    };
    return { gateway, server, source, call };
  };

  it("have one login at each, renewed by one of them at a time, and ended at all", async () => {
    const name = `callers ${++names}`;
    const replicas = await Promise.all([start(name), start(name), start(name)]);
    const [one, two] = replicas;
    if (one === undefined || two === undefined) throw new Error("There is no replica.");
    await one.gateway.logins.keep(one.source, ann, upstream.logIn("ann-1"));
    const all = () => Promise.all(replicas.flatMap(({ call }) => [call(), call(), call(), call()]));
    expect(new Set(await all())).toEqual(new Set(["ann-1"]));
    upstream.expire("ann-1");
    expect(new Set(await all())).toEqual(new Set(["ann-1"]));
    // A refresh token is good for one use.
    expect(upstream.renewed.get("ann-1")).toBe(1);
    await two.gateway.logins.end(two.source, ann);
    for (const { call } of replicas) expect(await call()).toMatchObject({ code: "UNAUTHENTICATED" });
  });

  it("log in by a link of one replica at another, and come back to a third", async () => {
    // The authorization server is never visited: where the browser would be sent is all that counts.
    const name = `callers ${++names}`;
    const [one, two, three] = await Promise.all([start(name), start(name), start(name)]);
    const asked = (await one.call()) as {
      readonly details: { readonly login: { url: string; code: string } };
    };
    const { url, code } = asked.details.login;
    const at = (server: { readonly url: string }, path: string) => `${server.url}${path}`;
    const path = new URL(url).pathname;
    expect((await fetch(at(two.server, path))).status).toBe(200);
    const answered = await fetch(at(two.server, path), {
      method: "POST",
      redirect: "manual",
      body: new URLSearchParams({ code }),
    });
    expect(answered.status).toBe(303);
    const sent = new URL(answered.headers.get("location") ?? "");
    const cookie = answered.headers.getSetCookie()[0]?.split(";", 1)[0] ?? "";
    const state = sent.searchParams.get("state") ?? "";
    const back = `/login/callback?${new URLSearchParams({ state, code: `code-of-ann-2`, iss: upstream.origin })}`;
    expect((await fetch(at(three.server, back))).status).toBe(400);
    expect((await fetch(at(three.server, back), { headers: { cookie: `${cookie}x` } })).status).toBe(400);
    expect((await fetch(at(three.server, back), { headers: { cookie } })).status).toBe(200);
    await expect.poll(() => one.call()).toBe("ann-2");
    // The link was used, at every replica.
    for (const { server } of [one, three]) {
      const again = await fetch(at(server, path), {
        method: "POST",
        redirect: "manual",
        body: new URLSearchParams({ code }),
      });
      expect(again.status).toBe(404);
    }
  });
});
