// @ts-check
// A destructive call waits until a person has approved it, and runs once.
// Run: node examples/approve-a-call.js
import assert from "node:assert/strict";
import { defineOperation, Type } from "waybill";
import { createGateway, defineConfig, loadConfigObject, serveGateway } from "waybill/gateway";

/** @type {string[]} */
const dropped = [];
const drop = defineOperation({
  namespace: "db",
  name: "drop",
  description: "Drops a table.",
  inputSchema: Type.Object({ table: Type.String() }),
  annotations: { destructive: true },
  handler: ({ table }) => {
    dropped.push(table);
    return { dropped: table };
  },
});

const config = defineConfig({
  policies: { "*": { approve: { calls: "destructive", holdMs: 0 } } },
  serve: {
    port: 0,
    auth: {
      tokens: {
        agent: { token: "the-token-of-agent-1" },
        ada: { token: "the-token-of-ada-123", scopes: ["waybill:approve"] },
      },
    },
  },
});
const loaded = {
  ...(await loadConfigObject(config, { baseDir: import.meta.dirname })),
  localOperations: [drop],
};
const gateway = await createGateway(loaded);
await gateway.ready;
const server = await serveGateway(gateway, loaded);

/** @param {string} token @param {string} path @param {object} [body] */
const ask = (token, path, body) =>
  fetch(`${server.url}${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
/** @param {string} table */
const call = (table) => ask("the-token-of-agent-1", "/api/db/drop", { table });

// The agent is told that somebody has to approve the call, and where it waits.
const first = await call("users");
assert.equal(first.status, 428);
const { code, details } = await first.json();
assert.equal(code, "APPROVAL_REQUIRED");
assert.match(details.approval.url, /\/approvals\//);

// Ada sees who asks for what, and approves it. `waybill approvals` and the page at /approvals do the same.
const { approvals } = await (await ask("the-token-of-ada-123", "/approvals/api")).json();
assert.equal(approvals[0].caller.subject, "agent");
assert.deepEqual(JSON.parse(approvals[0].input), { table: "users" });
const path = `/approvals/api/${approvals[0].id}`;
assert.equal((await ask("the-token-of-agent-1", path, { decision: "approve" })).status, 403);
assert.equal((await ask("the-token-of-ada-123", path, { decision: "approve" })).status, 200);

// Another input is another call; the same call runs, and once.
assert.equal((await call("orders")).status, 428);
assert.deepEqual(await (await call("users")).json(), { dropped: "users" });
assert.equal((await call("users")).status, 428);
assert.deepEqual(dropped, ["users"]);

await server.close();
await gateway.close();
console.log("The call ran once, after somebody had approved it.");
