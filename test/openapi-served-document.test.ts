import { Validator } from "@seriousme/openapi-schema-validator";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createResultFormat } from "../src/formats/index.ts";
import {
  type AnyOperation,
  compileSchema,
  defineOperation,
  type JsonSchema,
  type JsonSchemaObject,
  OperationRegistry,
  Type,
} from "../src/index.ts";
import {
  createHttpHandler,
  type HttpHandlerOptions,
  type OpenApiDocument,
  type ToOpenApiOptions,
  toOpenApi,
} from "../src/openapi/index.ts";
import { schemaCases } from "./arbitrary-schema.ts";
import { AWKWARD } from "./awkward-schemas.ts";
import { cpuMs } from "./cpu-ms.ts";
import { query, stream } from "./make-operation.ts";
import { roundTripOperations } from "./round-trip-operations.ts";
import { HARDENED } from "./run-node.ts";
import { scaled, seededRuns } from "./runs.ts";

function describeAll(operations: readonly AnyOperation[], options?: ToOpenApiOptions): OpenApiDocument {
  return toOpenApi(new OperationRegistry(operations), options);
}

type DescribedOperation = NonNullable<OpenApiDocument["paths"][string]["get"]>;

function describedIn({ paths }: OpenApiDocument, id: string): DescribedOperation {
  const described = Object.values(paths).flatMap(({ get, post }) => [get, post]);
  return described.find((operation) => operation?.operationId === id) as DescribedOperation;
}

function describeOne(operation: AnyOperation, options?: ToOpenApiOptions): DescribedOperation {
  return describedIn(describeAll([operation], options), operation.id);
}

const validator = new Validator();

/** What the validator has to say; nothing about a document that is right. */
async function faultsOf(document: OpenApiDocument): Promise<unknown> {
  const copy = JSON.parse(JSON.stringify(document)) as Record<string, unknown>;
  return (await validator.validate(copy)).errors;
}

/** A schema the way it stands in a document, with all it refers to. */
function inDocument(schema: JsonSchema): JsonSchema {
  const document = describeAll([query("a.b", () => 1, { outputSchema: schema })]);
  const { schema: served } = contentOf(describedIn(document, "a.b"), 200)["application/json"] ?? {};
  return { ...(served as JsonSchemaObject), components: document.components };
}

function contentOf(
  operation: DescribedOperation,
  status: number | "default",
): Record<string, JsonSchemaObject> {
  return operation.responses[status]?.["content"] as Record<string, JsonSchemaObject>;
}

const withSchema = (schema: JsonSchema, at = 0): AnyOperation[] => [
  query(`schema${at}.in`, () => 1, { inputSchema: schema }),
  query(`schema${at}.out`, () => 1, {
    outputSchema: schema,
    errors: [{ code: "NO", schema, httpStatus: 409 }],
  }),
];

/** Keys that tools for OpenAPI follow wherever they stand. */
const POINTING: readonly JsonSchemaObject[] = [
  {
    type: "object",
    properties: { $ref: { type: "string" }, $id: { type: "number" } },
    additionalProperties: false,
  },
  {
    type: "object",
    properties: { $ref: { type: "string" } },
    patternProperties: { "^\\$ref$": { minLength: 2 } },
  },
  { const: { $ref: "#/nowhere", list: [1, { $id: "x" }], __proto: null } },
  { enum: [{ $anchor: "x" }, "plain"] },
  { type: "object", dependentRequired: { $ref: ["a"] }, dependentSchemas: { $id: { required: ["b"] } } },
  { type: "object", properties: { a: { default: { $ref: "x" } } }, examples: [{ a: { $ref: "y" } }] },
  { "x-note": { $ref: "nowhere", $id: "twice" }, type: "string" },
  { type: "object", $defs: { $ref: { type: "string" } }, properties: { a: { $ref: "#/$defs/$ref" } } },
  {
    $ref: "#/$defs/a",
    properties: { x: { $ref: "#/$defs/b" } },
    $defs: { a: { type: "object" }, b: { type: "string" } },
  },
];

/** The validator makes code of its schemas, which a hardened Node forbids. */
describe("the document of a served API", () => {
  it.runIf(!HARDENED)(
    "RE-30 X-6 is valid for operations of every kind, and says the same each time",
    async () => {
      const formats = [createResultFormat("tool-envelope"), createResultFormat("status-envelope")];
      const options = { formats, auth: { bearer: true, apiKeyHeader: "x-key" } };
      const document = describeAll(roundTripOperations(), options);
      expect(await faultsOf(document)).toBeUndefined();
      const shuffled = [...roundTripOperations()].reverse();
      expect(JSON.stringify(describeAll(shuffled, options))).toBe(JSON.stringify(document));
    },
  );

  it("RE-30 has one path for each operation, besides the four that are always there", () => {
    const operations = roundTripOperations();
    const { paths } = describeAll(operations);
    const builtIn = ["/batch", "/call", "/health", "/ready"];
    expect(Object.keys(paths).sort()).toEqual(
      [...builtIn, ...operations.map(({ namespace, name }) => `/api/${namespace}/${name}`)].sort(),
    );
    const ids = operations.map(({ namespace, name }) => {
      const item = paths[`/api/${namespace}/${name}`];
      return (item?.get ?? item?.post)?.operationId;
    });
    expect(ids).toEqual(operations.map(({ id }) => id));
  });

  it("RE-30 gives everything an id and a tag, ids that generators tell apart", () => {
    const ids = ["shop.get-item", "shop.get_item", "shop.getItem", "call.operation", "shop.find"];
    const document = describeAll(ids.map((id) => query(id, () => 1)));
    const described = Object.values(document.paths).flatMap(({ get, post }) =>
      [get ?? [], post ?? []].flat(),
    );
    const names = described.map(({ operationId }) => operationId);
    const letters = names.map((name) => name.replace(/[^a-z0-9]/gi, "").toLowerCase());
    expect(new Set(letters).size).toBe(names.length);
    expect(names).toContain("shop.find");
    expect(names.filter((name) => /^shop\.get.item_[0-9a-f]{8}$/i.test(name))).toHaveLength(2);
    expect(names).toEqual(expect.arrayContaining(["callOperation", "callBatch", "getHealth", "getReady"]));
    const tags = new Set(document.tags.map(({ name }) => name));
    expect(described.every((one) => one.tags.length > 0 && one.tags.every((tag) => tags.has(tag)))).toBe(
      true,
    );
  });

  it("RE-30 lists no media type of Waybill's own, and names them once", () => {
    const formats = [createResultFormat("tool-envelope")];
    const { "x-waybill": own, ...document } = describeAll(roundTripOperations(), { formats });
    expect(JSON.stringify(document)).not.toContain("vnd.waybill");
    expect(own.mediaTypes).toEqual([
      "application/vnd.waybill.envelope+json",
      "application/vnd.waybill.data+json",
      "application/vnd.waybill.tool-envelope+json",
    ]);
  });

  it("RE-30 names the address it was asked for at, or the one that is given", async () => {
    const registry = new OperationRegistry([query("shop.find", () => 1)]);
    const serversOf = async (options: HttpHandlerOptions, url: string, host = new URL(url).host) => {
      const handler = createHttpHandler(registry, options);
      const forwarded = { host, "x-forwarded-host": "evil.example", "x-forwarded-proto": "https" };
      const ask = () => handler.fetch(new Request(`${url}/openapi.json`, { headers: forwarded }));
      const [first, again] = [await ask(), await ask()];
      expect(again.headers.get("etag")).toBe(first.headers.get("etag"));
      return ((await first.json()) as OpenApiDocument).servers;
    };
    expect(await serversOf({}, "http://localhost:4100")).toEqual([{ url: "http://localhost:4100" }]);
    const hosts = ["api.example"];
    expect(await serversOf({ hosts }, "https://api.example")).toEqual([{ url: "https://api.example" }]);
    const servers = ["https://tools.example/v1"];
    expect(await serversOf({ servers }, "http://localhost")).toEqual([{ url: servers[0] }]);
    const info = { title: 'x "servers":[{"url":"."}]' };
    expect(await serversOf({ info }, "http://localhost")).toEqual([{ url: "http://localhost" }]);
  });

  it.runIf(!HARDENED)("RE-30 is valid for schemas that tools stumble over", async () => {
    const schemas = [...Object.values(AWKWARD).map(([schema]) => schema), ...POINTING];
    const document = describeAll(schemas.flatMap(withSchema));
    expect(await faultsOf(document)).toBeUndefined();
  });

  it.runIf(!HARDENED)("RE-30 is valid for any schema", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(schemaCases(false), { minLength: 1, maxLength: 8 }), async (cases) => {
        const operations = cases.flatMap(({ schema }, at) =>
          isUsable(schema) ? withSchema(schema, at) : [],
        );
        expect(await faultsOf(describeAll(operations))).toBeUndefined();
      }),
      seededRuns(20),
    );
  });

  it.runIf(!HARDENED)("RE-30 is valid for any names and texts", async () => {
    const name = fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9_./-]{0,12}$/);
    const texts = fc.record({ title: fc.string(), description: fc.string(), tags: fc.array(fc.string()) });
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(name, { minLength: 1, maxLength: 8 }),
        texts,
        fc.dictionary(
          fc.oneof(fc.string({ unit: "grapheme" }), fc.constantFrom("$ref", "$id", "__proto__")),
          fc.constant({ type: "string" } as const),
        ),
        async (names, extra, properties) => {
          const inputSchema = { type: "object", properties };
          const operations = names.map((text) => query(`a.${text}`, () => 1, { ...extra, inputSchema }));
          const document = describeAll(operations);
          expect(await faultsOf(document)).toBeUndefined();
          expect(Object.keys(document.paths)).toHaveLength(names.length + 4);
        },
      ),
      seededRuns(30),
    );
  });
});

/** Some schemas that can be made up loop without consuming anything, and are refused. */
function isUsable(schema: JsonSchema): boolean {
  try {
    compileSchema(schema);
    return true;
  } catch {
    return false;
  }
}

describe("a schema in a document", () => {
  it("RE-30 RE-32 says the same as before, for any schema and value", () => {
    fc.assert(
      fc.property(schemaCases(false), ({ schema, values }) => {
        fc.pre(isUsable(schema));
        const before = compileSchema(schema, { codegen: false });
        const after = compileSchema(inDocument(schema), { codegen: false });
        for (const value of values) expect(after.check(value)).toBe(before.check(value));
      }),
      seededRuns(400),
    );
  });

  /** Where what a reference means depends on who asks, the document says less. */
  const SAYS_LESS = new Set(["a reference to a metaschema"]);

  it.each(Object.entries(AWKWARD))("RE-30 RE-32 says the same: %s", (name, [schema, values]) => {
    const before = compileSchema(schema);
    const after = compileSchema(inDocument(schema));
    for (const value of [...values, { a: "?" }, { a: -1 }, { a: [null] }, { b: [] }, 5]) {
      if (before.check(value) || !SAYS_LESS.has(name)) expect(after.check(value)).toBe(before.check(value));
    }
  });

  const values = [
    {},
    { $ref: "x" },
    { $ref: "xy" },
    { $ref: 1 },
    { $id: 1 },
    { $id: "x" },
    { $ref: "x", a: 1 },
    { $ref: "#/nowhere", list: [1, { $id: "x" }], __proto: null },
    { $ref: "#/nowhere", list: [1, { $id: "y" }], __proto: null },
    { $ref: "#/nowhere", list: [1], __proto: null },
    { $anchor: "x" },
    { a: { $ref: "x" } },
    { a: "text" },
    { $id: 1, b: 2 },
    { x: "text" },
    { x: 1 },
    "plain",
    "other",
  ];

  it.each(POINTING.map((schema) => [JSON.stringify(schema), schema] as const))(
    "RE-30 RE-32 says the same without keys that tools follow: %s",
    (_, schema) => {
      const before = compileSchema(schema);
      const after = compileSchema(inDocument(schema));
      for (const value of values) expect(after.check(value)).toBe(before.check(value));
    },
  );

  it("RE-30 gives different schemas different names, whatever they are called", () => {
    const ids = ["a.b/c", "a.b_c", "a.b-c", "a.b_c_2", "a.b_c.Output"];
    const { components } = describeAll(ids.map((id) => query(id, () => 1, { outputSchema: { title: id } })));
    const titles = Object.values(components.schemas).map((schema) => (schema as JsonSchemaObject)["title"]);
    expect(titles).toEqual(expect.arrayContaining(ids));
    for (const name of Object.keys(components.schemas)) expect(name).toMatch(/^[a-zA-Z0-9._-]+$/);
  });

  it("RE-30 is written in linear time, however many parts refer to each other", () => {
    const $defs = Object.fromEntries(
      Array.from({ length: 3_000 }, (_, at) => [
        `é${at % 7}${"ü".repeat(at % 3)}/${at}`,
        { title: String(at) },
      ]),
    );
    const anyOf = Object.keys($defs).map((name) => ({
      $ref: `#/$defs/${encodeURIComponent(name.replace("/", "~1"))}`,
    }));
    const startedAt = cpuMs();
    const { components } = describeAll([query("a.b", () => 1, { outputSchema: { anyOf, $defs } })]);
    expect(Object.keys(components.schemas).length).toBeGreaterThan(3_000);
    expect(cpuMs() - startedAt).toBeLessThan(10_000);
  });
});

describe("an operation in a document", () => {
  const find = query("shop.find", () => [], {
    title: "Finds things",
    description: "Finds things by name.",
    tags: ["search", "shop"],
    inputSchema: Type.Object({
      name: Type.String({ description: "What to look for." }),
      cursor: Type.Optional(Type.String()),
      ids: Type.Optional(Type.Array(Type.Integer(), { minItems: 1 })),
    }),
    outputSchema: Type.Array(Type.Object({ id: Type.Integer() })),
    annotations: { readOnly: true },
  });

  it("RE-30 is a GET with parameters where its input fits into a query", () => {
    const described = describeOne(find);
    expect(described).toMatchObject({
      operationId: "shop.find",
      summary: "Finds things",
      description: "Finds things by name.",
      tags: ["shop", "search"],
      parameters: [
        { name: "name", in: "query", required: true, description: "What to look for.", example: "text" },
        { name: "cursor", in: "query", required: false, schema: { type: "string" } },
        { name: "ids", in: "query", required: false, style: "form", explode: true },
      ],
    });
    expect(Object.keys(described.responses)).toEqual([
      ...["200", "304", "400", "403", "404", "406", "414", "422", "429", "500", "503", "504", "default"],
    ]);
    expect(described.responses["200"]?.["headers"]).toHaveProperty("link");
    expect(described.responses["200"]?.["headers"]).toHaveProperty("etag");
    expect(contentOf(described, 200)["application/json"]).toEqual({
      schema: { $ref: "#/components/schemas/shop.find.Output" },
      example: [{ id: 1 }],
    });
    expect(described).not.toHaveProperty("requestBody");
  });

  it("RE-30 has parameters whose schemas find what they refer to, or say at least their type", () => {
    const properties = {
      a: { type: "string", allOf: [{ $ref: "#/$defs/short" }] },
      $ref: { type: "array", items: { type: "integer" }, minItems: 1 },
    };
    const $defs = { short: { type: "string", maxLength: 3 } };
    const one = query("a.b", () => 1, { inputSchema: { type: "object", properties, $defs } });
    const { paths, components } = describeAll([one]);
    expect(paths["/api/a/b"]?.get?.parameters).toMatchObject([
      { name: "a", schema: { type: "string", allOf: [{ $ref: "#/components/schemas/short" }] } },
      { name: "$ref", schema: properties.$ref, style: "form", explode: true },
    ]);
    expect(components.schemas["short"]).toEqual($defs.short);
    const metaschema = { $ref: "https://json-schema.org/draft/2020-12/schema" };
    const untold = { type: "object", properties: { a: { type: "string", not: metaschema } } };
    const described = describeOne(query("a.b", () => 1, { inputSchema: untold }));
    expect(described.parameters).toMatchObject([{ name: "a", schema: { type: "string" } }]);
    expect(JSON.stringify(described.parameters)).not.toContain("not");
  });

  it("RE-30 is a POST with a body where it changes something", () => {
    const described = describeOne(
      defineOperation({
        namespace: "shop",
        name: "buy",
        version: "1.0.0",
        type: "mutation",
        description: "",
        inputSchema: Type.Object({ id: Type.Integer({ minimum: 5 }) }),
        handler: () => undefined,
      }),
    );
    expect(described.requestBody).toMatchObject({
      required: true,
      content: { "application/json": { example: { id: 5 } } },
    });
    expect(Object.keys(described.responses)).toEqual([
      ...["200", "204", "400", "403", "404", "406", "409", "413", "415", "422", "429", "500", "503", "504"],
      "default",
    ]);
    expect(described.parameters).toEqual([{ $ref: "#/components/parameters/IdempotencyKey" }]);
    expect(describeOne(query("a.b", () => 1)).requestBody).toMatchObject({ required: false });
  });

  it("RE-30 answers with a stream of events where it is a subscription", () => {
    const inputSchema = Type.Object({ to: Type.Number() });
    const described = describeOne(stream("a.tick", async function* () {}, { inputSchema }));
    expect(Object.keys(contentOf(described, 200))).toEqual(["text/event-stream"]);
    expect(Object.keys(described.responses)).toEqual([
      ...[
        "200",
        "204",
        "400",
        "403",
        "404",
        "406",
        "409",
        "410",
        "414",
        "429",
        "500",
        "503",
        "504",
        "default",
      ],
    ]);
  });

  it("RE-30 lists the media types of a result that are nobody's own", () => {
    const formats = [createResultFormat("tool-envelope")];
    const types = Object.keys(
      contentOf(
        describeOne(
          query("a.b", () => 1),
          { formats },
        ),
        200,
      ),
    );
    expect(types).toEqual(["application/json", "application/octet-stream"]);
    expect(Object.keys(contentOf(describeOne(find), 200))).not.toContain("application/octet-stream");
  });

  it("X-5 lists declared errors by status, with their code and details", () => {
    const details = Type.Object({ left: Type.Integer() });
    const described = describeOne(
      query("a.b", () => 1, {
        errors: {
          OUT_OF_STOCK: { description: "Nothing left.", httpStatus: 409, schema: details },
          CONFLICT: {},
          BROKEN: {},
          VALIDATION_ERROR: { description: "Bad name." },
          ABORTED: {},
        },
      }),
    );
    expect(Object.keys(described.responses)).not.toContain("499");
    const { schema } = contentOf(described, 409)["application/problem+json"] as { schema: JsonSchemaObject };
    expect(schema["anyOf"]).toMatchObject([
      {
        properties: {
          code: { const: "OUT_OF_STOCK" },
          details: { $ref: expect.stringContaining("OUT_OF_STOCK") },
        },
      },
      { properties: { code: { const: "CONFLICT" } } },
      { $ref: "#/components/schemas/Problem" },
    ]);
    expect(described.responses["409"]?.["description"]).toContain("Nothing left.");
    expect(described.responses["400"]?.["description"]).toContain("Bad name.");
  });

  it("X-5 says where callers must authenticate, may be refused or need another plan", () => {
    const closed = query("a.b", () => 1, { access: {}, tier: "pro" });
    const registry = new OperationRegistry([closed]);
    const identity = { subject: "me", scopes: [], tier: "pro" as const };
    const { responses = {} } = toOpenApi(registry, { identity }).paths["/api/a/b"]?.post ?? {};
    expect(Object.keys(responses)).toEqual(expect.arrayContaining(["401", "402", "403"]));
    const open = describeOne(query("a.b", () => 1)).responses;
    expect(Object.keys(open)).not.toEqual(expect.arrayContaining(["401"]));
    expect(Object.keys(open)).not.toEqual(expect.arrayContaining(["402"]));
    expect(Object.keys(toOpenApi(registry).paths)).not.toContain("/api/a/b");
    const document = describeAll([find], { auth: { bearer: true, apiKeyHeader: "x-key" } });
    expect(document.security).toEqual([{ bearer: [] }, { apiKey: [] }]);
    expect(document.components.securitySchemes).toEqual({
      bearer: { type: "http", scheme: "bearer" },
      apiKey: { type: "apiKey", in: "header", name: "x-key" },
    });
    expect(document.paths["/health"]?.get?.security).toEqual([]);
    expect(document.paths["/api/shop/find"]?.get?.responses).toHaveProperty("401");
  });

  it("X-6 carries exactly what an importer needs to get it back, and nothing internal", () => {
    const facts = describeOne(find)["x-waybill"];
    expect(facts).toEqual({
      id: "shop.find",
      type: "query",
      version: "1.0.0",
      takes: "query",
      title: "Finds things",
      tags: ["search", "shop"],
      annotations: { readOnly: true },
      // The parameters say the rest.
      inputSchema: { type: "object", properties: "parameters", required: ["name"] },
      outputSchema: "#/components/schemas/shop.find.Output",
    });
    const access = { scopes: { anyOf: ["SECRET"] }, resource: { pointer: "/SECRET", type: "SECRET" } };
    const secret = query("a.b", () => "SECRET", {
      access,
      _meta: { note: "SECRET" },
      outputPolicy: "strict",
    });
    const identity = { subject: "me", scopes: ["SECRET"], resources: { SECRET: "*" as const } };
    const document = toOpenApi(new OperationRegistry([secret]), { identity });
    expect(document.paths).toHaveProperty(["/api/a/b"]);
    const written = JSON.stringify(document);
    expect(written).not.toContain("SECRET");
  });

  it("RE-30 X-6 is deprecated where it was imported so", () => {
    const described = describeOne(query("a.b", () => 1, { _meta: { deprecated: true } }));
    expect(described).toMatchObject({ deprecated: true, "x-waybill": { deprecated: true } });
    const other = describeOne(query("a.b", () => 1, { _meta: { deprecated: "yes" } }));
    expect([other.deprecated, other["x-waybill"]["deprecated"]]).toEqual([undefined, undefined]);
  });

  it("RE-30 demands no list that is empty where nothing is said of it", () => {
    const list = Type.Array(Type.String());
    const inputSchema = Type.Object({ any: list, some: Type.Array(Type.String(), { minItems: 1 }) });
    const { parameters } = describeOne(query("a.b", () => 1, { inputSchema }));
    expect(parameters).toMatchObject([
      { name: "any", required: false },
      { name: "some", required: true },
    ]);
  });

  it("X-6 carries schemas that refer to themselves as text, which gives them back word for word", () => {
    const schema = AWKWARD["references by name"]?.[0] as JsonSchemaObject;
    const facts = describeOne(query("a.b", () => 1, { inputSchema: schema }))["x-waybill"];
    expect(JSON.parse(facts["inputSchema"] as string)).toEqual(schema);
  });
});

describe("examples in a document", () => {
  const inputSchema = Type.Object({ n: Type.Integer({ minimum: 3 }), name: Type.Optional(Type.String()) });
  const operation = query("a.b", () => 1, { inputSchema: Type.Array(inputSchema) });
  const exampleOf = (shown?: ToOpenApiOptions["examples"]): unknown => {
    const body = describeOne(operation, { examples: shown }).requestBody as {
      content: Record<string, object>;
    };
    return (body.content["application/json"] as { example?: unknown }).example;
  };

  it("RE-30 are the ones given, where they pass", () => {
    expect(exampleOf({ "a.b": [{ n: 7 }] })).toEqual([{ n: 7 }]);
    expect(exampleOf({ "a.b": [{ n: 1 }] })).toBeUndefined();
    expect(exampleOf({ "a.b": [{ n: 7, extra: { $ref: "x" } }] })).toBeUndefined();
    expect(exampleOf()).toEqual([{ n: 3, name: "text" }]);
  });

  it("RE-30 always pass the schema they stand beside", () => {
    let found = 0;
    fc.assert(
      fc.property(schemaCases(false), ({ schema }) => {
        fc.pre(isUsable(schema));
        const { responses } = describeOne(query("a.b", () => 1, { outputSchema: schema }));
        const content = responses["200"]?.["content"] as Record<string, { example?: unknown }>;
        const media = content["application/json"] ?? {};
        if (!Object.hasOwn(media, "example")) return;
        found += 1;
        expect(compileSchema(schema).check(media.example)).toBe(true);
      }),
      seededRuns(200),
    );
    expect(found).toBeGreaterThan(scaled(50));
  });
});
