// @ts-check
import { defineOperation, OperationRegistry, Type } from "../waybill.js";

/** The work of every side. @param {{ a: number, b: number }} input */
export function add({ a, b }) {
  return { sum: a + b };
}

/** A registry with the one operation, checked both ways. */
export function createRegistry() {
  return new OperationRegistry([
    defineOperation({
      namespace: "bench",
      name: "add",
      version: "1.0.0",
      type: "query",
      description: "Adds two numbers.",
      inputSchema: Type.Object({ a: Type.Number(), b: Type.Number() }),
      outputSchema: Type.Object({ sum: Type.Number() }),
      handler: async (/** @type {{ a: number, b: number }} */ input) => add(input),
    }),
  ]);
}
