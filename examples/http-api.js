// @ts-check
// Operations of this process as a documented HTTP API, with keys, idempotent posts and a stream.
import assert from "node:assert/strict";
import { defineOperation, OperationRegistry, Type } from "waybill";
import { createResultFormat } from "waybill/formats";
import { serveHttp } from "waybill/openapi";

/** @type {{ id: number, title: string }[]} */
const tasks = [];
const registry = new OperationRegistry([
  defineOperation({
    namespace: "task",
    name: "create",
    version: "1.0.0",
    type: "mutation",
    description: "Creates a task.",
    inputSchema: Type.Object({ title: Type.String({ minLength: 1 }) }),
    access: { scopes: { allOf: ["tasks:write"] } },
    handler: ({ title }) => {
      const task = { id: tasks.length + 1, title };
      tasks.push(task);
      return task;
    },
  }),
  defineOperation({
    namespace: "task",
    name: "list",
    version: "1.0.0",
    type: "query",
    description: "Lists tasks.",
    inputSchema: Type.Object({ contains: Type.Optional(Type.String()) }, { additionalProperties: false }),
    handler: ({ contains = "" }) => tasks.filter(({ title }) => title.includes(contains)),
  }),
]);

const http = await serveHttp(registry, {
  info: { title: "Tasks" },
  auth: { apiKeys: { keys: { "key-of-ada": { subject: "ada", scopes: ["tasks:write"] } } } },
  formats: [createResultFormat("tool-envelope")],
});
const headers = { "x-api-key": "key-of-ada", "content-type": "application/json" };

// The same post twice, with one key: it runs once.
const body = JSON.stringify({ title: "Ship it" });
const create = () =>
  fetch(`${http.url}/api/task/create`, {
    method: "POST",
    headers: { ...headers, "idempotency-key": "7f3a" },
    body,
  });
assert.deepEqual(await (await create()).json(), { id: 1, title: "Ship it" });
const again = await create();
assert.equal(again.headers.get("idempotency-replayed"), "true");
assert.equal(tasks.length, 1);

// A query is a GET, with an ETag.
const list = await fetch(`${http.url}/api/task/list?contains=Ship`, { headers });
const etag = list.headers.get("etag") ?? "";
const unchanged = await fetch(`${http.url}/api/task/list?contains=Ship`, {
  headers: { ...headers, "if-none-match": etag },
});
assert.equal(unchanged.status, 304);

// Any published format, by name.
const formatted = await fetch(`${http.url}/api/task/list?waybill-format=tool-envelope`, { headers });
assert.equal((await formatted.json()).content.length, 2);

// Nobody without a key.
assert.equal((await fetch(`${http.url}/api/task/list`)).status, 401);

const document = await (await fetch(`${http.url}/openapi.json`, { headers })).json();
await http.close();
console.log(`${document.info.title}: ${Object.keys(document.paths).length} paths, ${tasks.length} task`);
