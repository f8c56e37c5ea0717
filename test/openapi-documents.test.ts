import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { compileSchema } from "../src/core/schema/compile-schema.ts";
import type { JsonSchema } from "../src/core/schema/json-schema.ts";
import { type ReadApiOptions, readApi } from "../src/openapi/client/document/read-api.ts";
import type { DescribedApi, OperationPlan } from "../src/openapi/client/plan.ts";

const files = new URL("./openapi-files/", import.meta.url);
const read = (document: string | URL | object, options: Partial<ReadApiOptions> = {}) =>
  readApi(document, { overlays: [], limits: {}, ...options });

function planOf(api: DescribedApi, name: string): OperationPlan {
  const found = api.operations.find((operation) => operation.name === name);
  if (found === undefined) throw new Error(`no ${name} in ${api.operations.map((one) => one.name).join()}`);
  return found.plan();
}

/** One GET operation with whatever else a document has. */
function minimal(operation: object, rest: object = {}): object {
  return {
    openapi: "3.1.0",
    info: { title: "T", version: "1.0.0" },
    paths: { "/x": { get: operation } },
    ...rest,
  };
}

const answering = (schema: unknown) => ({
  responses: { 200: { description: "", content: { "application/json": { schema } } } },
});

async function planMinimal(schema: unknown, rest: object = {}): Promise<OperationPlan> {
  return planOf(await read(minimal(answering(schema), rest)), "get/x");
}

function answer(plan: OperationPlan): JsonSchema {
  const schema = plan.responses[0]?.content[0]?.schema ?? true;
  return typeof schema === "boolean" ? schema : { ...schema, $defs: plan.definitions };
}

const accepts = (plan: OperationPlan, value: unknown) => compileSchema(answer(plan)).check(value);

function compileAll(plan: OperationPlan): number {
  const schemas = [
    ...plan.parameters.map(({ schema }) => schema),
    ...(plan.body?.content ?? []).map(({ schema }) => schema ?? true),
    ...plan.responses.flatMap(({ content, headers }) => [
      ...content.map(({ schema }) => schema ?? true),
      ...Object.values(headers),
    ]),
  ];
  for (const schema of schemas) {
    compileSchema(typeof schema === "boolean" ? schema : { ...schema, $defs: plan.definitions });
  }
  return schemas.length;
}

describe("documents of every version", () => {
  it("RE-25 reads Swagger 2.0, what its upgrade gets wrong included", async () => {
    const api = await read(new URL("swagger.json", files));
    expect(api).toMatchObject({ title: "Old", version: "2.0.0", unusable: [] });
    expect(api.schemes).toMatchObject({
      app: { type: "oauth2", flows: { clientCredentials: { tokenUrl: "https://old.example/token" } } },
      login: { type: "http", scheme: "basic" },
    });
    const list = planOf(api, "listPets");
    expect(list.servers.map(({ url }) => url)).toEqual(["https://old.example/api", "http://old.example/api"]);
    expect(list.parameters).toMatchObject([
      { key: "tags", style: "form", explode: false },
      { key: "ids", style: "form", explode: true },
      { key: "words", style: "pipeDelimited", explode: false },
    ]);
    expect(
      list.responses.map(({ status, content }) => [status, content.map(({ mediaType }) => mediaType)]),
    ).toEqual([
      ["200", ["application/json", "application/xml"]],
      ["410", ["application/json", "application/xml"]],
    ]);
    expect(list.responses[0]?.content[1]?.schema).toMatchObject({ type: "string" });
    expect(list.security).toEqual([{ key: [] }]);
    const create = planOf(api, "createPet");
    expect(create.responses[0]?.content).toHaveLength(1);
    expect(create.body).toMatchObject({ key: "body", required: true });
  });

  it("RE-25 asks for read-only properties only where they travel", async () => {
    const plan = planOf(await read(new URL("swagger.json", files)), "createPet");
    const sent = compileSchema({ ...(plan.body?.content[0]?.schema as object), $defs: plan.definitions });
    const got = compileSchema(answer(plan));
    const pet = { name: null, secret: "s", parent: { name: "b", secret: "t" } };
    expect(sent.check(pet)).toBe(true);
    expect(got.check(pet)).toBe(false);
    expect(got.check({ ...pet, id: 1, parent: { ...pet.parent, id: 2 } })).toBe(true);
    expect(sent.check({ ...pet, weight: 0 })).toBe(false);
    expect(sent.check({ name: "a" })).toBe(false);
  });

  it("RE-25 RE-26 reads forms, files and bytes of Swagger 2.0", async () => {
    const api = await read(new URL("swagger.json", files));
    const [upload] = api.operations.filter(({ path, method }) => path.endsWith("photo") && method === "POST");
    const body = upload?.plan().body;
    expect(body).toMatchObject({ required: true, content: [{ mediaType: "multipart/form-data" }] });
    expect(body?.content[0]?.schema).toMatchObject({
      required: ["file"],
      properties: { file: { contentMediaType: "application/octet-stream" }, note: { type: "string" } },
    });
    expect(upload?.plan().security).toEqual([{ app: ["read"] }, {}]);
    const labels = planOf(api, "put/pets/by-id/photo").body;
    expect(labels?.content).toMatchObject([
      {
        mediaType: "application/x-www-form-urlencoded",
        encoding: { labels: { style: "form", explode: false } },
      },
    ]);
    const picture = planOf(api, "get/pets/by-id/photo");
    expect(accepts(picture, new Uint8Array([1]))).toBe(true);
  });

  it("RE-25 reads several files of YAML and JSON, circles between them included", async () => {
    const api = await read(new URL("shop/openapi.yaml", files));
    expect(api).toMatchObject({ title: "Shop", version: "1.2.0", unusable: [] });
    expect(api.operations.map(({ name }) => name)).toEqual(["listPets", "getPet"]);
    const plan = planOf(api, "getPet");
    expect(plan.notes).toEqual([]);
    expect(plan.parameters).toMatchObject([{ key: "petId", in: "path", required: true }]);
    expect(plan.servers).toMatchObject([{ variables: { region: { default: "eu", enum: ["eu", "us"] } } }]);
    expect(accepts(plan, { name: "a", parent: { name: "b", owner: { pets: [] } } })).toBe(true);
    expect(accepts(plan, { name: "a", owner: { pets: [{ name: "" }] } })).toBe(false);
    expect(plan.responses.map(({ status }) => status)).toEqual(["200", "default"]);
  });

  it("RE-25 reads 3.0: nullable, exclusive bounds, binary and byte", async () => {
    const schemas = {
      Color: { type: "string", enum: ["red"], nullable: true },
      Part: { type: "object", properties: { a: { type: "string" } } },
    };
    const properties = {
      color: { $ref: "#/components/schemas/Color" },
      part: { $ref: "#/components/schemas/Part", nullable: true },
      all: { type: "object", nullable: true, allOf: [{ $ref: "#/components/schemas/Part" }] },
      any: { nullable: true, oneOf: [{ type: "string" }, { type: "number" }] },
      low: { type: "number", minimum: 1, exclusiveMinimum: true },
      data: { type: "string", format: "byte" },
      raw: { type: "string", format: "binary" },
    };
    const plan = await planMinimal(
      { type: "object", properties },
      { openapi: "3.0.3", components: { schemas } },
    );
    expect(accepts(plan, { color: null, part: null, all: null, any: null, data: "aGk=", raw: "x" })).toBe(
      true,
    );
    for (const bad of [{ color: "blue" }, { part: 1 }, { all: 1 }, { any: true }, { low: 1 }, { data: 1 }]) {
      expect([bad, accepts(plan, bad)]).toEqual([bad, false]);
    }
  });

  it("RE-25 reads 3.2: QUERY, further methods, the whole query, items of streams", async () => {
    const content = {
      "text/event-stream": { itemSchema: { type: "object", properties: { a: { type: "integer" } } } },
    };
    const api = await read({
      openapi: "3.2.0",
      paths: {
        "/x": {
          query: { responses: { 200: { description: "", content } } },
          additionalOperations: { COPY: { operationId: "copyIt" }, GET: {}, "B AD": {} },
        },
        "/y": {
          get: {
            operationId: "search",
            parameters: [
              {
                name: "q",
                in: "querystring",
                content: { "application/json": { schema: { type: "object" } } },
              },
            ],
          },
        },
      },
      webhooks: { ping: { post: { operationId: "ping" } } },
    });
    expect(api.operations.map(({ name, type }) => [name, type])).toEqual([
      ["query/x", "subscription"],
      ["copyIt", "mutation"],
      ["search", "query"],
    ]);
    expect(api.unusable).toEqual([{ name: "B AD /x", reason: "Its method is no HTTP method." }]);
    expect(planOf(api, "query/x").responses[0]?.content[0]?.itemSchema).toMatchObject({ type: "object" });
    expect(planOf(api, "search").parameters).toMatchObject([
      { in: "querystring", contentType: "application/json" },
    ]);
  });

  it("RE-25 says what a document is that is none", async () => {
    await expect(read({ asyncapi: "3.0.0" })).rejects.toThrow("this is an AsyncAPI document");
    await expect(read({ info: { _postman_id: "1" }, item: [] })).rejects.toThrow(
      "this is a Postman collection",
    );
    await expect(read({ openapi: "4.0.0" })).rejects.toThrow('of version "4.0.0"');
    await expect(read({})).rejects.toThrow('neither "openapi" nor "swagger"');
    await expect(read('{"openapi":"3.1.0"}')).rejects.toThrow("given as text");
    await expect(read("https://a.example/x.json")).rejects.toThrow("nothing here fetches URLs");
    await expect(read("ftp://a.example/x")).rejects.toThrow('not from "ftp:"');
    await expect(read("/nowhere/x.json")).rejects.toThrow("/nowhere/x.json does not exist.");
  });
});

describe("parameters", () => {
  it("RE-25 tells parameters of one name apart, from the body and from each other", async () => {
    const parameter = (place: string, name: string) => ({
      name,
      in: place,
      required: true,
      schema: { type: "string" },
    });
    const names = [
      ...["id", "query_id", "body", "__proto__", "only"].map((name) => parameter("query", name)),
      ...["id", "Accept", "authorization"].map((name) => parameter("header", name)),
    ];
    const api = await read({
      openapi: "3.1.0",
      paths: {
        "/{id}/{left}": {
          parameters: [
            parameter("path", "id"),
            parameter("path", "gone"),
            { ...parameter("query", "only"), required: false },
          ],
          post: {
            operationId: "o",
            parameters: names,
            requestBody: { content: { "text/plain": {}, "application/json": {} } },
          },
        },
      },
    });
    const plan = planOf(api, "o");
    expect(plan.parameters.map(({ key, in: place, name }) => `${key} ${place} ${name}`)).toEqual([
      "path_id path id",
      "only query only",
      "query_query_id query id",
      "query_id query query_id",
      "query_body query body",
      "query___proto__ query __proto__",
      "header_id header id",
      "left path left",
    ]);
    expect(plan.parameters[1]?.required).toBe(true);
    expect(plan.body?.content.map(({ mediaType }) => mediaType)).toEqual(["application/json", "text/plain"]);
    expect(plan.notes).toEqual([
      expect.stringContaining('"gone" is not in the path'),
      expect.stringContaining("The path has {left}, which is not declared"),
    ]);
  });
});

describe("what else a document says", () => {
  it("RE-25 keeps servers of the operation over those of its path and its document", async () => {
    const server = (url: string) => [{ url }];
    const api = await read({
      openapi: "3.1.0",
      servers: server("https://root.example"),
      paths: {
        "/a": {
          servers: server("../path"),
          get: { servers: server("https://own.example") },
          put: { servers: [] },
        },
        "/b": { get: {} },
      },
    });
    expect(api.operations.map((operation) => operation.plan().servers[0]?.url)).toEqual([
      ...["https://own.example", "../path", "https://root.example"],
    ]);
    expect((await planMinimal(true)).servers).toMatchObject([{ url: "/" }]);
  });

  it("RE-25 keeps security: none, the document's, and what is not declared", async () => {
    const rest = {
      security: [{ key: [] }],
      components: {
        securitySchemes: {
          key: { $ref: "#/components/securitySchemes/k" },
          k: { type: "apiKey", in: "query", name: "k" },
        },
      },
    };
    const planFor = async (operation: object) => planOf(await read(minimal(operation, rest)), "get/x");
    expect((await planFor({})).schemes).toEqual({ key: { type: "apiKey", in: "query", name: "k" } });
    expect((await planFor({ security: [] })).security).toEqual([]);
    const unknown = await planFor({ security: [{ other: ["a"] }] });
    expect(unknown).toMatchObject({ security: [{ other: ["a"] }], schemes: { other: { type: "unknown" } } });
    expect(unknown.notes).toEqual(['The security scheme "other" is not declared.']);
  });

  it("RE-25 makes streams of operations that only answer with streams, unless an overlay says otherwise", async () => {
    const document = (types: readonly string[]) =>
      minimal({
        operationId: "o",
        responses: { 200: { content: Object.fromEntries(types.map((type) => [type, {}])) } },
      });
    const typeOf = async (types: readonly string[], overlay = {}) =>
      (await read(document(types), { overlays: [{ operations: { o: overlay } }] })).operations[0]?.type;
    expect(await typeOf(["text/event-stream; charset=utf-8", "application/x-ndjson"])).toBe("subscription");
    expect(await typeOf(["text/event-stream", "application/json"])).toBe("query");
    expect(await typeOf(["text/event-stream", "application/json"], { stream: true })).toBe("subscription");
    expect(await typeOf(["text/event-stream"], { stream: false, readOnly: false })).toBe("mutation");
  });

  it("RE-25 passes on what Waybill wrote, as a copy", async () => {
    const written = { id: "a.b", inputSchema: { type: "object" } };
    const [operation] = (await read(minimal({ "x-waybill": written }))).operations;
    expect(operation?.waybill).toEqual(written);
    expect(operation?.waybill).not.toBe(written);
    expect(operation?.plan().waybill).toEqual(written);
    expect((await read(minimal({ "x-waybill": "no" }))).operations[0]?.waybill).toBeUndefined();
  });

  it("RE-25 reads a plan once, and keeps the discriminator as it is", async () => {
    const schema = {
      oneOf: [{ type: "string" }],
      discriminator: { propertyName: "kind", mapping: { a: "#/x" } },
    };
    const [operation] = (await read(minimal(answering(schema)))).operations;
    expect(operation?.plan()).toBe(operation?.plan());
    expect(operation?.plan().responses[0]?.content[0]?.schema).toEqual(schema);
  });

  it("RE-25 does not ask for write-only properties in what comes back, behind references too", async () => {
    const schemas = {
      Secret: { type: "string", writeOnly: true },
      User: {
        type: "object",
        required: ["name", "secret"],
        properties: { name: { type: "string" }, secret: { $ref: "#/components/schemas/Secret" } },
      },
    };
    const plan = await planMinimal(
      { type: "array", items: { $ref: "#/components/schemas/User" } },
      { components: { schemas } },
    );
    expect(accepts(plan, [{ name: "a" }])).toBe(true);
    expect(accepts(plan, [{ secret: "a" }])).toBe(false);
    expect(Object.keys(plan.definitions).sort()).toEqual(["Secret", "User.output"]);
  });
});

describe("overlays", () => {
  const document = minimal({ operationId: "getX", summary: "Old" });

  it("RE-25 renames, hides, patches, and changes what an operation is", async () => {
    const before = JSON.stringify(document);
    const api = await read(document, {
      overlays: [
        {
          document: {
            servers: [{ url: "https://new.example" }],
            paths: { "/y": { post: { operationId: "postY" } } },
          },
        },
        {
          operations: {
            getX: { name: "fetch", patch: { summary: null, deprecated: true } },
            "post /y": { readOnly: true },
          },
        },
      ],
    });
    expect(api.operations).toMatchObject([
      { name: "fetch", operationId: "getX", description: "GET /x", deprecated: true },
      { name: "postY", type: "query" },
    ]);
    expect(planOf(api, "fetch").servers[0]?.url).toBe("https://new.example");
    expect(JSON.stringify(document)).toBe(before);
    expect(
      (await read(document, { overlays: [{ operations: { getX: { hide: true } } }] })).operations,
    ).toEqual([]);
  });

  it("RE-25 refuses an overlay that names nothing, or gives a name twice", async () => {
    await expect(read(document, { overlays: [{ operations: { getXx: {} } }] })).rejects.toThrow(
      'The overlay names "getXx", which is no operation of the document. Near it: "getX"',
    );
    const two = {
      openapi: "3.1.0",
      paths: { "/a": { get: { operationId: "a" }, put: { operationId: "b" } } },
    };
    await expect(read(two, { overlays: [{ operations: { a: { name: "b" } } }] })).rejects.toThrow(
      'Two operations are named "b": GET /a and PUT /a',
    );
  });
});

describe("wrong and hostile documents", () => {
  it("RE-25 mends schemas that are wrong, and says so", async () => {
    const plan = await planMinimal({
      type: "object",
      required: true,
      properties: {
        a: { type: "float", minimum: "1" },
        b: { type: "string", pattern: "(", enum: "x" },
        c: { type: "whatever" },
        d: { type: "array", items: 5 },
        e: { $ref: "#/components/schemas/Missing" },
        f: { allOf: [], type: ["int", "null"] },
        g: 7,
      },
      additionalProperties: "yes",
    });
    expect(accepts(plan, { a: 0.5, b: "x", c: [], d: [1], e: 1, f: null, g: 1 })).toBe(true);
    expect(accepts(plan, { a: "1" })).toBe(false);
    expect(plan.notes.length).toBeGreaterThanOrEqual(9);
    expect(plan.notes.join()).toContain('"#/components/schemas/Missing" leads nowhere');
  });

  it("RE-25 takes references in circles, of everything that can refer", async () => {
    const api = await read({
      openapi: "3.0.0",
      paths: {
        "/a": { $ref: "#/paths/~1b" },
        "/b": { $ref: "#/paths/~1a" },
        "/c": {
          get: {
            operationId: "c",
            parameters: [{ $ref: "#/components/parameters/P" }],
            requestBody: { $ref: "#/components/requestBodies/B" },
            responses: {
              200: { $ref: "#/components/responses/R" },
              201: answering({ $ref: "#/components/schemas/S" }).responses[200],
            },
          },
        },
      },
      components: {
        parameters: { P: { $ref: "#/components/parameters/P" } },
        requestBodies: { B: { $ref: "#/components/requestBodies/B/x" } },
        responses: { R: { $ref: "#/components/responses/R" } },
        schemas: {
          S: { allOf: [{ $ref: "#/components/schemas/T" }] },
          T: { anyOf: [{ $ref: "#/components/schemas/S" }] },
        },
      },
    });
    expect(api.unusable.map(({ name }) => name)).toEqual(["/a", "/b"]);
    const plan = planOf(api, "c");
    expect(plan.parameters).toEqual([]);
    expect(plan.notes.join(" ")).toContain("leads in circles");
    expect(plan.notes.join(" ")).toContain("refers to itself without saying anything");
    expect(compileAll(plan)).toBe(1);
  });

  it("RE-25 takes objects that contain themselves", async () => {
    const node: Record<string, unknown> = {
      type: "object",
      required: ["n"],
      properties: { n: { type: "integer" } },
    };
    (node["properties"] as Record<string, unknown>)["next"] = node;
    const plan = await planMinimal(node);
    expect(accepts(plan, { n: 1, next: { n: 2, next: { n: 3 } } })).toBe(true);
    expect(accepts(plan, { n: 1, next: { n: 2, next: {} } })).toBe(false);
  });

  it.each(["2.0", "3.0.3", "3.1.0"])(
    "RE-25 keeps names such as __proto__ of a document of %s as names",
    async (version) => {
      const schema = JSON.parse(
        '{"type":"object","required":["__proto__"],"properties":{"__proto__":{"type":"integer"},"constructor":{"type":"string"}},"example":{"__proto__":1}}',
      );
      const start = version === "2.0" ? { swagger: version } : { openapi: version };
      const name = version === "2.0" ? "definitions" : "schemas";
      const schemas = JSON.parse(`{"__proto__":${JSON.stringify(schema)}}`);
      const content = {
        schema: { $ref: version === "2.0" ? "#/definitions/__proto__" : "#/components/schemas/__proto__" },
      };
      const plan = planOf(
        await read({
          ...start,
          paths: {
            "/x": {
              get: {
                responses: {
                  200: version === "2.0" ? content : { content: { "application/json": content } },
                },
              },
            },
          },
          ...(version === "2.0" ? { [name]: schemas } : { components: { [name]: schemas } }),
        }),
        "get/x",
      );
      expect(accepts(plan, JSON.parse('{"__proto__":1,"constructor":"a"}'))).toBe(true);
      expect(accepts(plan, JSON.parse('{"__proto__":"a"}'))).toBe(false);
      expect(accepts(plan, {})).toBe(false);
      expect(({} as Record<string, unknown>)["type"]).toBeUndefined();
    },
  );

  it("RE-25 takes any depth, long chains, and huge lists", async () => {
    let deep: Record<string, unknown> = { type: "string" };
    for (let i = 0; i < 100_000; i++) deep = i % 2 === 0 ? { properties: { a: deep } } : { allOf: [deep] };
    const schemas: Record<string, unknown> = {
      Deep: deep,
      Many: { enum: Array.from({ length: 15_000 }, (_, i) => `v${i}`) },
    };
    for (let i = 0; i < 5_000; i++) schemas[`C${i}`] = { $ref: `#/components/schemas/C${i + 1}` };
    schemas["C5000"] = { type: "integer" };
    for (let i = 0; i < 40; i++) {
      const next = { $ref: `#/components/schemas/W${i + 1}` };
      schemas[`W${i}`] = { anyOf: [next, next, { allOf: [next] }] };
    }
    schemas["W40"] = { type: "integer" };
    const refs = ["Deep", "Many", "C0", "W0"].map((name) => ({ $ref: `#/components/schemas/${name}` }));
    for (const openapi of ["3.0.0", "3.1.0"]) {
      const start = performance.now();
      const plan = await planMinimal(
        { type: "array", prefixItems: refs, anyOf: refs.map((items) => ({ items })) },
        { openapi, components: { schemas } },
      );
      compileAll(plan);
      expect(performance.now() - start).toBeLessThan(20_000);
      expect(plan.notes.join(" ")).toContain("too deep");
    }
  });

  it("RE-25 counts operations and bytes against their limits", async () => {
    const document = { openapi: "3.1.0", paths: { "/a": { get: {}, put: {} } } };
    expect((await read(document, { limits: { operations: 2 } })).operations).toHaveLength(2);
    await expect(read(document, { limits: { operations: 1 } })).rejects.toThrow(
      "more than 1 operations (limits.operations)",
    );
    const text = JSON.stringify(document);
    const fetchText = async () => text;
    const url = "https://a.example/x.json";
    expect((await read(url, { fetchText, limits: { documentBytes: text.length } })).operations).toHaveLength(
      2,
    );
    await expect(read(url, { fetchText, limits: { documentBytes: text.length - 1 } })).rejects.toThrow(
      "limits.documentBytes",
    );
  });

  it("RE-25 leaves out what is no operation, and keeps the rest", async () => {
    const api = await read({
      openapi: "3.1.0",
      paths: { "/a": 5, "/b": { get: null, put: {} }, "x-c": {}, d: { get: {} } },
    });
    expect(api.operations.map(({ name }) => name)).toEqual(["put/b"]);
    expect(api.unusable.map(({ name }) => name)).toEqual(["/a", "GET /b", "GET d"]);
    expect((await read({ openapi: "3.1.0" })).operations).toEqual([]);
  });
});

describe("what a document may reach", () => {
  let directory = "";
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "documents-"));
    await mkdir(join(directory, "api"));
    await writeFile(join(directory, "secret.json"), '{"Secret":{"const":"secret"}}');
    await writeFile(join(directory, "api", "near.json"), '{"Near":{"const":"near"}}');
    await symlink(join(directory, "secret.json"), join(directory, "api", "link.json"));
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  const referring = (references: readonly string[]) =>
    JSON.stringify(minimal(answering({ anyOf: references.map(($ref) => ({ $ref })) })));

  it("RE-25 never reads a file outside the directory of the document", async () => {
    const outside = [
      "../secret.json#/Secret",
      "link.json#/Secret",
      "/etc/passwd",
      "file:///etc/passwd",
      "%2e%2e/secret.json#/Secret",
    ];
    const root = join(directory, "api", "openapi.json");
    await writeFile(
      root,
      referring([...outside, "http://127.0.0.1:9/x.json", "./near.json#/Near", "missing.json", "/dev/zero"]),
    );
    const asked: string[] = [];
    const warnings: string[] = [];
    const plan = planOf(
      await read(root, {
        fetchText: async (url) => {
          asked.push(url.href);
          return "{}";
        },
        warn: (message) => warnings.push(message),
      }),
      "get/x",
    );
    expect(asked).toEqual([]);
    expect(plan.notes.filter((note) => note.includes("leads nowhere"))).toHaveLength(8);
    expect(warnings.join("\n")).toContain("outside the directory of the document");
    expect(JSON.stringify(plan.definitions)).toContain("near");
    expect(JSON.stringify(plan)).not.toContain('"const":"secret"');
  });

  it("RE-25 only fetches from the origin of the document, and never reads files for it", async () => {
    const asked: string[] = [];
    const texts: Record<string, string> = {
      "https://a.example/v1/openapi.json": referring([
        ...["s.yaml#/S", "../t.json", "https://b.example/x.json", "http://a.example/x.json"],
        pathToFileURL(join(directory, "secret.json")).href,
      ]),
      "https://a.example/v1/s.yaml": "S: { $ref: '../t.json' }",
      "https://a.example/t.json": '{"type":"integer"}',
    };
    const fetchText = async (url: URL) => {
      asked.push(url.href);
      return texts[url.href] ?? "";
    };
    const plan = planOf(await read("https://a.example/v1/openapi.json", { fetchText }), "get/x");
    expect(asked.sort()).toEqual(Object.keys(texts).sort());
    expect(plan.notes).toHaveLength(3);
  });

  it("RE-25 counts files against their limit", async () => {
    const root = join(directory, "api", "two.json");
    await writeFile(root, referring(["near.json#/Near"]));
    expect((await read(root, { limits: { files: 2 } })).operations).toHaveLength(1);
    await expect(read(root, { limits: { files: 1 } })).rejects.toThrow("more than 1 files (limits.files)");
  });

  it("RE-25 reads a document that is given as an object without any files", async () => {
    const plan = await planMinimal({ $ref: "near.json#/Near" });
    expect(plan.notes.join()).toContain("no place that other files could be relative to");
    expect(accepts(plan, 1)).toBe(true);
  });
});

describe("references within a document", () => {
  it("RE-25 follows pointers with escapes, anchors, and pointers through references", async () => {
    const schemas = {
      "a/b~c d": { type: "integer" },
      Named: { $anchor: "here", type: "integer" },
      Behind: { $ref: "#/components/schemas/Holder" },
      Holder: { properties: { x: { type: "integer" } } },
    };
    const references = [
      "#/components/schemas/a~1b~0c%20d",
      "#here",
      "#/components/schemas/Behind/properties/x",
      "#/components/schemas/Holder/properties/x",
    ];
    for (const $ref of references) {
      const plan = await planMinimal({ $ref, description: "kept" }, { components: { schemas } });
      expect(plan.notes).toEqual([]);
      expect(answer(plan)).toMatchObject({ description: "kept" });
      expect([$ref, accepts(plan, 1), accepts(plan, "1")]).toEqual([$ref, true, false]);
    }
  });
});

describe("documents that are in use", () => {
  it("RE-25 reads Figma's, every operation and every schema", async () => {
    const api = await read(
      new URL("../node_modules/@figma/rest-api-spec/openapi/openapi.yaml", import.meta.url),
    );
    expect(api.operations.length).toBeGreaterThan(40);
    expect(api.unusable).toEqual([]);
    for (const operation of api.operations) expect(compileAll(operation.plan())).toBeGreaterThan(0);
    expect(api.operations.flatMap((operation) => operation.plan().notes)).toEqual([]);
  });
});
