// @ts-check
import { defineOperation, OperationRegistry, serveHttp, Type } from "../waybill.js";

/** @param {string} name */
const add = (name) =>
  defineOperation({
    namespace: "bench",
    name,
    version: "1.0.0",
    // Posted like the others' are.
    type: "mutation",
    description: "Adds two numbers.",
    inputSchema: Type.Object({ a: Type.Number(), b: Type.Number() }),
    outputSchema: Type.Object({ sum: Type.Number() }),
    handler: (/** @type {{ a: number, b: number }} */ { a, b }) => ({ sum: a + b }),
  });

const others = Array.from({ length: 99 }, (_, i) => add(`other-${i}`));
const { port } = await serveHttp(new OperationRegistry([...others, add("add")]));
process.send?.({ port });
process.once("disconnect", () => process.exit());
