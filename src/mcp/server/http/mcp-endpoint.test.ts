import { afterEach, describe, expect, it } from "vitest";
import { cpuMs } from "../../../../test/cpu-ms.ts";
import {
  call,
  ENDPOINT,
  errorOf,
  type HeaderFields,
  INITIALIZE,
  initialize,
  modern,
  post,
  until,
} from "../../../../test/mcp-requests.ts";
import { createSmallMcpServer } from "../../../../test/small-mcp-server.ts";
import { CallError } from "../../../core/errors/errors.ts";
import { OperationRegistry } from "../../../core/registry/registry.ts";
import { toMcpServer } from "../to-mcp-server.ts";
import { createMcpHandler, type McpHandler } from "./mcp-endpoint.ts";
import type { McpHandlerOptions } from "./serve-mcp-http.ts";

const open: McpHandler[] = [];
afterEach(async () => {
  for (const handler of open.splice(0)) await handler.close({ timeoutMs: 0 });
});

function start(options?: McpHandlerOptions) {
  const small = createSmallMcpServer();
  const handler = createMcpHandler(small, options);
  open.push(handler);
  return { small, handler };
}

describe("createMcpHandler, before anything is run", () => {
  it("Mcp: takes JSON only", async () => {
    const { handler } = start();
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""]) {
      expect((await handler.fetch(post(INITIALIZE, { "content-type": type }))).status).toBe(415);
    }
    const fine = await handler.fetch(post(INITIALIZE, { "content-type": "application/json; charset=utf-8" }));
    expect(fine.status).toBe(200);
  });

  it("Mcp: takes a body as it is, and reads nothing else out of one that is packed or no UTF-8", async () => {
    const { handler } = start();
    const packed = await handler.fetch(post(INITIALIZE, { "content-encoding": "gzip" }));
    expect(packed.status).toBe(415);
    expect(await packed.text()).toContain("The body must be sent as it is, without a Content-Encoding.");
    expect((await handler.fetch(post(INITIALIZE, { "content-encoding": "identity" }))).status).toBe(200);
    const latin1 = Buffer.from(JSON.stringify(INITIALIZE).replace('"t"', '"Jos\u00e9"'), "latin1");
    expect(latin1.toString("utf8")).toContain("\ufffd");
    const broken = await handler.fetch(new Request(post(INITIALIZE), { body: latin1 }));
    expect([broken.status, (await errorOf(broken)).code]).toEqual([400, -32_700]);
  });

  it("Mcp: takes a body of as many bytes as allowed and not one more, however its length is declared", async () => {
    const text = JSON.stringify(INITIALIZE);
    for (const [bytes, status] of [
      [text.length, 200],
      [text.length - 1, 413],
    ] as const) {
      const { handler } = start({ limits: { bodyBytes: bytes } });
      expect((await handler.fetch(post(text))).status).toBe(status);
      const undeclared = post(text);
      undeclared.headers.delete("content-length");
      expect((await handler.fetch(undeclared)).status).toBe(status);
      expect((await handler.fetch(post(text, { "content-length": "1" }))).status).toBe(status);
    }
  });

  it("Mcp: answers what is no JSON, too deep or no message with an error", async () => {
    const { handler } = start();
    const deep = "[".repeat(2_000_000) + "]".repeat(2_000_000);
    const started = cpuMs();
    for (const text of ["", "{", "nonsense", "\u0000", deep, "[".repeat(600) + "]".repeat(600)]) {
      expect(await errorOf(await handler.fetch(post(text)))).toEqual({
        status: 400,
        code: -32_700,
        id: null,
      });
    }
    expect(cpuMs() - started).toBeLessThan(1_000);
    for (const body of [
      1,
      null,
      "x",
      {},
      [],
      [1],
      { jsonrpc: "2.0" },
      { jsonrpc: "1.0", id: 1, method: "x" },
    ]) {
      expect((await errorOf(await handler.fetch(post(JSON.stringify(body))))).status).toBe(400);
    }
  });

  it("Mcp: allows three methods, and one where there is no session", async () => {
    const { handler } = start();
    for (const method of ["PUT", "PATCH", "HEAD", "OPTIONS"]) {
      const response = await handler.fetch(new Request(ENDPOINT, { method }));
      expect([response.status, response.headers.get("allow")]).toEqual([405, "GET, POST, DELETE"]);
    }
    const headers = { "mcp-protocol-version": "2026-07-28" };
    const got = await handler.fetch(new Request(ENDPOINT, { headers }));
    expect([got.status, got.headers.get("allow")]).toEqual([405, "POST"]);
  });

  it("Mcp: gives pages of known origins what they need to read the answer", async () => {
    const { handler } = start({ origins: ["https://app.example"] });
    const origin = { origin: "https://app.example" };
    const preflight = await handler.fetch(new Request(ENDPOINT, { method: "OPTIONS", headers: origin }));
    expect(preflight.status).toBe(204);
    const answer = await handler.fetch(post(INITIALIZE, origin));
    expect(answer.headers.get("access-control-allow-origin")).toBe("https://app.example");
    expect(answer.headers.get("access-control-expose-headers")).toContain("mcp-session-id");
    expect(answer.headers.get("mcp-session-id")).toMatch(/^[0-9a-f-]{36}$/);
    const other = await handler.fetch(post(INITIALIZE, { origin: "https://other.example" }));
    expect(other.status).toBe(403);
  });

  it("Mcp: refuses limits that are none", () => {
    for (const bad of [
      { bodyBytes: 0 },
      { sessions: 1.5 },
      { sessionIdleMs: -1 },
      { streamBytes: Number.NaN },
    ]) {
      expect(() => start({ limits: bad })).toThrow(TypeError);
    }
    expect(() => start({ auth: { bearer: {} as never }, authenticate: () => undefined })).toThrow(TypeError);
  });
});

describe("createMcpHandler, for 2026-07-28", () => {
  it("RE-30 answers a call in one exchange", async () => {
    const { handler } = start();
    const response = await handler.fetch(modern("tools/call", { name: "echo", arguments: { text: "a" } }));
    expect(response.headers.get("content-type")).toContain("application/json");
    expect(await response.json()).toMatchObject({ id: 7, result: { content: [{ text: "a" }] } });
  });

  it("Mcp: refuses headers that disagree with the body, or are missing", async () => {
    const { handler } = start();
    const params = { name: "slow", arguments: {} };
    const wrong: HeaderFields[] = [
      { "mcp-method": "tools/list" },
      { "mcp-name": "other" },
      { "mcp-protocol-version": "2025-11-25" },
      { "mcp-method": "" },
    ];
    for (const headers of wrong) {
      const { status, code, id } = await errorOf(await handler.fetch(modern("tools/call", params, headers)));
      expect([headers, status, code, id]).toEqual([headers, 400, -32_020, 7]);
    }
    for (const name of ["mcp-method", "mcp-name", "mcp-protocol-version"]) {
      const request = modern("tools/call", params);
      request.headers.delete(name);
      expect(await errorOf(await handler.fetch(request))).toMatchObject({ status: 400, code: -32_020 });
    }
    const bare = post(INITIALIZE, { "mcp-protocol-version": "2026-07-28" });
    expect(await errorOf(await handler.fetch(bare))).toMatchObject({ status: 400, code: -32_020 });
  });

  it("Mcp: ends a call whose client has left", async () => {
    const { handler, small } = start();
    const leaving = new AbortController();
    const asked = modern("tools/call", { name: "slow", arguments: { ms: 20_000 } });
    const answer = handler.fetch(new Request(asked, { signal: leaving.signal }));
    await until(() => small.running === 1);
    leaving.abort();
    await until(() => small.aborted === 1);
    await answer.catch(() => {});
  });

  it("Mcp: holds as many streams of changes as allowed, and ends them first when it closes", async () => {
    const { handler, small } = start({ limits: { subscriptions: 1 } });
    const listen = () => modern("subscriptions/listen", { notifications: { toolsListChanged: true } });
    const first = await handler.fetch(listen());
    const second = await handler.fetch(listen());
    expect(await second.json()).toMatchObject({ error: { code: -32_603 } });
    const reader = (first.body as ReadableStream<Uint8Array>).getReader();
    const read = async () => new TextDecoder().decode((await reader.read()).value);
    let text = await read();
    expect(text).toContain("notifications/subscriptions/acknowledged");
    small.change();
    text = await read();
    expect(text).toContain("notifications/tools/list_changed");
    await handler.close();
    text = await read();
    expect(text).toContain('"resultType":"complete"');
  });

  it("Mcp: gives up a listener that does not read", async () => {
    const { handler, small } = start({ limits: { streamBytes: 1_000 } });
    const params = { notifications: { toolsListChanged: true } };
    const response = await handler.fetch(modern("subscriptions/listen", params));
    for (let i = 0; i < 12; i++) {
      small.change();
      // Changes of a moment are told as one.
      await new Promise((resolve) => setTimeout(resolve, 60));
    }
    await expect(response.text()).rejects.toThrow();
  });

  it("Mcp: tells clients nothing about a fault of its own", async () => {
    const warnings: unknown[] = [];
    const onWarning = (_: string, cause: unknown) => void warnings.push(cause);
    const registry = new OperationRegistry([]);
    const broken = Object.assign(Object.create(registry) as OperationRegistry, {
      onChange: () => () => {},
      list: () => {
        throw new Error("secret");
      },
    });
    const handler = createMcpHandler(toMcpServer(broken, { onWarning }), { onWarning });
    open.push(handler);
    const response = await handler.fetch(modern("tools/list"));
    const text = await response.text();
    expect(JSON.parse(text)).toMatchObject({ error: { code: -32_603, message: "Internal error" } });
    expect(text).not.toContain("secret");
    const failing = createMcpHandler(createSmallMcpServer(), {
      onWarning,
      authenticate: () => {
        throw new Error("secret");
      },
    });
    open.push(failing);
    const refused = await failing.fetch(modern("tools/list"));
    expect(refused.status).toBe(500);
    expect(await refused.text()).not.toContain("secret");
    expect(warnings).toHaveLength(2);
  });
});

describe("createMcpHandler, by whom", () => {
  const told = async (response: Response) => {
    const text = await response.text();
    const json = text.startsWith("{") ? text : (/^data: (.*)$/m.exec(text)?.[1] ?? "");
    const { result } = JSON.parse(json) as { result: { content: { text: string }[] } };
    return JSON.parse(result.content[0]?.text ?? "") as Record<string, unknown>;
  };

  it("X-4 tells handlers who asks and never what proved it", async () => {
    const secrets = {
      authorization: "Bearer secret-1",
      cookie: "secret-2",
      "proxy-authorization": "secret-3",
    };
    const identity = { subject: "ann", scopes: ["read"] };
    const { handler } = start({ authenticate: () => identity });
    const session = { "mcp-session-id": await initialize(handler, secrets), ...secrets };
    const answers = [
      await told(await handler.fetch(modern("tools/call", { name: "whoami" }, secrets))),
      await told(await handler.fetch(post(call(2, "whoami"), session))),
    ];
    for (const answer of answers) {
      expect(answer["identity"]).toMatchObject(identity);
      expect(JSON.stringify(answer)).not.toContain("secret");
    }
  });

  it("X-4 lets a renewed token with other rights count for the request that carries it", async () => {
    const { handler } = start({
      authenticate: (request) => ({ subject: "ann", scopes: [request.headers.get("x-scope") ?? "none"] }),
    });
    const session = { "mcp-session-id": await initialize(handler, { "x-scope": "all" }) };
    const answer = await told(await handler.fetch(post(call(2, "whoami"), { ...session, "x-scope": "few" })));
    expect(answer["identity"]).toMatchObject({ scopes: ["few"] });
  });

  it("Mcp: believes its host about who asks", async () => {
    const { handler } = start({
      authenticate: () => {
        throw new Error("not asked");
      },
    });
    const request = modern("tools/call", { name: "whoami" });
    const answer = await told(await handler.fetch(request, { identity: { subject: "host" } }));
    expect(answer["identity"]).toMatchObject({ subject: "host" });
  });

  it("Mcp: refuses with the status of the error that was thrown", async () => {
    for (const [code, status] of [
      ["UNAUTHENTICATED", 401],
      ["ACCESS_DENIED", 403],
      ["UNAVAILABLE", 503],
    ] as const) {
      const authenticate = () => {
        throw new CallError(code, "No.");
      };
      const { handler } = start({ authenticate });
      const response = await handler.fetch(modern("tools/list"));
      expect(response.status).toBe(status);
      expect(response.headers.has("www-authenticate")).toBe(status === 401);
    }
  });

  it("Mcp: refuses everything once it closes", async () => {
    const { handler } = start();
    await handler.close();
    const response = await handler.fetch(modern("tools/list"));
    expect([response.status, response.headers.get("connection")]).toEqual([503, "close"]);
  });
});
