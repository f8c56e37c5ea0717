import { createServer, request } from "node:http";
import { createServer as createTcpServer } from "node:net";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { afterEach, describe, expect, it } from "vitest";
import { query, stream, until } from "../../../test/make-operation.ts";
import { handGateway, loadedConfig } from "../../../test/served-gateway.ts";
import type { ServeAuthConfig, ServeConfig } from "../config/gateway-config.ts";
import { type GatewayServer, serveRoutedGateway } from "./serve-gateway.ts";

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of open.splice(0).reverse()) await end();
});

const ANN = { token: "the-token-of-ann-1", scopes: ["read"] };
const BEN = { token: "the-token-of-ben-1" };
const BOTH = { tokens: { ann: ANN, ben: BEN } };

let ended: string[];

async function start(auth: ServeAuthConfig | undefined = BOTH) {
  ended = [];
  const gateway = handGateway([
    stream(
      "office.watch",
      async function* (_, context) {
        yield { n: 1 };
        await new Promise((resolve) => context.signal.addEventListener("abort", resolve));
        ended.push(context.identity?.subject ?? "");
      },
      { inputSchema: { type: "object", properties: {}, additionalProperties: false } },
    ),
    query("office.echo", (input) => ({ input })),
  ]);
  const server = await serveRoutedGateway(gateway, loadedConfig({ serve: { ...(auth && { auth }) } }), {});
  open.push(() => server.close({ timeoutMs: 0 }));
  const reload = (serve: ServeConfig) => server.reload(loadedConfig({ serve }));
  return { server, reload };
}

/** Follows a stream of events from its first one on. */
class Following {
  text = "";
  isOver = false;

  static async begin(url: string, token: string, init: RequestInit = {}): Promise<Following> {
    const headers = { accept: "text/event-stream", authorization: `Bearer ${token}`, ...init.headers };
    const response = await fetch(url, { ...init, headers });
    expect(response.status).toBe(200);
    const following = new Following();
    open.push(() => response.body?.cancel().catch(() => {}));
    void following.#read(response);
    return following;
  }

  async #read(response: Response): Promise<void> {
    const decoder = new TextDecoder();
    try {
      for await (const piece of response.body ?? []) this.text += decoder.decode(piece as Uint8Array);
    } catch {
      // Cut off, which is an end as well.
    }
    this.isOver = true;
  }
}

const watch = async ({ url }: GatewayServer, token: string): Promise<Following> => {
  const following = await Following.begin(`${url}/api/office/watch`, token);
  await until(() => following.text.includes('"n":1'));
  return following;
};

describe("open streams of the HTTP API", () => {
  it("RE-30 end for a token that the new config does not have, which says so, and go on for others", async () => {
    const { server, reload } = await start();
    const [ann, ben] = [await watch(server, ANN.token), await watch(server, BEN.token)];
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify({ operation: "office.watch", input: {} });
    const called = await Following.begin(`${server.url}/call`, ANN.token, { method: "POST", headers, body });
    await until(() => called.text.includes('"n":1'));
    await reload({ auth: { tokens: { ben: BEN } } });
    await until(() => ann.isOver && called.isOver);
    for (const { text } of [ann, called]) expect(text).toMatch(/event: error\n[\s\S]*UNAUTHENTICATED/);
    await until(() => ended.length === 2);
    expect([ended, ben.isOver]).toEqual([["ann", "ann"], false]);
  });

  it.each<[string, ServeAuthConfig, boolean]>([
    ["has another token", { tokens: { ann: { ...ANN, token: "the-token-of-ann-2" }, ben: BEN } }, true],
    ["has other scopes", { tokens: { ann: { ...ANN, scopes: [] }, ben: BEN } }, true],
    ["has another name", { tokens: { anne: ANN, ben: BEN } }, true],
    [
      "gets results in another form",
      { tokens: { ann: { ...ANN, format: "tool-envelope" }, ben: BEN } },
      false,
    ],
    ["gets company", { tokens: { cid: { token: "the-token-of-cid-1" }, ...BOTH.tokens } }, false],
  ])("RE-30 end, or not, when their caller %s", async (_, auth, isEnded) => {
    const { server, reload } = await start();
    const [ann, ben] = [await watch(server, ANN.token), await watch(server, BEN.token)];
    await reload({ auth });
    if (isEnded) await until(() => ann.isOver);
    // Handlers hear of it within the reload.
    expect(ended).toEqual(isEnded ? ["ann"] : []);
    expect(ben.isOver).toBe(false);
    await reload({ auth: { tokens: { dan: { token: "the-token-of-dan-1" } } } });
    await until(() => ann.isOver && ben.isOver);
    expect(ann.text.match(/event: error/g)).toHaveLength(1);
  });

  it("RE-30 end where nobody was asked who they are, and now everybody is", async () => {
    const { server, reload } = await start({});
    const anybody = await watch(server, "");
    await reload({ auth: BOTH });
    await until(() => anybody.isOver);
  });

  it("RE-30 end for callers by signed tokens when other keys are believed, and stay while the same are", async () => {
    const { publicKey, privateKey } = await generateKeyPair("ES256");
    const keys = createServer(async (_, response) => {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), alg: "ES256", kid: "1" }] }));
    });
    await new Promise<void>((resolve) => keys.listen(0, "127.0.0.1", resolve));
    open.push(() => new Promise((resolve) => keys.close(resolve)));
    const { port } = keys.address() as { port: number };
    const jwt = { audience: "desk", jwksUrl: `http://127.0.0.1:${port}/keys` };
    const token = await new SignJWT({})
      .setProtectedHeader({ alg: "ES256", kid: "1" })
      .setSubject("eve")
      .setAudience("desk")
      .setExpirationTime("5m")
      .sign(privateKey);
    const { server, reload } = await start({ ...BOTH, jwt });
    const [eve, ann] = [await watch(server, token), await watch(server, ANN.token)];
    await reload({ auth: { tokens: { ben: BEN }, jwt } });
    await until(() => ann.isOver);
    expect(eve.isOver).toBe(false);
    await reload({ auth: { tokens: { ben: BEN }, jwt: { ...jwt, audience: "other" } } });
    await until(() => eve.isOver);
    expect(eve.text).toMatch(/UNAUTHENTICATED/);
  });

  it("RE-30 end even where the rest of the config cannot be used", async () => {
    const { server, reload } = await start();
    const ann = await watch(server, ANN.token);
    const session = await openSession(server, ANN.token);
    await expect(reload({ port: await takenPort(), auth: { tokens: { ben: BEN } } })).rejects.toThrow();
    await until(() => ann.isOver && session.isOver);
  });
});

async function takenPort(): Promise<number> {
  const blocker = createTcpServer();
  await new Promise<void>((resolve) => blocker.listen(0, "127.0.0.1", resolve));
  open.push(() => new Promise((resolve) => blocker.close(resolve)));
  return (blocker.address() as { port: number }).port;
}

/** Initializes a session, and follows what nobody asked for. */
async function openSession({ url }: GatewayServer, token: string): Promise<Following> {
  const body = JSON.stringify({
    ...{ jsonrpc: "2.0", id: 1, method: "initialize" },
    params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } },
  });
  const accept = "application/json, text/event-stream";
  const headers = { accept, "content-type": "application/json", authorization: `Bearer ${token}` };
  const response = await fetch(`${url}/mcp`, { method: "POST", headers, body });
  await response.text();
  const session = { "mcp-session-id": response.headers.get("mcp-session-id") ?? "" };
  return Following.begin(`${url}/mcp`, token, { headers: session });
}

describe("who may call, when it changes", () => {
  it("RE-30 ends the streams of MCP sessions of a token that is gone", async () => {
    const { server, reload } = await start();
    const session = await openSession(server, ANN.token);
    expect(session.isOver).toBe(false);
    await reload({ auth: { tokens: { ben: BEN } } });
    await until(() => session.isOver);
  });

  it.each(["/call", "/api/office/echo", "/mcp"])(
    "RE-30 refuses a request to %s whose body arrives after its token is gone",
    async (path) => {
      const { server, reload } = await start();
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping", operation: "office.echo" });
      const accept = "application/json, text/event-stream";
      const authorization = `Bearer ${ANN.token}`;
      const headers = { accept, authorization, "content-type": "application/json", expect: "100-continue" };
      const sent = request(`${server.url}${path}`, { method: "POST", headers });
      const answered = new Promise<number | undefined>((resolve, reject) => {
        sent.on("error", reject).on("response", (response) => resolve(response.resume().statusCode));
      });
      // The gateway has the head by the time it asks for the body.
      const isWanted = new Promise((resolve) => sent.on("continue", resolve));
      sent.flushHeaders();
      await isWanted;
      sent.write(body.slice(0, 5));
      // Whoever is known is known by the time the next request is answered.
      await fetch(`${server.url}/api/office/echo`, { method: "POST", headers: { authorization } });
      await reload({ auth: { tokens: { ben: BEN } } });
      sent.end(body.slice(5));
      expect(await answered).toBe(401);
    },
  );

  it("RE-30 asks nobody less than before where the rest of the config cannot be used", async () => {
    const { server, reload } = await start();
    const status = async (headers: Record<string, string> = {}) =>
      (await fetch(`${server.url}/openapi.json`, { headers })).status;
    await expect(reload({ port: await takenPort() })).rejects.toThrow();
    expect(await status()).toBe(401);
    expect(await status({ authorization: `Bearer ${ANN.token}` })).toBe(200);
  });

  it("RE-30 asks everybody from then on, of the HTTP API too, where the rest of the config cannot be used", async () => {
    const { server, reload } = await start({});
    const status = async () => (await fetch(`${server.url}/openapi.json`)).status;
    expect(await status()).toBe(200);
    await expect(reload({ port: await takenPort(), auth: BOTH })).rejects.toThrow();
    expect(await status()).toBe(401);
  });
});
