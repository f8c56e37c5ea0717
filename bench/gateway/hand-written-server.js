// @ts-check
import { createServer } from "node:http";

/** The same sum by hand: what a gateway adds to an operation of its own is measured against it. */
const server = createServer((request, response) => {
  const { searchParams } = new URL(request.url ?? "/", "http://127.0.0.1");
  const body = JSON.stringify({ sum: Number(searchParams.get("a")) + Number(searchParams.get("b")) });
  response.writeHead(200, { "content-type": "application/json", "content-length": body.length });
  response.end(body);
});
server.listen(0, "127.0.0.1", () => {
  process.send?.({ port: /** @type {import("node:net").AddressInfo} */ (server.address()).port });
});
