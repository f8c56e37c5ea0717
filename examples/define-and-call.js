// @ts-check
// Define an operation once, call it with full types, and read the paper that comes with the result.
import assert from "node:assert/strict";
import { createClient, defineOperation, OperationRegistry, Type, unwrap } from "waybill";

const area = defineOperation({
  namespace: "shape",
  name: "area",
  version: "1.0.0",
  type: "query",
  description: "Computes the area of a rectangle.",
  inputSchema: Type.Object({ width: Type.Number({ minimum: 0 }), height: Type.Number({ minimum: 0 }) }),
  outputSchema: Type.Object({ area: Type.Number() }),
  handler: ({ width, height }) => ({ area: width * height }),
});

// A plain JSON Schema works as well, and so does an operation that calls another one.
const areas = defineOperation({
  namespace: "shape",
  name: "areas",
  version: "1.0.0",
  type: "query",
  description: "Adds up the areas of several squares.",
  inputSchema: { type: "array", items: { type: "number" } },
  outputSchema: { type: "number" },
  handler: async (sides, { execute }) => {
    let total = 0;
    for (const side of sides) total += unwrap(await execute(area, { width: side, height: side })).area;
    return total;
  },
});

const registry = new OperationRegistry([area, areas]);

// By the operation itself: input and output are typed.
const envelope = await registry.execute(area, { width: 3, height: 4 });
assert.deepEqual(envelope.data, { area: 12 });
assert.equal(envelope.meta.source, "local");

// By id: for names that are only known at run time.
assert.equal(unwrap(await registry.execute("shape.areas", [1, 2, 3])), 14);

// Through the client: the data alone, and an exception for every kind of no.
const client = createClient(registry);
assert.deepEqual(await client.call(area, { width: 2, height: 2 }), { area: 4 });

assert.deepEqual(
  registry.list().map((operation) => operation.id),
  ["shape.area", "shape.areas"],
);
console.log(
  "Called",
  registry
    .list()
    .map((operation) => operation.id)
    .join(" and "),
  "through one registry.",
);
