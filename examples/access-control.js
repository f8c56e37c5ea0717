// @ts-check
// Access is decided in one place, before validation, for calls, lists and nested calls alike.
import assert from "node:assert/strict";
import { defineOperation, OperationRegistry, Type, unwrap } from "waybill";

const readDocument = defineOperation({
  namespace: "document",
  name: "read",
  version: "1.0.0",
  type: "query",
  description: "Reads a document.",
  inputSchema: Type.Object({ documentId: Type.String() }),
  outputSchema: Type.Object({ text: Type.String() }),
  access: {
    scopes: { anyOf: ["documents:read", "documents:write"] },
    resource: { type: "document", pointer: "/documentId" },
  },
  handler: ({ documentId }) => ({ text: `the text of ${documentId}` }),
});

const countVisits = defineOperation({
  namespace: "stats",
  name: "visits",
  version: "1.0.0",
  type: "query",
  description: "Counts; for other operations only.",
  visibility: "internal",
  handler: () => 42,
});

const dashboard = defineOperation({
  namespace: "stats",
  name: "dashboard",
  version: "1.0.0",
  type: "query",
  description: "Shows a number and a document, read as whoever asks.",
  handler: async (_input, { execute }) => ({
    visits: unwrap(await execute(countVisits)),
    welcome: unwrap(await execute(readDocument, { documentId: "welcome" })).text,
  }),
});

const registry = new OperationRegistry([readDocument, countVisits, dashboard]);

const ada = { subject: "ada", scopes: ["documents:read"], resources: { document: ["welcome"] } };
const bob = { subject: "bob", scopes: ["invoices:read"] };

assert.deepEqual(unwrap(await registry.execute(readDocument, { documentId: "welcome" }, { identity: ada })), {
  text: "the text of welcome",
});
const denied = { code: "ACCESS_DENIED" };
await assert.rejects(registry.execute(readDocument, { documentId: "secret" }, { identity: ada }), denied);
await assert.rejects(registry.execute(readDocument, { documentId: "welcome" }, { identity: bob }), denied);
await assert.rejects(registry.execute(readDocument, { documentId: "welcome" }), { code: "UNAUTHENTICATED" });

// An internal operation answers like one that does not exist, and is not listed; a nested call reaches it.
await assert.rejects(registry.execute(countVisits), { code: "OPERATION_NOT_FOUND" });
assert.deepEqual(unwrap(await registry.execute(dashboard, undefined, { identity: ada })), {
  visits: 42,
  welcome: "the text of welcome",
});

// Nested calls run as the original caller, so bob gets no further this way.
await assert.rejects(registry.execute(dashboard, undefined, { identity: bob }), denied);

/** @param {import("waybill").Identity} identity */
const listed = (identity) => registry.list({ identity }).map((operation) => operation.id);
assert.deepEqual(listed(ada), ["document.read", "stats.dashboard"]);
assert.deepEqual(listed(bob), ["stats.dashboard"]);
console.log("Ada may list", listed(ada), "and Bob", listed(bob));
