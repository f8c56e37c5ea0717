import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../../../test/runs.ts";
import { compileSchema } from "../../../core/schema/compile-schema.ts";
import type { OperationPlan } from "../plan.ts";
import { readApi } from "./read-api.ts";

const KEYWORDS = [
  ...[
    "type",
    "format",
    "nullable",
    "x-nullable",
    "enum",
    "const",
    "default",
    "example",
    "examples",
    "required",
  ],
  ...[
    "properties",
    "patternProperties",
    "additionalProperties",
    "items",
    "prefixItems",
    "allOf",
    "anyOf",
    "oneOf",
  ],
  ...[
    "not",
    "if",
    "then",
    "else",
    "$ref",
    "$dynamicRef",
    "$id",
    "$anchor",
    "$defs",
    "minimum",
    "exclusiveMinimum",
  ],
  ...[
    "multipleOf",
    "minLength",
    "maxItems",
    "pattern",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
  ],
  ...[
    "discriminator",
    "readOnly",
    "writeOnly",
    "contentMediaType",
    "contentEncoding",
    "unevaluatedProperties",
  ],
  ...["contains", "propertyNames", "uniqueItems", "deprecated", "description", "$schema", "additionalItems"],
];
const PLACES = ["definitions", "components/schemas"];
const NAMES = ["A", "B", "C", "__proto__", "a b"];
const references = PLACES.flatMap((place) => NAMES.map((name) => `#/${place}/${name}`));
const leaf = fc.oneof(
  fc.constantFrom(
    null,
    true,
    false,
    0,
    -1,
    1.5,
    "",
    "string",
    "object",
    "integer",
    "file",
    "int",
    "(",
    "^a+$",
    "binary",
    "a",
  ),
  fc.constantFrom(...references, "#", "#/paths", "#x", "other.json", "#/components/schemas/A/properties/a"),
);
const junk = fc.letrec((tie) => ({
  value: fc.oneof({ maxDepth: 4 }, leaf, tie("schema"), fc.array(tie("value"), { maxLength: 3 }), tie("map")),
  schema: fc.dictionary(fc.constantFrom(...KEYWORDS), tie("value"), { maxKeys: 5 }),
  map: fc.dictionary(
    fc.constantFrom("a", "b", "__proto__", "constructor", "type", "default", "nullable"),
    tie("value"),
    {
      maxKeys: 3,
    },
  ),
}));

const FIELDS = [
  ...[
    "parameters",
    "requestBody",
    "responses",
    "content",
    "schema",
    "headers",
    "encoding",
    "in",
    "name",
    "style",
  ],
  ...[
    "200",
    "default",
    "application/json",
    "multipart/form-data",
    "image/png",
    "security",
    "servers",
    "url",
    "tags",
  ],
  ...[
    "consumes",
    "produces",
    "collectionFormat",
    "type",
    "items",
    "$ref",
    "explode",
    "required",
    "variables",
  ],
];
const place = fc.constantFrom(
  "query",
  "path",
  "header",
  "cookie",
  "body",
  "formData",
  "querystring",
  "nowhere",
);
const parameter = fc.record(
  {
    name: fc.constantFrom("a", "id", "__proto__", "Accept"),
    in: place,
    schema: junk.schema,
    type: leaf,
    items: junk.value,
  },
  { requiredKeys: ["name", "in"] },
);
const fields = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    leaf,
    tie("object"),
    fc.array(tie("value"), { maxLength: 3 }),
    parameter,
    junk.schema,
  ),
  object: fc.dictionary(fc.constantFrom(...FIELDS), tie("value"), { maxKeys: 6 }),
}));
const version = fc.constantFrom(
  { swagger: "2.0" },
  { openapi: "3.0.3" },
  { openapi: "3.1.0" },
  { openapi: "3.2.0" },
);

async function plans(document: object): Promise<OperationPlan[]> {
  const { operations } = await readApi(document, { overlays: [], limits: {} });
  return operations.map((operation) => operation.plan());
}

function compileAll(plan: OperationPlan): void {
  const media = [...(plan.body?.content ?? []), ...plan.responses.flatMap(({ content }) => content)];
  const headers = plan.responses.flatMap((response) => Object.values(response.headers));
  const schemas = [
    ...plan.parameters.map(({ schema }) => schema),
    ...media.map(({ schema }) => schema ?? true),
    ...headers,
  ];
  for (const schema of schemas) {
    compileSchema(typeof schema === "boolean" ? schema : { ...schema, $defs: plan.definitions });
  }
  compileSchema({
    $defs: plan.definitions,
    anyOf: [true, ...Object.keys(plan.definitions).map((name) => ({ $ref: `#/$defs/${name}` }))],
  });
}

describe("laws of documents", () => {
  it("RE-25 makes of any schema one that compiles, and changes nothing of the document", async () => {
    const schemas = fc.dictionary(fc.constantFrom(...NAMES), junk.schema);
    await fc.assert(
      fc.asyncProperty(version, junk.value, schemas, async (start, schema, named) => {
        const response = "swagger" in start ? { schema } : { content: { "application/json": { schema } } };
        const body = "swagger" in start ? {} : { requestBody: response };
        const post = { ...body, responses: { 200: response } };
        const document = {
          ...start,
          paths: { "/": { post } },
          definitions: named,
          components: { schemas: named },
        };
        const before = JSON.stringify(document);
        for (const plan of await plans(document)) compileAll(plan);
        expect(JSON.stringify(document)).toBe(before);
      }),
      runs(500),
    );
  });

  it("RE-25 plans any operation, however wrong, with keys that tell its parameters apart", async () => {
    await fc.assert(
      fc.asyncProperty(version, fields.object, fields.value, async (start, operation, shared) => {
        const item = { parameters: shared, post: operation, servers: shared };
        for (const plan of await plans({
          ...start,
          paths: { "/{id}": item },
          components: shared,
          security: shared,
        })) {
          compileAll(plan);
          const keys = plan.parameters.map(({ key }) => key);
          expect(new Set([...keys, "body"]).size).toBe(keys.length + (keys.includes("body") ? 0 : 1));
          expect(plan.body === undefined || !keys.includes("body")).toBe(true);
          expect(plan.servers.length).toBeGreaterThan(0);
        }
      }),
      runs(500),
    );
  });
});
