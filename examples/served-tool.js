import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { fromMcp } from "waybill/mcp";

// Six lines are a tool that every MCP host can use. What an operation does not say has a default.
const server = fileURLToPath(new URL("./served-tool/server.js", import.meta.url));
const source = await fromMcp({ command: process.execPath, args: [server] }, { namespace: "calculator" });

const [tool] = source.operations;
assert.equal(tool?.name, "math_add");
assert.equal(tool?.description, "Add");
assert.equal(tool?.annotations?.readOnly, undefined); // a mutation, because nothing says that it only reads
assert.deepEqual((await source.call("math_add", { a: 2, b: 3 })).data, 5);

await source.close();
