import { describe, expect, it } from "vitest";
import { compileSchema } from "../src/index.ts";
import { accepts, answer, compileAll, planMinimal, planOf, read } from "./openapi-document-reading.ts";

const files = new URL("./openapi-files/", import.meta.url);

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
    expect(api.unusable.map(({ name }) => name)).toEqual(["GET /x", "B AD /x"]);
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
