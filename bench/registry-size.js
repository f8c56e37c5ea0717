// @ts-check
import { runBench } from "./bench.js";
import { handChecks } from "./fixtures/hand-checks.js";
import { jsonSchemas } from "./fixtures/json-schemas.js";
import { handlers, inputs } from "./fixtures/values.js";
import { interleave } from "./interleave.js";
import { timing } from "./options.js";
import { judgeWithin, printTable } from "./report.js";
import { defineOperation, OperationRegistry } from "./waybill.js";

const HOT = 10;
const MANY = 100_000;

/** @param {number} size */
function createRegistry(size) {
  const operations = Array.from({ length: size }, (_, number) =>
    defineOperation({
      namespace: "size",
      name: `operation-${number}`,
      version: "1.0.0",
      type: "query",
      description: "Returns a small result.",
      inputSchema: jsonSchemas.input,
      outputSchema: jsonSchemas.small,
      handler: handlers.small,
    }),
  );
  const started = performance.now();
  const registry = new OperationRegistry(operations, { outputPolicy: "strict" });
  const perOperation = ((performance.now() - started) * 1e3) / size;
  console.log(`  registered ${size} operations, ${perOperation.toFixed(2)} µs each`);
  return { registry, operations };
}

/** Returns a function that visits every number below `size` in an order that defeats prefetching. @param {number} size */
function createTurn(size) {
  let next = 0;
  return () => {
    next = (next + 7919) % size;
    return next;
  };
}

/** @param {ReadonlyMap<string, any>} operations @param {string} id @param {any} input */
async function callByHand(operations, id, input) {
  const operation = operations.get(id);
  if (!operation.input(input)) throw new TypeError("The input does not match its schema.");
  const data = await operation.handler(input);
  if (!operation.small(data)) throw new TypeError("The result does not match its schema.");
  return { data, meta: { source: "local", operationId: operation.id, timestamp: Date.now() } };
}

await runBench("registry-size", {
  100000: async (name, options) => {
    const few = createRegistry(HOT);
    const many = createRegistry(MANY);
    const ids = Array.from({ length: MANY }, (_, number) => `size.operation-${number}`);
    const byHand = new Map(ids.map((id) => [id, { id, handler: handlers.small, ...handChecks }]));
    const nextFew = createTurn(HOT);
    const nextMany = createTurn(MANY);
    /** @type {Record<string, (input: any) => Promise<unknown>>} */
    const sides = {
      "10 operations": (input) => few.registry.execute(few.operations[nextFew()], input),
      "100,000 operations": (input) => many.registry.execute(many.operations[nextFew()], input),
      "10 operations by id": (input) => few.registry.execute(ids[nextFew()], input),
      "100,000 operations by id": (input) => many.registry.execute(ids[nextFew()], input),
      "100,000 operations, each in turn": (input) => many.registry.execute(ids[nextMany()], input),
      "a Map of 100,000, each in turn": (input) => callByHand(byHand, ids[nextMany()] ?? "", input),
    };
    const comparison = await interleave(sides, { ...timing(options), values: inputs });
    printTable(`${name} (ten of them called, except where all are)`, comparison, "10 operations");
    return [
      judgeWithin(name, comparison, { side: "100,000 operations", base: "10 operations", times: 1.1 }),
      judgeWithin(name, comparison, {
        side: "100,000 operations by id",
        base: "10 operations by id",
        times: 1.1,
      }),
    ];
  },
});
