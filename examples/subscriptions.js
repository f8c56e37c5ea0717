// @ts-check
// A subscription yields envelopes; leaving the loop stops the handler.
import assert from "node:assert/strict";
import { defineOperation, OperationRegistry, Type } from "waybill";

let stopped = false;

const ticks = defineOperation({
  namespace: "clock",
  name: "ticks",
  version: "1.0.0",
  type: "subscription",
  description: "Counts up until nobody listens.",
  inputSchema: Type.Object({ from: Type.Integer() }),
  outputSchema: Type.Object({ tick: Type.Integer() }),
  async *handler({ from }) {
    try {
      for (let tick = from; ; tick++) yield { tick };
    } finally {
      stopped = true;
    }
  },
});

const registry = new OperationRegistry([ticks]);

const seen = [];
for await (const { data, meta } of registry.subscribe(ticks, { from: 7 })) {
  seen.push([meta.waybill?.sequence, data.tick]);
  if (seen.length === 3) break;
}

assert.deepEqual(seen, [
  [0, 7],
  [1, 8],
  [2, 9],
]);
assert.equal(stopped, true);

// A deadline is not a normal end: it is thrown.
const patient = registry.subscribe(ticks, { from: 0 }, { timeoutMs: 20 });
await assert.rejects(
  async () => {
    for await (const _envelope of patient) await new Promise((resolve) => setTimeout(resolve, 5));
  },
  { code: "TIMEOUT" },
);
console.log("Subscriptions numbered their values, stopped when left and ended at the deadline.");
