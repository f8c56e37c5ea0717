// @ts-check
import { appendFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { defineOperation, Type } from "waybill";

/** Writes a line for every run, so that it can be counted how often an order was placed. */
export const order = defineOperation({
  namespace: "shop",
  name: "order",
  version: "1.0.0",
  type: "mutation",
  description: "Places an order.",
  inputSchema: Type.Object({ title: Type.String(), ms: Type.Optional(Type.Integer()) }),
  outputSchema: Type.Object({ title: Type.String(), by: Type.Integer() }),
  handler: async ({ title, ms = 0 }) => {
    appendFileSync(/** @type {string} */ (process.env["ORDERS"]), `${title} ${process.pid}\n`);
    await pause(ms);
    return { title, by: process.pid };
  },
});
