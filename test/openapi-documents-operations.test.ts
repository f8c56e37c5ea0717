import { describe, expect, it } from "vitest";
import { accepts, answering, minimal, planMinimal, planOf, read } from "./openapi-document-reading.ts";

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

describe("what is no operation", () => {
  it("RE-25 lists methods that stand where none is looked for, and says what to write", async () => {
    const api = await read({
      openapi: "3.2.0",
      paths: {
        "/a": {
          GET: {},
          Post: {},
          additionalOperations: { POST: {}, delete: {}, CONNECT: {}, LINK: { operationId: "link" } },
        },
      },
    });
    expect(api.operations.map(({ name }) => name)).toEqual(["link"]);
    expect(api.unusable).toEqual([
      { name: "GET /a", reason: expect.stringContaining('write "get"') },
      { name: "Post /a", reason: expect.stringContaining('write "post"') },
      { name: "POST /a", reason: expect.stringContaining('"post" is a field of the path itself') },
      { name: "delete /a", reason: expect.stringContaining("move it there") },
      { name: "CONNECT /a", reason: expect.stringContaining("opens a tunnel") },
    ]);
  });

  it("RE-25 notes on both that an operationId is given twice", async () => {
    const api = await read({
      openapi: "3.1.0",
      paths: { "/a": { get: { operationId: "x" }, put: { operationId: "x" }, post: { operationId: "y" } } },
    });
    const note = 'The operationId "x" is given to GET /a and PUT /a; their names end in a hash.';
    expect(api.operations.map((operation) => operation.plan().notes)).toEqual([[note], [note], []]);
  });
});

describe("paths that keep slashes", () => {
  const declaring = async (path: string, names: readonly string[]) => {
    const parameters = names.map((name) => ({ name, in: "path", schema: { type: "string" } }));
    const api = await read({
      openapi: "3.0.0",
      paths: { [path]: { get: { operationId: "o", parameters } } },
    });
    return planOf(api, "o");
  };

  it("RE-25 finds the parameter of {+name}, whose slashes stay", async () => {
    const plan = await declaring("/v1/{+name}/{id}", ["name", "id"]);
    expect(plan).toMatchObject({ path: "/v1/{name}/{id}", notes: [] });
    expect(plan.parameters.map(({ key, allowReserved }) => [key, allowReserved])).toEqual([
      ["name", true],
      ["id", false],
    ]);
  });

  it("RE-25 leaves {+name} where that is what is declared, or nothing is", async () => {
    expect(await declaring("/{+name}", ["+name"])).toMatchObject({ path: "/{+name}", notes: [] });
    const undeclared = await declaring("/{+name}", []);
    expect(undeclared.parameters).toMatchObject([{ key: "+name", allowReserved: false }]);
  });
});

describe("lists of Swagger 2.0", () => {
  const list = (place: string, collectionFormat?: string) => ({
    ...{ name: "a", in: place, required: true, type: "array", items: { type: "string" } },
    ...(collectionFormat !== undefined && { collectionFormat }),
  });
  const planFor = async (parameter: object, consumes: readonly string[] = []) =>
    planOf(
      await read({
        swagger: "2.0",
        paths: { "/x/{a}": { post: { operationId: "o", consumes, parameters: [parameter] } } },
      }),
      "o",
    );

  it.each([
    ["path", "csv", "simple", false, undefined],
    ["path", "ssv", "simple", false, " "],
    ["path", "tsv", "simple", false, "\t"],
    ["path", "pipes", "simple", false, "|"],
    ["header", "pipes", "simple", false, "|"],
    ["query", undefined, "form", false, undefined],
    ["query", "ssv", "spaceDelimited", false, undefined],
    ["query", "pipes", "pipeDelimited", false, undefined],
    ["query", "tsv", "form", false, "\t"],
    ["query", "multi", "form", true, undefined],
  ])("RE-25 writes a list in the %s as %s", async (place, format, style, explode, separator) => {
    const plan = await planFor(list(place, format));
    const found = plan.parameters.find((parameter) => parameter.in === place);
    expect([found?.style, found?.explode, found?.separator]).toEqual([style, explode, separator]);
  });

  it.each([
    ["application/x-www-form-urlencoded", "csv", { style: "form", explode: false }],
    ["application/x-www-form-urlencoded", "tsv", { style: "form", explode: false, separator: "\t" }],
    ["application/x-www-form-urlencoded", "pipes", { style: "pipeDelimited", explode: false }],
    ["application/x-www-form-urlencoded", "multi", { style: "form", explode: true }],
    ["multipart/form-data", undefined, { explode: false, separator: "," }],
    ["multipart/form-data", "pipes", { explode: false, separator: "|" }],
    ["multipart/form-data", "tsv", { explode: false, separator: "\t" }],
    ["multipart/form-data", "multi", { explode: true }],
  ])("RE-25 writes a list in a form of %s as %s", async (type, format, encoding) => {
    const media = (await planFor(list("formData", format), [type])).body?.content[0];
    expect(media).toMatchObject({ mediaType: type, encoding: { a: encoding } });
    if (!("separator" in encoding)) expect(media?.encoding?.["a"]?.separator).toBeUndefined();
  });

  it("RE-25 notes what cannot be written as it says", async () => {
    expect((await planFor(list("header", "multi"))).notes.join()).toContain('the collectionFormat "multi"');
    const nested = { ...list("query"), items: { type: "array", items: { type: "string" } } };
    expect((await planFor(nested)).notes.join()).toContain('The list "a" holds lists');
  });
});

describe("parts by their place", () => {
  it("RE-25 reads prefixEncoding and itemEncoding of 3.2", async () => {
    const content = {
      "multipart/mixed": {
        schema: { type: "array" },
        prefixEncoding: [{ contentType: "application/json" }, 5],
        itemEncoding: { contentType: "image/png", headers: { "X-A": { schema: { type: "string" } } } },
      },
    };
    const document = minimal({ requestBody: { content } }, { openapi: "3.2.0" });
    expect(planOf(await read(document), "get/x").body?.content).toMatchObject([
      {
        prefixEncoding: [{ contentType: "application/json" }, {}],
        itemEncoding: { contentType: "image/png", headers: { "X-A": { type: "string" } } },
      },
    ]);
  });
});

describe("servers of a document", () => {
  it("RE-25 tells where the API is, whatever its operations say", async () => {
    const own = { servers: [{ url: "https://own.example" }] };
    const api = await read(minimal(own, { servers: [{ url: "https://root.example", name: "main" }] }));
    expect(api.servers).toMatchObject([{ url: "https://root.example", name: "main" }]);
    expect((await read(minimal({}))).servers).toMatchObject([{ url: "/" }]);
    const old = { swagger: "2.0", host: "old.example", basePath: "/v1", paths: {} };
    expect((await read(old)).servers).toMatchObject([{ url: "https://old.example/v1" }]);
  });
});
