// @ts-check
import { createServer } from "node:http";

/** Answers every request with the same small JSON, as fast as Node can. */
const BODY = JSON.stringify({ id: 7, name: "Rex", tag: "dog", status: "available" });
const server = createServer((_, response) => {
  response.writeHead(200, { "content-type": "application/json", "content-length": BODY.length });
  response.end(BODY);
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => {
  process.send?.({ port: /** @type {import("node:net").AddressInfo} */ (server.address()).port });
});
process.once("disconnect", () => process.exit());
