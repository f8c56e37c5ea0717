// @ts-check
import { jsonSchemas } from "../fixtures/json-schemas.js";
import { handlers, SIZES } from "../fixtures/values.js";
import { defineOperation, OperationRegistry } from "../waybill.js";

/**
 * A registry with the three operations, where a result that misses its schema is refused: input check,
 * output check and normalisation are all on.
 */
export function createWaybill() {
  const operations = Object.fromEntries(
    SIZES.map((size) => [
      size,
      defineOperation({
        namespace: "bench",
        name: size,
        version: "1.0.0",
        type: "query",
        description: `Returns a ${size} result.`,
        inputSchema: jsonSchemas.input,
        outputSchema: jsonSchemas[size],
        handler: handlers[size],
      }),
    ]),
  );
  const registry = new OperationRegistry(Object.values(operations), { outputPolicy: "strict" });
  return { registry, operations };
}
