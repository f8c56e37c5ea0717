// @ts-check
import { defineOperation, OperationRegistry, Type } from "../waybill.js";

/** @param {string} name */
const add = (name) =>
  defineOperation({
    namespace: "bench",
    name,
    version: "1.0.0",
    type: "query",
    description: "Adds two numbers.",
    inputSchema: Type.Object({ a: Type.Number(), b: Type.Number() }),
    outputSchema: Type.Object({ sum: Type.Number() }),
    handler: (/** @type {{ a: number, b: number }} */ { a, b }) => ({ sum: a + b }),
  });

/**
 * A registry of so many operations, `bench.add` among them.
 * @param {number} size
 */
export function createBenchRegistry(size) {
  const others = Array.from({ length: size - 1 }, (_, i) => add(`other-${i}`));
  return new OperationRegistry([...others, add("add")]);
}
