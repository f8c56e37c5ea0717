// @ts-check
import { initTRPC } from "@trpc/server";
import { handlers } from "../fixtures/values.js";

/**
 * A server-side tRPC caller as its documentation shows it: queries with input and output schemas in one
 * router, called through `createCallerFactory`.
 * @param {Record<"input" | "small" | "medium" | "large", any>} schemas
 * @returns {any}
 */
export function createTrpcCaller(schemas) {
  const t = initTRPC.create();
  /** @param {import("../fixtures/values.js").Size} size */
  const procedure = (size) =>
    t.procedure
      .input(schemas.input)
      .output(schemas[size])
      .query(({ input }) => handlers[size](/** @type {any} */ (input)));
  const router = t.router({
    small: procedure("small"),
    medium: procedure("medium"),
    large: procedure("large"),
  });
  return t.createCallerFactory(router)({});
}
