// @ts-check
// Hooks stand around every call: enough for tracing, caching or metering without touching the operations.
import assert from "node:assert/strict";
import { defineOperation, OperationRegistry, Type, unwrap } from "waybill";

let lookups = 0;

const price = defineOperation({
  namespace: "shop",
  name: "price",
  version: "1.0.0",
  type: "query",
  description: "Looks a price up.",
  inputSchema: Type.Object({ item: Type.String() }),
  outputSchema: Type.Object({ cents: Type.Integer() }),
  annotations: { readOnly: true },
  handler: ({ item }) => {
    lookups++;
    return { cents: item.length * 100 };
  },
});

const total = defineOperation({
  namespace: "shop",
  name: "total",
  version: "1.0.0",
  type: "query",
  description: "Adds up prices.",
  inputSchema: Type.Object({ items: Type.Array(Type.String()) }),
  outputSchema: Type.Object({ cents: Type.Integer() }),
  handler: async ({ items }, { execute }) => {
    let cents = 0;
    for (const item of items) cents += unwrap(await execute(price, { item })).cents;
    return { cents };
  },
});

const registry = new OperationRegistry([price, total]);

// Tracing: sees each call, nested ones included, and what it came to.
/** @type {string[]} */
const trace = [];
registry.use({
  execute: async ({ operationId, context }, next) => {
    const depth = context.parent === undefined ? "" : "  ";
    try {
      const envelope = await next();
      trace.push(`${depth}${operationId} ok`);
      return envelope;
    } catch (error) {
      trace.push(`${depth}${operationId} failed`);
      throw error;
    }
  },
});

// Caching: answers by itself what it has seen before. Only for results that are the same for every caller.
/** @type {Map<string, import("waybill").ResponseEnvelope>} */
const cache = new Map();
registry.use({
  execute: async ({ operation, input }, next) => {
    if (operation?.annotations?.readOnly !== true) return next();
    const key = `${operation.id} ${JSON.stringify(input)}`;
    const envelope = cache.get(key) ?? (await next());
    cache.set(key, envelope);
    return envelope;
  },
});

const basket = { items: ["tea", "tea", "honey"] };
assert.deepEqual(unwrap(await registry.execute(total, basket)), { cents: 1100 });
assert.equal(lookups, 2);
// @ts-expect-error the type checker would have said so
await assert.rejects(registry.execute("shop.price", { item: 7 }), { code: "VALIDATION_ERROR" });

assert.deepEqual(trace, [
  "  shop.price ok",
  "  shop.price ok",
  "  shop.price ok",
  "shop.total ok",
  "shop.price failed",
]);
