// @ts-check
import { createServer } from "node:http";
import { OpenAPIHandler } from "@orpc/openapi/node";
import { os } from "@orpc/server";
import { z } from "zod";

/** @param {string} name */
const add = (name) =>
  os
    .route({ method: "POST", path: `/bench/${name}` })
    .input(z.object({ a: z.number(), b: z.number() }))
    .output(z.object({ sum: z.number() }))
    .handler(({ input }) => ({ sum: input.a + input.b }));

const others = Array.from({ length: 99 }, (_, i) => [`other-${i}`, add(`other-${i}`)]);
const handler = new OpenAPIHandler({ bench: { ...Object.fromEntries(others), add: add("add") } });
const server = createServer(async (request, response) => {
  const { matched } = await handler.handle(request, response, { prefix: "/api", context: {} });
  if (!matched) response.writeHead(404).end();
});
server.listen(0, "127.0.0.1", () => {
  process.send?.({ port: /** @type {import("node:net").AddressInfo} */ (server.address()).port });
});
process.once("disconnect", () => process.exit());
