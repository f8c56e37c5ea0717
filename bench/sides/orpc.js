// @ts-check
import { createRouterClient, os } from "@orpc/server";
import { handlers } from "../fixtures/values.js";

/**
 * A server-side oRPC client as its documentation shows it: procedures with input and output schemas in
 * one router, called through `createRouterClient`.
 * @param {Record<"input" | "small" | "medium" | "large", any>} schemas
 * @returns {any}
 */
export function createOrpcClient(schemas) {
  /** @param {import("../fixtures/values.js").Size} size */
  const procedure = (size) =>
    os
      .input(schemas.input)
      .output(schemas[size])
      .handler(({ input }) => handlers[size](/** @type {any} */ (input)));
  const router = { small: procedure("small"), medium: procedure("medium"), large: procedure("large") };
  return createRouterClient(router, { context: {} });
}
