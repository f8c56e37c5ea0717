// @ts-check
// Any schema library that can say its JSON Schema works; here zod 4, whose parsed value reaches the handler.
import assert from "node:assert/strict";
import { defineOperation, OperationRegistry, unwrap } from "waybill";
import * as z from "zod";

const book = defineOperation({
  namespace: "hotel",
  name: "book",
  version: "1.0.0",
  type: "mutation",
  description: "Books a room.",
  inputSchema: z.object({ guest: z.string().min(1), nights: z.int().min(1).default(1) }),
  outputSchema: z.object({ guest: z.string(), nights: z.int(), price: z.number() }),
  handler: ({ guest, nights }) => ({ guest, nights, price: nights * 80 }),
});

const registry = new OperationRegistry([book]);

assert.deepEqual(unwrap(await registry.execute(book, { guest: "Ada" })), {
  guest: "Ada",
  nights: 1,
  price: 80,
});
await assert.rejects(registry.execute("hotel.book", { guest: "", nights: 0 }), { code: "VALIDATION_ERROR" });
console.log("zod schemas checked the input, filled its default and described the output.");
