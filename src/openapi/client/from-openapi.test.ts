import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { rejection } from "../../../test/make-operation.ts";
import { createClient } from "../../core/client/client.ts";
import type { RegistryChange } from "../../core/registry/executor.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { fromOpenApi, type OpenApiSource } from "./from-openapi.ts";
import type { OpenApiOptions } from "./openapi-options.ts";

const open: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

type Answer = (request: IncomingMessage, response: ServerResponse, body: string) => void;

/** A server that records the requests it got. */
async function serve(answer: Answer): Promise<{ url: string; seen: string[] }> {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      seen.push(`${request.method} ${request.url}${body === "" ? "" : ` ${body}`}`);
      answer(request, response, body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  open.push(() => new Promise((resolve) => server.close(resolve).closeAllConnections()));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

const json = (response: ServerResponse, body: unknown, status = 200) =>
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));

const PETS = {
  openapi: "3.1.0",
  info: { title: "Pets", version: "1.4", description: "All pets." },
  servers: [{ url: "/" }],
  paths: {
    "/pets/{id}": {
      get: {
        operationId: "getPet",
        summary: "One pet",
        tags: ["pets"],
        parameters: [{ name: "id", in: "path", required: true, schema: { type: "integer" } }],
        responses: {
          200: {
            description: "It",
            content: {
              "application/json": {
                schema: { type: "object", required: ["name"], properties: { name: { type: "string" } } },
              },
            },
          },
        },
      },
      delete: {
        operationId: "deletePet",
        deprecated: true,
        parameters: [{ name: "id", in: "path", required: true, schema: { type: "integer" } }],
        responses: { 204: { description: "Gone" } },
      },
    },
    "/pets": {
      post: {
        operationId: "addPet",
        requestBody: { required: true, content: { "application/json": { schema: { type: "object" } } } },
        responses: { 201: { description: "Made", content: { "application/json": {} } } },
      },
    },
  },
};

async function importPets(
  options: Partial<OpenApiOptions> = {},
  document: object = PETS,
): Promise<OpenApiSource> {
  const source = await fromOpenApi(document, { namespace: "pets", ...options });
  open.push(() => source.close());
  return source;
}

function registryOf(source: OpenApiSource): OperationRegistry {
  const registry = new OperationRegistry();
  registry.registerAll(source);
  return registry;
}

describe("fromOpenApi", () => {
  it("RE-25 makes an operation of every operation, with what the document says of it", async () => {
    const source = await importPets();
    expect([source.title, source.version, source.description]).toEqual(["Pets", "1.4.0", "All pets."]);
    expect(source.unusable).toEqual([]);
    expect(
      [...source].map(({ id, type, title, tags, annotations, source: from, _meta }) => ({
        id,
        type,
        title,
        tags,
        annotations,
        from,
        _meta,
      })),
    ).toEqual([
      {
        id: "pets.addPet",
        type: "mutation",
        title: undefined,
        tags: undefined,
        annotations: { readOnly: false, idempotent: false, openWorld: true },
        from: "http",
        _meta: undefined,
      },
      {
        id: "pets.deletePet",
        type: "mutation",
        title: undefined,
        tags: undefined,
        annotations: { readOnly: false, destructive: true, idempotent: true, openWorld: true },
        from: "http",
        _meta: { deprecated: true },
      },
      {
        id: "pets.getPet",
        type: "query",
        title: "One pet",
        tags: ["pets"],
        annotations: { readOnly: true, idempotent: true, openWorld: true },
        from: "http",
        _meta: undefined,
      },
    ]);
  });

  it("RE-25 RE-26 calls them: success is an HTTP envelope, an error status a CallError", async () => {
    const { url, seen } = await serve((request, response) => {
      if (request.method === "DELETE") return response.writeHead(204).end();
      if (request.url === "/pets/404") return json(response, { why: "gone" }, 404);
      return json(response, request.method === "POST" ? { made: true } : { name: "Rex" });
    });
    const registry = registryOf(await importPets({ baseUrl: url }));
    const got = await registry.execute("pets.getPet", { id: 7 });
    expect(got.data).toEqual({ name: "Rex" });
    expect(got.meta).toMatchObject({ source: "http", statusCode: 200, contentType: "application/json" });
    expect((await registry.execute("pets.deletePet", { id: 7 })).data).toBeUndefined();
    expect((await registry.execute("pets.addPet", { body: { name: "Ada" } })).data).toEqual({ made: true });
    expect(await rejection(registry.execute("pets.getPet", { id: 404 }))).toMatchObject({
      code: "NOT_FOUND",
      httpStatus: 404,
      details: { body: { why: "gone" } },
    });
    expect(seen).toEqual(["GET /pets/7", "DELETE /pets/7", 'POST /pets {"name":"Ada"}', "GET /pets/404"]);
  });

  it("RE-25 checks the input against the document before anything is sent", async () => {
    const { url, seen } = await serve((_, response) => json(response, {}));
    const registry = registryOf(await importPets({ baseUrl: url }));
    for (const input of [{}, { id: "seven" }, { id: 1, more: 2 }]) {
      expect(await rejection(registry.execute("pets.getPet", input))).toMatchObject({
        code: "VALIDATION_ERROR",
      });
    }
    expect(seen).toEqual([]);
  });

  it("RE-25 says so when an operation that knows no server is called, and imports it all the same", async () => {
    const registry = registryOf(await importPets());
    expect(await rejection(registry.execute("pets.getPet", { id: 1 }))).toMatchObject({
      code: "NOT_IMPLEMENTED",
      message: expect.stringContaining("baseUrl"),
    });
  });

  it("RE-25 reads a document from a URL, whose own origin then is where relative servers are", async () => {
    const { url, seen } = await serve((request, response) =>
      json(response, request.url === "/spec/pets.json" ? PETS : { name: "Rex" }),
    );
    const source = await fromOpenApi(`${url}/spec/pets.json`, { namespace: "pets" });
    open.push(() => source.close());
    expect((await registryOf(source).execute("pets.getPet", { id: 1 })).data).toEqual({ name: "Rex" });
    expect(seen).toEqual(["GET /spec/pets.json", "GET /pets/1"]);
    expect(
      await rejection(fromOpenApi(`${url}/spec/pets.json?`, { namespace: "p", baseUrl: "ftp://x" })),
    ).toBeInstanceOf(TypeError);
  });

  it("RE-25 names the address of a document that cannot be read", async () => {
    const { url } = await serve((_, response) => json(response, {}, 500));
    const error = await rejection(fromOpenApi(`${url}/pets.json`, { namespace: "pets", retry: false }));
    expect(error).toMatchObject({
      code: "EXECUTION_ERROR",
      message: expect.stringContaining(`${url}/pets.json`),
    });
  });

  it("RE-25 does not reach a private address that only the document names", async () => {
    const { url, seen } = await serve((_, response) => json(response, {}));
    const source = await importPets({}, { ...PETS, servers: [{ url }] });
    expect(await rejection(registryOf(source).execute("pets.getPet", { id: 1 }))).toMatchObject({
      code: "ACCESS_DENIED",
      message: expect.stringContaining("allowPrivate"),
    });
    expect(seen).toEqual([]);
    const { host } = new URL(url);
    const allowed = await importPets({ allowPrivate: [host] }, { ...PETS, servers: [{ url }] });
    await registryOf(allowed).execute("pets.getPet", { id: 1 });
    expect(seen).toEqual(["GET /pets/1"]);
  });

  it("RE-25 sends a query again, and a mutation never, unless an overlay says that it does no harm", async () => {
    let calls = 0;
    const { url, seen } = await serve((_, response) => {
      calls += 1;
      return calls % 2 === 1 ? json(response, {}, 503) : json(response, { name: "Rex" });
    });
    const retry = { delayMs: 1 };
    const registry = registryOf(await importPets({ baseUrl: url, retry }));
    expect((await registry.execute("pets.getPet", { id: 1 })).meta.waybill?.attempts).toBe(2);
    expect(await rejection(registry.execute("pets.addPet", { body: {} }))).toMatchObject({
      code: "UNAVAILABLE",
    });
    expect(seen).toHaveLength(3);
    calls = 0;
    const overlay = { operations: { addPet: { idempotent: true } } };
    const mended = registryOf(await importPets({ baseUrl: url, retry, overlay }));
    await mended.execute("pets.addPet", { body: {} });
    expect(seen).toHaveLength(5);
  });

  it("RE-25 passes the trace context on where it is told to", async () => {
    const headers: unknown[] = [];
    const { url } = await serve((request, response) => {
      headers.push(request.headers["traceparent"]);
      json(response, { name: "Rex" });
    });
    const metadata = { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" };
    for (const trace of [undefined, true]) {
      await registryOf(await importPets({ baseUrl: url, trace })).execute(
        "pets.getPet",
        { id: 1 },
        { metadata },
      );
    }
    expect(headers).toEqual([undefined, metadata.traceparent]);
  });

  it("RE-25 gets new credentials once where those it had are refused", async () => {
    const { url, seen } = await serve((request, response) =>
      request.headers.authorization === "Bearer new"
        ? json(response, { name: "Rex" })
        : json(response, {}, 401),
    );
    const asked: boolean[] = [];
    const bearer = ({ refused }: { refused: boolean }) => {
      asked.push(refused);
      return refused ? "new" : "old";
    };
    const registry = registryOf(await importPets({ baseUrl: url, auth: { bearer } }));
    expect((await registry.execute("pets.getPet", { id: 1 })).data).toEqual({ name: "Rex" });
    expect([asked, seen.length]).toEqual([[false, true], 2]);
    const hopeless = registryOf(await importPets({ baseUrl: url, auth: { bearer: () => "old" } }));
    expect(await rejection(hopeless.execute("pets.getPet", { id: 1 }))).toMatchObject({
      code: "UNAUTHENTICATED",
    });
    expect(seen).toHaveLength(4);
  });

  it("RE-27 follows pages as an overlay names them", async () => {
    const { url } = await serve((request, response) => {
      const at = Number(new URL(request.url ?? "", "http://x").searchParams.get("at") ?? 0);
      json(response, { rows: [at], ...(at < 2 && { more: { at: at + 1 } }) });
    });
    const document = {
      ...PETS,
      paths: {
        "/rows": {
          get: {
            operationId: "rows",
            parameters: [{ name: "at", in: "query", schema: { type: "integer" } }],
            responses: { 200: { description: "Rows", content: { "application/json": {} } } },
          },
        },
      },
    };
    const overlay = {
      operations: { rows: { paging: { style: "cursor", input: "at", next: "/more/at" } } },
    } as const;
    const registry = registryOf(await importPets({ baseUrl: url, overlay }, document));
    const rows: unknown[] = [];
    for await (const page of createClient(registry).pages("pets.rows", {})) rows.push(page);
    expect(rows).toEqual([{ rows: [0], more: { at: 1 } }, { rows: [1], more: { at: 2 } }, { rows: [2] }]);
    const { meta } = await registry.execute("pets.rows", {});
    expect(meta.waybill?.page).toEqual({ next: "1", input: { at: 1 } });
  });

  it("RE-25 mends titles, schemas and names by overlays, later ones winning", async () => {
    const source = await importPets({
      overlay: [
        { operations: { getPet: { name: "get", title: "First" }, "DELETE /pets/{id}": { hide: true } } },
        {
          operations: {
            getPet: {
              title: "Last",
              description: "Mended.",
              input: { properties: { id: { maximum: 9 } } },
              output: { required: ["name", "tag"] },
            },
          },
        },
      ],
    });
    expect([...source].map(({ id }) => id)).toEqual(["pets.addPet", "pets.get"]);
    const get = [...source].find(({ id }) => id === "pets.get");
    expect(get).toMatchObject({
      title: "Last",
      description: "Mended.",
      inputSchema: { properties: { id: { type: "integer", maximum: 9 } } },
      outputSchema: { required: ["name", "tag"] },
    });
  });

  it("RE-25 reads the document again on refresh, and tells registries what changed", async () => {
    let document: object = PETS;
    const { url } = await serve((_, response) => json(response, document));
    const source = await fromOpenApi(url, { namespace: "pets" });
    open.push(() => source.close());
    const registry = registryOf(source);
    const heard: (readonly RegistryChange[])[] = [];
    source.onChange((changes) => heard.push(changes));
    const { "/pets": pets, ...paths } = PETS.paths;
    document = { ...PETS, paths: { ...paths, "/cats": { get: { operationId: "cats", responses: {} } } } };
    await source.refresh();
    expect(registry.operations.map(({ id }) => id)).toEqual(["pets.cats", "pets.deletePet", "pets.getPet"]);
    expect(heard.flat().map(({ type, operation }) => [type, operation.id])).toEqual([
      ["removed", "pets.addPet"],
      ["replaced", "pets.getPet"],
      ["replaced", "pets.deletePet"],
      ["added", "pets.cats"],
    ]);
    expect(pets).toBeDefined();
    document = { not: "a document" };
    expect(await rejection(source.refresh())).toBeInstanceOf(Error);
    expect(registry.size).toBe(3);
    await source.close();
    expect(await rejection(source.refresh())).toBeInstanceOf(TypeError);
  });

  it("RE-25 costs nothing for operations nobody looks at", async () => {
    const read = vi.fn(() => ({ type: "string" }));
    const schema = Object.defineProperty({}, "type", { get: () => read().type, enumerable: true });
    const document = {
      ...PETS,
      components: { schemas: { Watched: schema } },
      paths: {
        ...PETS.paths,
        "/watched": {
          post: {
            operationId: "watched",
            requestBody: {
              content: { "application/json": { schema: { $ref: "#/components/schemas/Watched" } } },
            },
            responses: {},
          },
        },
      },
    };
    const source = await importPets({}, document);
    const before = read.mock.calls.length;
    registryOf(source).list();
    expect(read.mock.calls.length).toBe(before);
    expect([...source].find(({ name }) => name === "watched")?.inputSchema).toMatchObject({
      properties: { body: {} },
    });
    expect(read.mock.calls.length).toBeGreaterThan(before);
  });

  it.each([
    [{}, "namespace"],
    [{ namespace: "a.b" }, "namespace"],
    [{ namespace: "a", baseURL: "x" }, 'did you mean "baseUrl"'],
    [{ namespace: "a", baseUrl: "file:///x" }, "baseUrl"],
    [{ namespace: "a", baseUrl: "http://u:p@x" }, "baseUrl"],
    [{ namespace: "a", server: -1 }, "server"],
    [{ namespace: "a", server: 5 }, "server"],
    [{ namespace: "a", serverVariables: { a: 1 } }, "serverVariables"],
    [{ namespace: "a", serverVariables: { region: "x" } }, "region"],
    [{ namespace: "a", headers: ["x"] }, "headers"],
    [{ namespace: "a", auth: "token" }, "auth"],
    [{ namespace: "a", auth: { nobody: "token" } }, "nobody"],
    [{ namespace: "a", limits: 5 }, "limits"],
    [{ namespace: "a", timeoutMs: -1 }, "timeoutMs"],
    [{ namespace: "a", overlay: "x" }, "overlay"],
    [{ namespace: "a", overlay: { operation: {} } }, 'did you mean "overlay.operations"'],
    [{ namespace: "a", overlay: { operations: { getPet: { hidden: true } } } }, "hide"],
    [{ namespace: "a", overlay: { operations: { getPets: { hide: true } } } }, "getPet"],
    [{ namespace: "a", onWarning: true }, "onWarning"],
  ])("RE-25 refuses options that cannot work, by name: %j", async (options, named) => {
    const error = await rejection(fromOpenApi(PETS, options as unknown as OpenApiOptions));
    expect(error).toBeInstanceOf(TypeError);
    expect((error as Error).message).toContain(named);
  });

  it.each([undefined, null, 5, "", []])("RE-25 refuses what is no document: %j", async (document) => {
    const error = await rejection(fromOpenApi(document as unknown as object, { namespace: "a" }));
    expect(error).toBeInstanceOf(TypeError);
  });
});
