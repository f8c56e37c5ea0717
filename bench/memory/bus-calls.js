// @ts-check
import { createWaybillCall } from "../bus/in-process.js";
import { createNatsCalls } from "../bus/over-nats.js";

/** Tells how much is alive after a tenth of the calls and after all of them. */
const [, , where, count] = process.argv;
const calls = Number(count);
const IN_FLIGHT = 256;

const { call, close } =
  where === "in-process"
    ? { call: await createWaybillCall(), close: async () => {} }
    : await createNatsCalls().then(({ calls: { waybill }, close }) => ({ call: waybill, close }));

/** @param {number} amount */
async function make(amount) {
  let left = amount;
  const caller = async () => {
    while (left-- > 0) await call({ a: 1, b: 2 });
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, caller));
}

async function alive() {
  await new Promise((resolve) => setTimeout(resolve, 100));
  globalThis.gc?.();
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

await make(calls / 10);
const early = await alive();
await make(calls - calls / 10);
const late = await alive();
await close();
process.send?.({ early, late });
process.disconnect?.();
