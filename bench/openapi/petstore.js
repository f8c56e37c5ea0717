/** A small document, as both clients get it. */
export const PETSTORE = {
  openapi: "3.1.0",
  info: { title: "Pets", version: "1.0.0" },
  paths: {
    "/stores/{store}/pets/{pet}": {
      get: {
        operationId: "getPet",
        parameters: [
          { name: "store", in: "path", required: true, schema: { type: "string" } },
          { name: "pet", in: "path", required: true, schema: { type: "integer" } },
          { name: "fields", in: "query", schema: { type: "array", items: { type: "string" } } },
          { name: "verbose", in: "query", schema: { type: "boolean" } },
        ],
        responses: {
          200: {
            description: "The pet",
            content: { "application/json": { schema: { $ref: "#/components/schemas/Pet" } } },
          },
        },
      },
    },
  },
  components: {
    schemas: {
      Pet: {
        type: "object",
        required: ["id", "name"],
        properties: {
          id: { type: "integer" },
          name: { type: "string" },
          tag: { type: "string" },
          status: { enum: ["available", "pending", "sold"] },
        },
      },
    },
  },
};
