import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { rejection } from "../../../test/make-operation.ts";
import type { CallError } from "../../core/errors/errors.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { fromOpenApi } from "./from-openapi.ts";
import type { OpenApiOptions } from "./openapi-options.ts";

const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

async function serve(answer: Answer): Promise<string> {
  const server = createServer((request, response) => {
    request.resume().on("end", () => answer(request, response));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  open.push(() => new Promise((resolve) => server.close(resolve).closeAllConnections()));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const json = (response: ServerResponse, body: unknown, status = 200, type = "application/json") =>
  response.writeHead(status, { "content-type": type }).end(JSON.stringify(body));

async function importAll(
  document: object | string,
  options: Partial<OpenApiOptions> = {},
): Promise<OperationRegistry> {
  const source = await fromOpenApi(document, {
    namespace: "t",
    allowPrivate: true,
    onWarning() {},
    ...options,
  });
  open.push(() => source.close());
  const registry = new OperationRegistry();
  registry.registerAll(source);
  return registry;
}

const documentOf = (paths: object, more: object = {}) => ({
  openapi: "3.1.0",
  info: { title: "T", version: "1" },
  paths,
  ...more,
});
const get = (operationId: string, more: object = {}) => ({
  get: {
    operationId,
    responses: { 200: { description: "ok", content: { "application/json": {} } } },
    ...more,
  },
});

describe("what goes where", () => {
  it("RE-25 keeps credentials and headers at the API's own origin, unless others are named", async () => {
    const seen: string[] = [];
    const record: (name: string) => Answer = (name) => (request, response) => {
      seen.push(`${name} ${request.headers.authorization ?? "-"} ${request.headers["x-team"] ?? "-"}`);
      json(response, {});
    };
    const [home, away] = [await serve(record("home")), await serve(record("away"))];
    const document = documentOf(
      { "/a": get("a"), "/b": { servers: [{ url: away }], ...get("b") } },
      { servers: [{ url: home }] },
    );
    const options = { auth: { bearer: "SECRET" }, headers: { "x-team": "core" } };
    const registry = await importAll(document, options);
    await registry.execute("t.a", {});
    await registry.execute("t.b", {}).catch(() => undefined);
    expect(seen.filter((line) => line.startsWith("away") && line !== "away - -")).toEqual([]);
    expect(seen[0]).toBe("home Bearer SECRET core");
    seen.length = 0;
    const trusting = await importAll(document, { ...options, authOrigins: [away] });
    await trusting.execute("t.b", {});
    expect(seen).toEqual(["away Bearer SECRET core"]);
  });

  it("RE-25 shows headers and plain credentials to where the document is said to be", async () => {
    const url = await serve((request, response) =>
      request.headers.authorization === "Bearer T"
        ? json(response, documentOf({ "/a": get("a") }))
        : json(response, {}, 401),
    );
    expect((await importAll(`${url}/d.json`, { auth: { bearer: "T" } })).size).toBe(1);
    expect((await importAll(`${url}/d.json`, { headers: { authorization: "Bearer T" } })).size).toBe(1);
    expect(await rejection(importAll(`${url}/d.json`))).toMatchObject({
      code: "UNAUTHENTICATED",
      message: expect.stringContaining("headers"),
    });
  });

  it("RE-25 says so when credentials are given that no operation asks for", async () => {
    const components = { securitySchemes: { k: { type: "apiKey", in: "header", name: "x-key" } } };
    for (const [security, count] of [
      [undefined, 1],
      [[{}], 1],
      [[{ k: [] }], 0],
    ] as const) {
      const warnings: string[] = [];
      const document = documentOf({ "/a": get("a") }, { components, ...(security && { security }) });
      await importAll(document, { auth: { k: "K" }, onWarning: (message) => void warnings.push(message) });
      expect(warnings).toHaveLength(count);
    }
  });

  it("RE-25 keeps the tokens it has when the document is read again", async () => {
    const granted: string[] = [];
    const url = await serve((request, response) => {
      if (request.url !== "/token") return json(response, {});
      granted.push("token");
      return json(response, { access_token: "A", token_type: "Bearer", expires_in: 3_600 });
    });
    const security = {
      components: {
        securitySchemes: {
          t: { type: "oauth2", flows: { clientCredentials: { tokenUrl: `${url}/token`, scopes: {} } } },
        },
      },
      security: [{ t: [] }],
    };
    const source = await fromOpenApi(documentOf({ "/a": get("a") }, { servers: [{ url }], ...security }), {
      namespace: "t",
      allowPrivate: true,
      auth: { t: { clientId: "c", clientSecret: "s" } },
    });
    open.push(() => source.close());
    const registry = new OperationRegistry();
    registry.registerAll(source);
    await registry.execute("t.a", {});
    await source.refresh();
    await registry.execute("t.a", {});
    expect(granted).toEqual(["token"]);
  });

  it("RE-25 never lets an older document follow a newer one", async () => {
    const answers = [0, 80, 0];
    let reads = 0;
    const url = await serve((_, response) => {
      const number = reads++;
      setTimeout(() => json(response, documentOf({ "/a": get(`read${number}`) })), answers[number]);
    });
    const source = await fromOpenApi(url, { namespace: "t" });
    open.push(() => source.close());
    await Promise.all([source.refresh(), source.refresh()]);
    expect([...source].map(({ name }) => name)).toEqual(["read2"]);
  });

  it.each([
    ["", 1],
    ["k-1", 3],
  ])("RE-25 sends a post again with a key that is one: %j", async (key, times) => {
    let calls = 0;
    const url = await serve((_, response) => {
      calls += 1;
      json(response, {}, 503);
    });
    const parameters = [{ name: "Idempotency-Key", in: "header", schema: { type: "string" } }];
    const document = documentOf({ "/a": { post: { operationId: "a", parameters, responses: {} } } });
    const registry = await importAll(document, { baseUrl: url, retry: { delayMs: 1 } });
    await rejection(registry.execute("t.a", { "Idempotency-Key": key }));
    expect(calls).toBe(times);
  });
});

describe("what a document says of itself as Waybill's", () => {
  const lying = (method: string, facts: object, content: object = { "application/json": {} }) =>
    documentOf({
      "/x": {
        [method]: {
          operationId: "x",
          responses: { 200: { description: "ok", content } },
          "x-waybill": { id: "a.x", ...facts },
        },
      },
    });

  it("RE-25 makes no query of what deletes, and no stream of what is none", async () => {
    for (const [method, facts, type] of [
      ["delete", { takes: "body", type: "query", annotations: { readOnly: true } }, "mutation"],
      ["get", { takes: "query", type: "subscription" }, "query"],
      ["get", { takes: "query", type: "mutation" }, "query"],
      ["get", { takes: "body", type: "query" }, "query"],
    ] as const) {
      const registry = await importAll(lying(method, facts));
      expect(registry.get("t.x")).toMatchObject({ type, annotations: { readOnly: type === "query" } });
    }
    const events = await importAll(
      lying("get", { takes: "query", type: "query" }, { "text/event-stream": {} }),
    );
    expect(events.get("t.x")?.type).toBe("subscription");
  });

  it("RE-25 X-5 is not believed where it puts words into our mouth, unless we say that it is ours", async () => {
    const problem = {
      status: 409,
      title: "No",
      detail: "IGNORE ALL",
      code: "CONFLICT",
      waybill: { outcome: "call-error" },
    };
    const url = await serve((_, response) => json(response, problem, 409, "application/problem+json"));
    const document = lying("get", { takes: "query", type: "query" });
    const foreign = await importAll(document, { baseUrl: url });
    const error = await rejection(foreign.execute("t.x", {}));
    expect(error).toMatchObject({ code: "CONFLICT" });
    expect((error as Error).message).not.toContain("IGNORE");
    const ours = await importAll(document, { baseUrl: url, keepIds: true });
    expect(await rejection(ours.execute("a.x", {}))).toMatchObject({
      code: "CONFLICT",
      message: "IGNORE ALL",
    });
  });

  it("RE-25 may be mended by overlays like any other", async () => {
    const overlay = { operations: { x: { readOnly: true, idempotent: true, title: "Mended" } } };
    const registry = await importAll(lying("post", { takes: "body", type: "mutation" }), { overlay });
    expect(registry.get("t.x")).toMatchObject({
      type: "query",
      title: "Mended",
      annotations: { readOnly: true, idempotent: true },
    });
  });
});

describe("what a foreign server says", () => {
  it("X-5 does not count for an outcome of ours where the document does not say that Waybill serves it", async () => {
    for (const told of [
      { code: "CONFLICT", details: { s: "STACK" }, waybill: { outcome: "call-error" } },
      { waybill: { outcome: "tool-error", message: "STACK", data: 1 } },
    ]) {
      const url = await serve((_, response) =>
        json(response, { status: 500, detail: "STACK", ...told }, 500, "application/problem+json"),
      );
      const registry = await importAll(documentOf({ "/a": get("a", { "x-waybill": {} }) }), { baseUrl: url });
      const error = await rejection(registry.execute("t.a", {}));
      expect(error).toMatchObject({ code: "EXECUTION_ERROR", httpStatus: 500 });
      expect((error as Error).message).not.toContain("STACK");
      expect((error as CallError).toJSON().details).toMatchObject({ status: 500, said: "STACK" });
      expect(JSON.stringify(error).split("STACK")).toHaveLength(2);
    }
  });

  it("RE-26 names numbers that cannot be kept, in little room however long the names around them are", async () => {
    const numbers = Array.from({ length: 50 }, () => "12345678901234567").join();
    const url = await serve((_, response) =>
      response
        .writeHead(200, { "content-type": "application/json" })
        .end(`{"${"n".repeat(100_000)}":[${numbers}]}`),
    );
    const registry = await importAll(documentOf({ "/a": get("a") }), { baseUrl: url });
    const { violations = [] } = (await registry.execute("t.a", {})).meta.waybill ?? {};
    expect(violations).toHaveLength(20);
    expect(JSON.stringify(violations).length).toBeLessThan(5_000);
  });

  it("RE-25 refuses YAML that merges a map into itself over and over", async () => {
    const lines = Array.from({ length: 3_000 }, (_, n) => [`  k${n}: 1`, `  m${n}: {<<: *m}`]).flat();
    const folder = mkdtempSync(join(tmpdir(), "waybill-yaml-"));
    open.push(async () => rmSync(folder, { recursive: true }));
    const path = join(folder, "a.yaml");
    writeFileSync(path, `openapi: 3.1.0\ninfo: {title: T, version: "1"}\nx-m: &m\n${lines.join("\n")}\n`);
    const error = await rejection(fromOpenApi(path, { namespace: "t" }));
    expect((error as Error).message).toContain("merged into itself");
  });

  it("X-11 is there for who catches the error, and only its words go further", async () => {
    const body = { message: "It broke.", at: "/srv/app.js" };
    const url = await serve((_, response) => json(response, body, 500));
    const registry = await importAll(documentOf({ "/a": get("a") }), { baseUrl: url });
    const error = (await rejection(registry.execute("t.a", {}))) as { details: unknown; toJSON(): object };
    expect(error.details).toMatchObject({ status: 500, said: "It broke.", body });
    expect(JSON.stringify(error)).not.toContain("/srv/app.js");
  });
});

describe("options", () => {
  it.each([
    [{ limits: { documentbytes: 3 } }, 'did you mean "limits.documentBytes"'],
    [{ limits: { timeoutMs: 3 } }, "limits.timeoutMs"],
    [{ headers: { "x y": "1" } }, "x y"],
    [{ headers: { host: "evil" } }, "host"],
    [{ headers: { a: "1\r\nb: 2" } }, "a"],
    [{ authOrigins: ["evil.example"] }, "authOrigins"],
    [{ overlay: { operations: { a: { hide: "yes" } } } }, "hide"],
    [{ overlay: { operations: { a: { input: [] } } } }, "input"],
    [{ overlay: { operations: { a: { paging: { style: "curser" } } } } }, "paging"],
    [{ overlay: { operations: { a: { paging: true } } } }, "paging"],
  ])("RE-25 that cannot work are refused at import, by name: %j", async (options, named) => {
    const error = await rejection(
      importAll(documentOf({ "/a": get("a") }), options as unknown as Partial<OpenApiOptions>),
    );
    expect(error).toBeInstanceOf(TypeError);
    expect((error as Error).message).toContain(named);
  });
});

describe("trust in private addresses", () => {
  it("RE-25 is for the port that the user named, also where that is the default one", async () => {
    let asked = 0;
    const url = await serve((_, response) => {
      asked += 1;
      json(response, {});
    });
    const document = documentOf({ "/a": get("a") }, { servers: [{ url }] });
    const tokenUrl = "http://127.0.0.1/token";
    const auth = { oauth2: { clientId: "a", clientSecret: "b", tokenUrl } };
    for (const allowPrivate of [undefined, [], ["127.0.0.1"], ["127.0.0.1:80"], ["127.0.0.1:6379"]]) {
      const registry = await importAll(document, { allowPrivate, auth });
      expect(await rejection(registry.execute("t.a", {}))).toMatchObject({
        code: "ACCESS_DENIED",
        message: expect.stringContaining(`${new URL(url).host} is at a private`),
      });
    }
    expect(asked).toBe(0);
    await (await importAll(document, { allowPrivate: [new URL(url).host], auth })).execute("t.a", {});
    expect(asked).toBe(1);
  });

  it("RE-25 does not follow a redirect to another port of a host that the user named", async () => {
    let asked = 0;
    const other = await serve((_, response) => {
      asked += 1;
      json(response, {});
    });
    const url = await serve((_, response) => void response.writeHead(302, { location: `${other}/a` }).end());
    const document = documentOf({ "/a": get("a") });
    const registry = await importAll(document, { allowPrivate: undefined, baseUrl: url });
    expect(await rejection(registry.execute("t.a", {}))).toMatchObject({ code: "ACCESS_DENIED" });
    expect(asked).toBe(0);
  });
});
