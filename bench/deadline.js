// @ts-check
import assert from "node:assert/strict";
import { runBench } from "./bench.js";
import { jsonSchemas } from "./fixtures/json-schemas.js";
import { handlers, inputs } from "./fixtures/values.js";
import { interleave } from "./interleave.js";
import { timing } from "./options.js";
import { judgeExtra, printTable } from "./report.js";
import { defineOperation, OperationRegistry } from "./waybill.js";

let signalsSeen = 0;

/** @param {string} name @param {(input: any, context: any) => Promise<unknown>} handler */
const operation = (name, handler) =>
  defineOperation({
    namespace: "deadline",
    name,
    version: "1.0.0",
    type: "query",
    description: "Returns a small result.",
    inputSchema: jsonSchemas.input,
    outputSchema: jsonSchemas.small,
    handler,
  });

const ignores = operation("ignores", handlers.small);
const reads = operation("reads", (input, context) => {
  if (context.signal instanceof AbortSignal && !context.signal.aborted) signalsSeen++;
  return handlers.small(input);
});
const registry = new OperationRegistry([ignores, reads], { outputPolicy: "strict" });

/** @typedef {import("./fixtures/values.js").Input} Input */

const sides = {
  "no deadline": (/** @type {Input} */ input) => registry.execute(ignores, input),
  "deadline, signal never read": (/** @type {Input} */ input) =>
    registry.execute(ignores, input, { timeoutMs: 30_000 }),
  "no deadline, signal read": (/** @type {Input} */ input) => registry.execute(reads, input),
  "deadline, signal read": (/** @type {Input} */ input) =>
    registry.execute(reads, input, { timeoutMs: 30_000 }),
};

await runBench("deadline", {
  "30s": async (name, options) => {
    await registry.execute(reads, inputs[0], { timeoutMs: 30_000 });
    assert.equal(signalsSeen, 1, "the handler sees a live signal");
    const comparison = await interleave(sides, { ...timing(options), values: inputs });
    printTable(name, comparison, "no deadline");
    return [
      judgeExtra(name, comparison, { side: "deadline, signal never read", base: "no deadline", limit: 1e3 }),
      judgeExtra(name, comparison, {
        side: "deadline, signal read",
        base: "no deadline, signal read",
        limit: 5e3,
      }),
      judgeExtra(name, comparison, { side: "deadline, signal read", base: "no deadline", limit: 5e3 }),
    ];
  },
});
