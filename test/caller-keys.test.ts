import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createGateway, loadConfigObject, serveGateway } from "../src/gateway/index.ts";
import { atEnd } from "./gateway-sources.ts";
import { inspectLoaded, type RunEvent } from "./inspected-gateway.ts";
import { codeIn } from "./login-browser.ts";
import { askServer } from "./mcp-requests.ts";
import { listen, sendJson } from "./mcp-servers/http-servers.ts";

const CALLERS = ["ann", "bob"] as const;
const tokenOf = (who: string) => `the-token-of-${who}-1234`;

/** An API and an MCP server that say which key they were shown. */
async function startUpstream() {
  const server = await listen(async (request, response) => {
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk;
    const { headers, url = "" } = request;
    const shown = [headers["x-key"], headers["x-own"], headers.authorization].find(
      (one) => one !== undefined,
    );
    if (url === "/openapi.json") return sendJson(response, documentOf(origin));
    if (url === "/api/whoami") return sendJson(response, { key: shown ?? "none" });
    const { id, method } = JSON.parse(body || "{}") as { readonly id?: number; readonly method?: string };
    if (id === undefined) return response.writeHead(202).end();
    const made = {
      protocolVersion: "2025-11-25",
      capabilities: { tools: {} },
      serverInfo: { name: "k", version: "1" },
    };
    const listed = { tools: [{ name: "whoami", inputSchema: { type: "object" } }] };
    const said = { content: [{ type: "text", text: shown ?? "none" }] };
    const result = method === "initialize" ? made : method === "tools/list" ? listed : said;
    return sendJson(response, { jsonrpc: "2.0", id, result });
  });
  atEnd(() => server.close());
  const { origin } = new URL(server.url);
  return origin;
}

function documentOf(origin: string): object {
  const ok = { description: "ok", content: { "application/json": { schema: {} } } };
  return {
    openapi: "3.1.0",
    info: { title: "Keys", version: "1.0.0" },
    servers: [{ url: `${origin}/api` }],
    security: [{ key: [] }],
    components: { securitySchemes: { key: { type: "apiKey", in: "header", name: "x-key" } } },
    paths: { "/whoami": { get: { operationId: "whoami", responses: { 200: ok } } } },
  };
}

async function served() {
  const origin = await startUpstream();
  const state = mkdtempSync(join(tmpdir(), "waybill-keys-"));
  atEnd(() => rmSync(state, { recursive: true, force: true }));
  const loaded = await loadConfigObject(
    {
      mcpServers: {
        bearer: { url: `${origin}/mcp`, protocol: "2025", identity: "key" },
        header: {
          url: `${origin}/mcp`,
          protocol: "2025",
          bearer: "the-gateway-itself",
          identity: { mode: "key", header: "x-own" },
        },
      },
      openapi: { api: { document: `${origin}/openapi.json`, identity: { mode: "key", scheme: "key" } } },
      serve: {
        port: 0,
        auth: { tokens: Object.fromEntries(CALLERS.map((who) => [who, { token: tokenOf(who) }])) },
      },
    },
    { baseDir: state, env: { WAYBILL_STATE_DIR: state, WAYBILL_KEYRING: "off" } },
  );
  const gateway = await createGateway(loaded);
  atEnd(() => gateway.close());
  await gateway.ready;
  const server = await serveGateway(gateway, loaded);
  atEnd(() => server.close({ timeoutMs: 0 }));
  const call = async (who: string, source: string): Promise<string> => {
    const place = { url: `${server.url}/mcp`, token: tokenOf(who) };
    const called = { name: `${source}_whoami`, arguments: {} };
    const { content, structuredContent } = await askServer(place, "tools/call", called);
    const { key } = (structuredContent ?? {}) as { readonly key?: string };
    return key ?? (content as readonly { readonly text: string }[])[0]?.text ?? "";
  };
  const post = async (path: string, form: Record<string, string>) => {
    const response = await fetch(new URL(path, server.url), {
      method: "POST",
      body: new URLSearchParams(form),
    });
    return { status: response.status, text: await response.text() };
  };
  const handleIn = (text: string): string => /name="handle" value="([^"]+)"/.exec(text)?.[1] ?? "";
  /** Gives a key by the link that is told when there is none. */
  const give = async (who: string, source: string, key: string) => {
    const said = await call(who, source);
    const link = /http:\S+\/login\/[\w-]+/.exec(said)?.[0] ?? "";
    const { text } = await post(link, { code: codeIn(said) });
    return await post("/login/key", { handle: handleIn(text), source, key });
  };
  return { call, post, give, handleIn, state, loaded };
}

describe("keys of callers", () => {
  it.each([
    ["api", "key-of-ann", "key-of-bob"],
    ["header", "key-of-ann", "key-of-bob"],
    ["bearer", "Bearer key-of-ann", "Bearer key-of-bob"],
  ])(
    "of %s are asked for once, sent for their caller alone, and stand nowhere in the clear",
    async (source, ann, bob) => {
      const { call, give, state } = await served();
      expect(await give("ann", source, "key-of-ann")).toMatchObject({ status: 200 });
      expect(await call("ann", source)).toBe(ann);
      expect(await call("bob", source)).toContain("you are not logged in to it");
      await give("bob", source, "key-of-bob");
      expect(await Promise.all(["ann", "bob", "ann"].map((who) => call(who, source)))).toEqual([
        ann,
        bob,
        ann,
      ]);
      const files = readdirSync(join(state, "logins")).map((name) =>
        readFileSync(join(state, "logins", name), "latin1"),
      );
      expect(files.length).toBeGreaterThan(2);
      // Quoted, as JSON has them: what is encrypted may hold any three letters.
      expect(files.join()).not.toMatch(/key-of-|"ann"|"bob"/);
    },
  );

  it("are refused where they are none, replaced and removed on the page of their caller", async () => {
    const { call, give, post, handleIn } = await served();
    expect(await give("ann", "api", "two words")).toMatchObject({ status: 400 });
    expect(await give("ann", "api", "x".repeat(4_097))).toMatchObject({ status: 400 });
    expect(await give("ann", "api", "x".repeat(4_096))).toMatchObject({ status: 200 });
    const page = await post("/login/token", { token: tokenOf("ann") });
    expect(page.text).toContain("Remove the key");
    const handle = handleIn(page.text);
    expect(await post("/login/key", { handle, source: "api", key: "another" })).toMatchObject({
      status: 200,
    });
    expect(await call("ann", "api")).toBe("another");
    const again = handleIn((await post("/login/token", { token: tokenOf("ann") })).text);
    expect(await post("/login/end", { handle: again, source: "api" })).toMatchObject({ status: 200 });
    expect(await call("ann", "api")).toContain("you are not logged in to it");
    // The page of one caller is nobody else's.
    const other = await post("/login/token", { token: tokenOf("bob") });
    expect(other.text).toContain("The logins of bob");
    expect(other.text).not.toContain("Remove the key");
  });
});

describe("the inspector", () => {
  it("shows its caller the link as a question, goes on when they are back, and records by which grant", async () => {
    const { loaded, handleIn } = await served();
    const open = await inspectLoaded(loaded);
    atEnd(() => open.close());
    const records: object[] = [];
    open.observer.listen({ end: (record) => void records.push(record) });
    const headers = { authorization: `Bearer ${tokenOf("ann")}` };
    const response = await open.ask("run", { headers, body: { operation: "api.whoami", input: {} } });
    const events: RunEvent[] = [];
    let rest = "";
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const event = JSON.parse(line) as RunEvent;
        events.push(event);
        if (event.type !== "ask" || event.question.mode !== "url") continue;
        const { url, message } = event.question;
        const post = async (at: string, form: Record<string, string>) =>
          await (await fetch(at, { method: "POST", body: new URLSearchParams(form) })).text();
        const page = await post(url, { code: codeIn(message) });
        await post(new URL("key", url).href, { handle: handleIn(page), source: "api", key: "key-of-ann" });
      }
    }
    expect(events.map(({ type }) => type)).toEqual(["started", "ask", "result", "end"]);
    expect(JSON.stringify(events)).toContain("key-of-ann");
    expect(records).toMatchObject([
      {
        operation: "api.whoami",
        subject: "ann",
        upstream: { as: "key", grant: expect.stringMatching(/^[\w-]{36}$/) },
      },
    ]);
  });
});
