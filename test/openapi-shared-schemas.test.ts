import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createResultFormat } from "../src/formats/index.ts";
import {
  type AnyOperation,
  compileSchema,
  type JsonSchema,
  type JsonSchemaObject,
  OperationRegistry,
} from "../src/index.ts";
import { fromOpenApi, type OpenApiDocument, toOpenApi } from "../src/openapi/index.ts";
import { cpuMs } from "./cpu-ms.ts";
import { isObject } from "./json-values.ts";
import { query } from "./make-operation.ts";
import { runs } from "./runs.ts";

const FORMATS = (["tool-envelope", "tiered-envelope", "status-envelope", "mcp"] as const).map((name) =>
  createResultFormat(name),
);

type Schemas = Readonly<Record<string, JsonSchema>>;

const refTo = (name: string) => ({ $ref: `#/components/schemas/${name}` });

/** A document with an operation for each schema of the answers. */
function documentOf(schemas: Schemas, answers: readonly JsonSchema[], body?: JsonSchema): object {
  const paths = answers.map((schema, at) => [
    `/thing${at}/{id}`,
    {
      [body === undefined ? "get" : "post"]: {
        operationId: `thing${at}`,
        description: `Answers with thing ${at}.`,
        parameters: [
          {
            name: "id",
            in: "path",
            required: true,
            description: "Names one of the things, as the list of all of them shows it, by its number.",
            schema: { type: "integer" },
          },
        ],
        ...(body !== undefined && { requestBody: { content: { "application/json": { schema: body } } } }),
        responses: { 200: { description: "It.", content: { "application/json": { schema } } } },
      },
    },
  ]);
  return {
    openapi: "3.1.0",
    info: { title: "Things", version: "1.0.0" },
    servers: [{ url: "https://api.example.com" }],
    paths: Object.fromEntries(paths),
    components: { schemas },
  };
}

async function mount(...documents: readonly (readonly [namespace: string, document: object])[]) {
  const registry = new OperationRegistry();
  for (const [namespace, document] of documents) {
    registry.registerAll(await fromOpenApi(document, { namespace, onWarning: () => {} }));
  }
  return registry;
}

async function importServed(document: object): Promise<OperationRegistry> {
  const registry = new OperationRegistry();
  const json = JSON.parse(JSON.stringify(document)) as object;
  const servers = [{ url: "https://served.example.com" }];
  registry.registerAll(await fromOpenApi({ ...json, servers }, { namespace: "again", keepIds: true }));
  return registry;
}

/** What an operation declares. */
function schemasOf(operation: AnyOperation | undefined): { input: unknown; output: unknown } {
  return { input: operation?.inputSchema, output: operation?.outputSchema };
}

async function expectSameSchemas(registry: OperationRegistry, document: OpenApiDocument): Promise<void> {
  const again = await importServed(document);
  expect(again.list().map(({ id }) => id)).toEqual(registry.list().map(({ id }) => id));
  for (const operation of registry.list()) {
    expect(schemasOf(again.get(operation.id))).toEqual(schemasOf(operation));
  }
}

const namesIn = (document: OpenApiDocument): string[] => Object.keys(document.components.schemas);

/** Many schemas, each of which refers to some others; every operation reaches most of them. */
function manySchemas(count: number): Schemas {
  const text = "Says at some length what this is about, the way documents of large services do it. ".repeat(
    3,
  );
  const entries = Array.from({ length: count }, (_, at) => {
    const properties = {
      id: { type: "integer", description: text },
      name: { type: ["string", "null"], maxLength: 100 + at },
      next: refTo(`schema-${(at + 1) % count}`),
      other: { description: "Beside the reference.", ...refTo(`schema-${(at * 7 + 3) % count}`) },
      kinds: { type: "array", items: { enum: ["a", "b", `kind ${at}`] } },
      anything: true,
    };
    return [`schema-${at}`, { type: "object", description: text, properties, required: ["id"] }] as const;
  });
  return Object.fromEntries(entries);
}

describe("schemas that operations share", () => {
  it("RE-30 X-6 stay shared in what is served, however many operations reach them", async () => {
    const [schemas, operations] = [60, 120];
    const answers = Array.from({ length: operations }, (_, at) => refTo(`schema-${at % schemas}`));
    const source = documentOf(manySchemas(schemas), answers);
    const registry = await mount(["big", source]);
    const served = toOpenApi(registry, { formats: FORMATS });
    const shared = namesIn(toOpenApi(new OperationRegistry(), { formats: FORMATS })).length + 2;
    expect(namesIn(served).length).toBeLessThanOrEqual(schemas + operations + shared);
    expect(namesIn(served)).toEqual(expect.arrayContaining(Object.keys(manySchemas(schemas))));
    // What importers need word for word is said in addition where the document says it in other words.
    const [before, after] = [manySchemas(schemas), served.components.schemas].map(
      (all) => JSON.stringify(all).length,
    );
    expect(after).toBeLessThan(3 * Number(before));
    await expectSameSchemas(registry, served);
  });

  it("X-6 are the same after being served and imported twice", async () => {
    const body = { type: "object", properties: { thing: refTo("schema-4") }, additionalProperties: false };
    const registry = await mount([
      "big",
      documentOf(manySchemas(9), [refTo("schema-0"), refTo("schema-5")], body),
    ]);
    const served = toOpenApi(registry, { formats: FORMATS });
    await expectSameSchemas(registry, served);
    const again = toOpenApi(await importServed(served), { formats: FORMATS });
    expect(again.components.schemas).toEqual(served.components.schemas);
  });

  it("RE-30 share circles of references, wherever an operation enters them", async () => {
    const schemas = {
      A: { type: "object", properties: { b: refTo("B"), leaf: refTo("Leaf") } },
      B: { type: "object", properties: { c: refTo("C") } },
      C: { type: "object", properties: { a: refTo("A"), self: refTo("C") } },
      Leaf: { type: "string", maxLength: 3 },
    };
    const registry = await mount(["x", documentOf(schemas, ["C", "A", "B", "Leaf"].map(refTo))]);
    const served = toOpenApi(registry);
    expect(
      namesIn(served)
        .filter((name) => !name.includes("."))
        .sort(),
    ).toEqual([...Object.keys(schemas), "Problem"].sort());
    await expectSameSchemas(registry, served);
  });

  it("RE-30 keep apart what two sources call by one name, or say with other words", async () => {
    const user = (description: string, type: string) => ({
      User: { type: "object", description, properties: { id: refTo("Id") }, required: ["id"] },
      Id: { type },
    });
    const answers = [refTo("User"), { type: "array", items: refTo("User") }];
    const registry = await mount(
      ["a", documentOf(user("One.", "integer"), answers)],
      ["b", documentOf(user("One.", "string"), answers)],
      ["c", documentOf(user("Another.", "string"), answers)],
      ["d", documentOf(user("One.", "integer"), answers)],
    );
    const served = toOpenApi(registry);
    const { schemas } = served.components;
    expect(schemas["User"]).toMatchObject({ description: "One.", properties: { id: refTo("Id") } });
    expect(schemas["b.User"]).toMatchObject({ description: "One.", properties: { id: refTo("b.Id") } });
    expect(schemas["c.User"]).toMatchObject({ description: "Another.", properties: { id: refTo("b.Id") } });
    expect([schemas["Id"], schemas["b.Id"]]).toEqual([{ type: "integer" }, { type: "string" }]);
    expect(namesIn(served).filter((name) => /(?:User|Id)$/.test(name))).toHaveLength(5);
    const again = await importServed(served);
    for (const [id, value] of [
      ["a.thing0", 1],
      ["b.thing0", "1"],
      ["c.thing0", "1"],
      ["d.thing0", 1],
    ] as const) {
      const schema = compileSchema(again.get(id)?.outputSchema as JsonSchema);
      expect([schema.check({ id: value }), schema.check({ id: true })]).toEqual([true, false]);
    }
  });

  it("RE-30 do not take the names of others, and no name that objects have", async () => {
    const schemas = Object.fromEntries(
      ["Problem", "x.thing0.Output", "__proto__", "constructor", "tiered-envelope", "a b/c~"].map((name) => [
        name,
        { type: "object", title: name },
      ]),
    );
    const answers = Object.keys(schemas).map((name) =>
      refTo(name.replace(/~/g, "~0").replace(/\//g, "~1").replace(/ /g, "%20")),
    );
    const registry = await mount(["x", documentOf(schemas, answers)]);
    const served = toOpenApi(registry, { formats: FORMATS });
    for (const name of namesIn(served)) expect(name).toMatch(/^(?!__proto__$)[A-Za-z0-9._-]+$/);
    expect(served.components.schemas["Problem"]).toHaveProperty(["properties", "detail"]);
    const again = await importServed(served);
    for (const { id, outputSchema } of registry.list()) {
      const titles = (schema: unknown) => JSON.stringify(schema).match(/"title":"[^"]*"/g);
      expect(titles(again.get(id)?.outputSchema)).toEqual(titles(outputSchema));
    }
  });

  it("RE-30 say long parameters once where several operations have them", async () => {
    const registry = await mount(["x", documentOf({}, [true, true, true])]);
    const served = toOpenApi(registry);
    const uses = Object.values(served.paths).flatMap(({ get }) => get?.parameters ?? []);
    expect(uses).toEqual(Array.from({ length: 3 }, () => ({ $ref: "#/components/parameters/id" })));
    expect(served.components.parameters["id"]).toMatchObject({ name: "id", in: "query", required: true });
    await expectSameSchemas(registry, served);
  });

  it("RE-30 are one object in all operations of a source", async () => {
    const registry = await mount(["x", documentOf(manySchemas(5), [refTo("schema-0"), refTo("schema-3")])]);
    const [first, second] = registry
      .list()
      .map(({ outputSchema }) => (outputSchema as JsonSchemaObject)["$defs"]);
    for (const name of Object.keys(manySchemas(5))) {
      expect((first as JsonSchemaObject)[name]).toBeDefined();
      expect((first as JsonSchemaObject)[name]).toBe((second as JsonSchemaObject)[name]);
    }
  });

  it("RE-30 need no component of their own where an answer is one of them, or a list of them", async () => {
    const list = { type: "array", items: refTo("Leaf"), description: "All of them, the newest first." };
    const schemas = { Leaf: { type: "object", properties: { name: { type: "string", maxLength: 3 } } } };
    const registry = await mount(["x", documentOf(schemas, [refTo("Leaf"), list, refTo("Leaf"), list])]);
    const served = toOpenApi(registry);
    expect(namesIn(served)).toEqual(["Leaf", "Problem", "x.thing1.Output"]);
    expect(answerOf(served, "/api/x/thing2")).toEqual(refTo("Leaf"));
    expect(answerOf(served, "/api/x/thing3")).toEqual(refTo("x.thing1.Output"));
    const answers = Object.values(served.paths).map((item) => item.get?.responses["200"]);
    expect(answers.slice(0, 4)).toEqual(
      ["Leaf", "x.thing1.Output", "Leaf", "x.thing1.Output"].map((name) => ({
        $ref: `#/components/responses/Answer.${name}`,
      })),
    );
    await expectSameSchemas(registry, served);
  });

  it("RE-30 are told apart by all they lead to, in any graph", () => {
    const names = ["A", "B", "C", "D"];
    const definition = fc.record({
      maximum: fc.integer({ min: 0, max: 1 }),
      refs: fc.subarray(names, { maxLength: 2 }),
    });
    const graph = fc.record(Object.fromEntries(names.map((name) => [name, definition])));
    const roots = fc.array(fc.tuple(graph, fc.constantFrom(...names)), { minLength: 2, maxLength: 5 });
    fc.assert(
      fc.property(roots, (all) => {
        const schemas = all.map(([definitions, root]) => toSchema(definitions, root));
        const operations = schemas.map((schema, at) => query(`n${at}.op`, () => 1, { outputSchema: schema }));
        const served = toOpenApi(new OperationRegistry(operations));
        schemas.forEach((schema, at) => {
          const written = { ...answerOf(served, `/api/n${at}/op`), components: served.components };
          expect(unfold(written, written, 9)).toEqual(unfold(schema, schema, 8));
        });
      }),
      runs(300),
    );
  });
});

/** The schema of what is answered at a path. */
function answerOf({ paths, components }: OpenApiDocument, path: string): JsonSchemaObject {
  const answer = (paths[path]?.get ?? paths[path]?.post)?.responses["200"] as { $ref?: string };
  const name = answer.$ref?.slice("#/components/responses/".length);
  const { content } = (name === undefined ? answer : components.responses[name]) as {
    content: Readonly<Record<string, { readonly schema: JsonSchemaObject }>>;
  };
  return content["application/json"]?.schema ?? {};
}

interface Definition {
  readonly maximum: number;
  readonly refs: readonly string[];
}

/** A schema with the definitions that its root reaches. */
function toSchema(definitions: Readonly<Record<string, Definition>>, root: string): JsonSchemaObject {
  const reached = new Set([root]);
  for (const name of reached) for (const next of definitions[name]?.refs ?? []) reached.add(next);
  const write = ({ maximum, refs }: Definition) => ({
    maxProperties: maximum,
    properties: Object.fromEntries(refs.map((name) => [name.toLowerCase(), { $ref: `#/$defs/${name}` }])),
  });
  const $defs = Object.fromEntries(
    [...reached].map((name) => [name, write(definitions[name] as Definition)]),
  );
  return { type: "object", properties: { root: { $ref: `#/$defs/${root}` } }, $defs };
}

/** What a schema says, references followed so many times. */
function unfold(schema: unknown, document: JsonSchemaObject, hops: number): unknown {
  if (Array.isArray(schema)) return schema.map((item) => unfold(item, document, hops));
  if (!isObject(schema)) return schema;
  const { $ref, $defs, components, ...rest } = schema;
  if (typeof $ref === "string") {
    const found = $ref
      .slice(2)
      .split("/")
      .reduce((value: unknown, key) => (value as JsonSchemaObject)[key], document);
    return hops === 0 ? {} : unfold(found, document, hops - 1);
  }
  return Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, unfold(value, document, hops)]));
}

/** How many times as long as a document what is served of it is, without what every served document says. */
function growth(document: object, served: OpenApiDocument): number {
  const always = JSON.stringify(toOpenApi(new OperationRegistry(), { formats: FORMATS })).length;
  return (JSON.stringify(served).length - always) / JSON.stringify(document).length;
}

const LONG_TEXT =
  "Says in a sentence or two what it is for, what it may be, and what happens without it. ".repeat(2);

/** Documents of the shapes that public ones have. */
const SHAPES: Readonly<Record<string, () => object>> = {
  "many schemas, all of which every operation reaches": () =>
    documentOf(
      manySchemas(300),
      Array.from({ length: 150 }, (_, at) => ({
        type: "object",
        properties: { at: { const: at }, thing: refTo(`schema-${at}`) },
      })),
    ),
  "parameters that all operations have, of those that read and those that write": () => {
    const names = Array.from({ length: 12 }, (_, at) => `parameter-${at}`);
    const parameters = names.map((name) => [
      name,
      { name, in: "query", description: `${name}: ${LONG_TEXT}`, schema: { type: "string" } },
    ]);
    const paths = Array.from({ length: 300 }, (_, at) => [
      `/things/${at}`,
      {
        get: {
          operationId: `get${at}`,
          description: LONG_TEXT.repeat(6),
          parameters: names.map((name) => ({ $ref: `#/components/parameters/${name}` })),
          responses: {
            200: { description: "It.", content: { "application/json": { schema: refTo("Thing") } } },
          },
        },
      },
    ]);
    const Thing = { type: "object", properties: { name: { type: "string" } } };
    return {
      ...documentOf({}, []),
      paths: Object.fromEntries(paths),
      components: { schemas: { Thing }, parameters: Object.fromEntries(parameters) },
    };
  },
  "an answer that operations share, with a long example": () => {
    const example = Array.from({ length: 500 }, (_, at) => ({ id: at, note: LONG_TEXT }));
    const schema = { type: "array", items: { type: "object" }, example };
    const answer = { description: "All.", content: { "application/json": { schema } } };
    const paths = Array.from({ length: 20 }, (_, at) => [
      `/lists/${at}`,
      { get: { operationId: `list${at}`, responses: { 200: { $ref: "#/components/responses/All" } } } },
    ]);
    return {
      ...documentOf({}, []),
      paths: Object.fromEntries(paths),
      components: { responses: { All: answer } },
    };
  },
  "references with something beside them": () =>
    documentOf(
      Object.fromEntries(
        Array.from({ length: 100 }, (_, at) => {
          const members = Array.from({ length: 12 }, (_, member) => [
            `member${member}`,
            { description: LONG_TEXT, ...refTo(`schema-${(at + member + 1) % 100}`) },
          ]);
          return [`schema-${at}`, { type: "object", properties: Object.fromEntries(members) }];
        }),
      ),
      Array.from({ length: 100 }, (_, at) => refTo(`schema-${at}`)),
    ),
};

describe("a document that is served onward", () => {
  it.each(Object.keys(SHAPES))("RE-30 X-6 grows little, and is served in time: %s", async (name) => {
    const document = (SHAPES[name] as () => object)();
    const startedAt = cpuMs();
    const registry = await mount(["x", document]);
    const served = toOpenApi(registry, { formats: FORMATS });
    expect(cpuMs() - startedAt).toBeLessThan(15_000);
    expect(growth(document, served)).toBeLessThanOrEqual(2);
    await expectSameSchemas(registry, served);
  });
});

describe("what a hostile document says of schemas that Waybill served", () => {
  const written = (facts: object, schemas: Readonly<Record<string, unknown>>) => ({
    openapi: "3.1.0",
    info: { title: "Hostile", version: "1.0.0" },
    servers: [{ url: "https://api.example.com" }],
    paths: {
      "/x": {
        post: {
          operationId: "x",
          responses: { 200: { description: "It." } },
          "x-waybill": { id: "a.x", type: "mutation", takes: "body", ...facts },
        },
      },
    },
    components: { schemas },
  });
  const outputOf = async (schemas: Readonly<Record<string, unknown>>, name = "S"): Promise<unknown> => {
    const document = written({ outputSchema: `#/components/schemas/${name}` }, schemas);
    const registry = await mount(["h", document]);
    return registry.list()[0]?.outputSchema;
  };

  it("X-6 is as if it were not there where it leads nowhere", async () => {
    for (const schemas of [{}, { S: true }, { S: [] }, { S: { "x-waybill": { schema: "no JSON" } } }]) {
      expect(await outputOf(schemas)).toBeUndefined();
    }
    for (const name of ["", "__proto__", "constructor", "S/properties"]) {
      expect(await outputOf({ S: {} }, name)).toBeUndefined();
    }
  });

  it("X-6 may lead in circles", async () => {
    const schemas = {
      S: { properties: { s: refTo("S"), t: refTo("T") } },
      T: { items: [refTo("S")], not: refTo("T") },
    };
    expect(await outputOf(schemas)).toEqual({
      properties: { s: { $ref: "#" }, t: { $ref: "#/$defs/T" } },
      $defs: { T: { items: [{ $ref: "#" }], not: { $ref: "#/$defs/T" } } },
    });
  });

  it("X-6 takes no more than is checked, however long the chain or the list of aliases", async () => {
    const count = 200_000;
    const chain = Object.fromEntries(
      Array.from({ length: count }, (_, at) => [`C${at}`, refTo(`C${at + 1}`)]),
    );
    const startedAt = cpuMs();
    const output = (await outputOf({ ...chain, S: { allOf: [refTo("C0")] } })) as JsonSchemaObject;
    expect(output).not.toHaveProperty("$defs");
    expect(() => compileSchema(output)).toThrow("points at nothing");
    expect(cpuMs() - startedAt).toBeLessThan(20_000);
  });

  it("RE-30 is served in time that grows with its size, however long its chains", () => {
    const length = 20_000;
    const $defs = Object.fromEntries(
      Array.from({ length }, (_, at) => [
        `C${at}`,
        { properties: { next: { $ref: `#/$defs/C${(at + 1) % length}` } } },
      ]),
    );
    const operations = ["a.one", "a.two"].map((id) =>
      query(id, () => 1, { outputSchema: { properties: { c: { $ref: "#/$defs/C0" } }, $defs } }),
    );
    const startedAt = cpuMs();
    const served = toOpenApi(new OperationRegistry(operations));
    // Both answer with the same, which is said once.
    expect(namesIn(served)).toHaveLength(length + 1 + 1);
    expect(cpuMs() - startedAt).toBeLessThan(20_000);
  });
});
