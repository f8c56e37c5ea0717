// @ts-check
import { assertSameWork } from "./assert-same-work.js";
import { runBench } from "./bench.js";
import { arkSchemas, arkStrippingSchemas } from "./fixtures/ark-schemas.js";
import { inputs, SIZES } from "./fixtures/values.js";
import { zodSchemas } from "./fixtures/zod-schemas.js";
import { interleave } from "./interleave.js";
import { timing } from "./options.js";
import { judgeFaster, judgeWithin, printTable } from "./report.js";
import { createFloor, createStrippingFloor } from "./sides/floor.js";
import { createOrpcClient } from "./sides/orpc.js";
import { createTrpcCaller } from "./sides/trpc.js";
import { createWaybill } from "./sides/waybill.js";

/** @typedef {import("./fixtures/values.js").Size} Size */
/** @typedef {import("./assert-same-work.js").Caller} Caller */

const { registry, operations } = createWaybill();
const orpcZod = createOrpcClient(zodSchemas);
/** Looking a procedure up in the client makes it anew; who calls one often may keep it. */
const heldOrpc = { small: orpcZod.small, medium: orpcZod.medium, large: orpcZod.large };
const orpcArk = createOrpcClient(arkSchemas);
const orpcArkStripping = createOrpcClient(arkStrippingSchemas);
const trpcZod = createTrpcCaller(zodSchemas);
const floor = await createFloor();
const strippingFloor = await createStrippingFloor();

/**
 * Every side for one size. Peers are called the way their documentation shows, through the client each time.
 * @param {Size} size
 * @returns {Record<string, Caller>}
 */
function callers(size) {
  const operation = operations[size];
  const id = `bench.${size}`;
  return {
    waybill: { call: (input) => registry.execute(operation, input), envelope: true, strips: true },
    "waybill by id": { call: (input) => registry.execute(id, input), envelope: true, strips: true },
    floor: { call: (input) => floor(id, input), envelope: true, strips: false },
    "floor that strips": { call: (input) => strippingFloor(id, input), envelope: true, strips: true },
    "oRPC + zod": { call: (input) => orpcZod[size](input), envelope: false, strips: true },
    "oRPC + zod, procedure held": { call: heldOrpc[size], envelope: false, strips: true },
    "oRPC + arktype": { call: (input) => orpcArk[size](input), envelope: false, strips: false },
    "oRPC + arktype that strips": {
      call: (input) => orpcArkStripping[size](input),
      envelope: false,
      strips: true,
    },
    "tRPC + zod": { call: (input) => trpcZod[size](input), envelope: false, strips: true },
  };
}

/** @param {Size} size @param {number} timesFloor */
function createCase(size, timesFloor) {
  /** @type {import("./bench.js").Case} */
  return async (name, options) => {
    const sides = Object.entries(callers(size)).map(([side, { call }]) => [side, call]);
    const comparison = await interleave(Object.fromEntries(sides), { ...timing(options), values: inputs });
    printTable(name, comparison, "waybill");
    const verdicts = [
      judgeFaster(name, comparison, { slow: "oRPC + zod", fast: "waybill", times: 8 }),
      judgeFaster(name, comparison, { slow: "tRPC + zod", fast: "waybill", times: 30 }),
      judgeWithin(name, comparison, { side: "waybill", base: "floor", times: timesFloor }),
    ];
    if (size !== "large") return verdicts;
    return [
      ...verdicts,
      judgeFaster(name, comparison, { slow: "oRPC + arktype", fast: "waybill", times: 1 }),
    ];
  };
}

// All sizes are exercised first, so that no size is timed in a registry that has only ever seen one operation.
for (const size of SIZES) await assertSameWork(size, callers(size));

await runBench("call", {
  small: createCase("small", 2),
  medium: createCase("medium", 1.5),
  large: createCase("large", 1.5),
});
