// @ts-check
// Tools of a product with plans: features above the caller's tier answer with a hint, and errors never quote code.
import assert from "node:assert/strict";
import { defineOperation, OperationRegistry, Type } from "waybill";
import { createToolCaller, parseTieredEnvelope } from "waybill/formats";

const scan = defineOperation({
  namespace: "code",
  name: "scan",
  version: "3.2.8",
  type: "query",
  description: "Scans a source text.",
  inputSchema: Type.Object({ source: Type.String(), crossFile: Type.Optional(Type.Boolean()) }),
  features: [
    { name: "cross-file", tier: "pro", reason: "Follows values across files.", pointer: "/crossFile" },
  ],
  handler: ({ source }) => {
    if (source.includes("?")) throw new SyntaxError(`Unexpected token in: ${source}`);
    return { findings: [] };
  },
});

const callTool = createToolCaller(new OperationRegistry([scan]), { format: "tiered-envelope" });
const call = async (/** @type {{ source: string, crossFile?: boolean }} */ input, tier = "community") =>
  parseTieredEnvelope(
    (await callTool(scan, input, { identity: { subject: "ada", tier } })).structuredContent,
  );

const free = await call({ source: "x", crossFile: true });
console.log(free.error?.error_code, free.upgrade_hints);
assert.equal(free.error?.error_code, "upgrade_required");
assert.deepEqual((await call({ source: "x", crossFile: true }, "pro")).data, { findings: [] });

const broken = await call({ source: "password = ?" });
console.log(broken.error);
assert.equal(JSON.stringify(broken).includes("password"), false);
