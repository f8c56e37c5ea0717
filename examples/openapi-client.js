// @ts-check
// An API somebody else runs, known by its document alone, called as typed operations.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { createClient, isCallError, OperationRegistry, unwrap } from "waybill";
import { fromOpenApi } from "waybill/openapi";

// The API: three pages of books, behind a key.
const api = createServer((request, response) => {
  const url = new URL(request.url ?? "/", "http://localhost");
  const answer = (/** @type {number} */ status, /** @type {unknown} */ body) =>
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  if (request.headers["x-api-key"] !== "secret") return answer(401, { error: "no key" });
  const book = /^\/books\/(\d+)$/.exec(url.pathname)?.[1];
  if (book !== undefined) return Number(book) <= 6 ? answer(200, { id: Number(book) }) : answer(404, {});
  const cursor = Number(url.searchParams.get("cursor") ?? 0);
  const items = [cursor + 1, cursor + 2].map((id) => ({ id }));
  return answer(200, { items, ...(cursor < 4 && { next_cursor: String(cursor + 2) }) });
}).listen(0, "127.0.0.1");
await once(api, "listening");
const { port } = /** @type {import("node:net").AddressInfo} */ (api.address());

// Its document, as one finds it; YAML and files work as well.
const book = { type: "object", required: ["id"], properties: { id: { type: "integer" } } };
const document = {
  openapi: "3.1.0",
  info: { title: "Books", version: "1.2" },
  servers: [{ url: `http://127.0.0.1:${port}` }],
  components: { securitySchemes: { key: { type: "apiKey", in: "header", name: "x-api-key" } } },
  security: [{ key: [] }],
  paths: {
    "/books": {
      get: {
        operationId: "listBooks",
        parameters: [{ name: "cursor", in: "query", schema: { type: "string" } }],
        responses: {
          200: {
            description: "A page",
            content: {
              "application/json": {
                schema: {
                  type: "object",
                  properties: { items: { type: "array", items: book }, next_cursor: { type: "string" } },
                },
              },
            },
          },
        },
      },
    },
    "/books/{id}": {
      get: {
        operationId: "getBook",
        parameters: [{ name: "id", in: "path", required: true, schema: { type: "integer" } }],
        responses: {
          200: { description: "A book", content: { "application/json": { schema: book } } },
        },
      },
    },
  },
};

const source = await fromOpenApi(document, {
  namespace: "books",
  auth: { key: "secret" },
  // The document names an address of this machine, which a document may not do unless we say so.
  allowPrivate: [`127.0.0.1:${port}`],
});
const registry = new OperationRegistry();
registry.registerAll(source);

const envelope = await registry.execute("books.getBook", { id: 3 });
assert.deepEqual(unwrap(envelope), { id: 3 });
assert.equal(envelope.meta.source, "http");

// An error status is a CallError, with a code from the one table.
const missing = await registry.execute("books.getBook", { id: 99 }).catch((error) => error);
assert.ok(isCallError(missing) && missing.code === "NOT_FOUND");

// Pages are followed: the document shows that `cursor` takes `next_cursor`.
/** @type {number[]} */
const ids = [];
for await (const page of createClient(registry).pages("books.listBooks", {})) {
  ids.push(.../** @type {{ items: { id: number }[] }} */ (page).items.map(({ id }) => id));
}
assert.deepEqual(ids, [1, 2, 3, 4, 5, 6]);

await source.close();
api.close();
console.log(`${ids.length} books over ${registry.size} operations`);
