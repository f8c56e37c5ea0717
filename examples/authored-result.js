// @ts-check
// An operation says what it has to say once; every format and surface says it in its own way.
import assert from "node:assert/strict";
import { defineOperation, OperationRegistry, outcomeOf, result, Type, toolError } from "waybill";
import {
  composeToolPayload,
  createToolCaller,
  decodeToolResult,
  parseEnvelopeBlock,
  parseTieredEnvelope,
} from "waybill/formats";
import { fromOpenApi, serveHttp } from "waybill/openapi";

const search = defineOperation({
  namespace: "shop",
  name: "search",
  version: "1.0.0",
  type: "query",
  description: "Searches orders.",
  inputSchema: Type.Object({ words: Type.String() }, { additionalProperties: false }),
  outputSchema: Type.Object({
    orders: Type.Array(
      Type.Object({ id: Type.String(), status: Type.Union([Type.Literal("open"), Type.Literal("shipped")]) }),
    ),
  }),
  errors: { NO_WORDS: { description: "There is nothing to search for.", httpStatus: 422 } },
  handler: ({ words }) => {
    if (words === "") {
      return toolError(null, {
        code: "NO_WORDS",
        message: "There is nothing to search for.",
        suggestedAction: "Give at least one word.",
        nextTool: "shop_list",
      });
    }
    return result(
      { orders: [{ id: "o-1", status: "open" }] },
      {
        status: "warn",
        summary: "1 order, which is late",
        nextSteps: ["Ship o-1."],
        links: [{ uri: "https://shop.example/orders/o-1", name: "Order o-1" }],
        capabilities: ["search-v2"],
      },
    );
  },
});
const registry = new OperationRegistry([search]);

/**
 * What a host shows that shows nothing but text.
 * @param {import("waybill").CallToolResult} result
 */
const textOf = ({ content }) =>
  content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");

// A status envelope has a field for nearly all of it.
const status = await createToolCaller(registry, { format: "status-envelope" })(search, { words: "late" });
console.log(textOf(status));
assert.equal(textOf(status), "⚠️ 1 order, which is late\nNext steps:\n- Ship o-1.");

// A tool envelope says it to people in its first block, and the data to programs in its second.
const envelope = await createToolCaller(registry, { format: "tool-envelope" })(search, { words: "late" });
const [first, second] = envelope.content;
assert.ok(first?.type === "text" && first.text.startsWith("⚠️ 1 order, which is late"));
assert.ok(second?.type === "text");
assert.deepEqual(parseEnvelopeBlock(second.text).payload, { orders: [{ id: "o-1", status: "open" }] });

// A tiered envelope has capabilities, and no summary; what it cannot hold travels beside it.
const tiered = await createToolCaller(registry, { format: "tiered-envelope" })(search, { words: "late" });
const { capabilities } = parseTieredEnvelope(tiered.structuredContent);
assert.deepEqual(capabilities, ["envelope-v1", "search-v2"]);
assert.equal(decodeToolResult(tiered).result?.summary, "1 order, which is late");

// Over HTTP the data is the body, an error is a problem, and an importer hears all of it.
const http = await serveHttp(registry);
const problem = await fetch(`${http.url}/api/shop/search?words=`);
assert.equal(problem.status, 422);
const { detail, suggestedAction, nextTool } = /** @type {Record<string, unknown>} */ (await problem.json());
console.log(detail, suggestedAction);
assert.deepEqual([suggestedAction, nextTool], ["Give at least one word.", "shop_list"]);
const source = await fromOpenApi(`${http.url}/openapi.json`, { namespace: "far", keepIds: true });
const far = new OperationRegistry();
far.registerAll(source);
const { meta } = await far.execute("shop.search", { words: "late" });
assert.deepEqual(meta.waybill?.said?.nextSteps, ["Ship o-1."]);
await source.close();
await http.close();

// What a helper of a format makes is a result as well: its error is the operation's.
const old = defineOperation({
  namespace: "shop",
  name: "old",
  version: "1.0.0",
  type: "query",
  description: "Answers as it always did.",
  handler: () =>
    composeToolPayload({ meta: { status: "error", summary: "The index is being rebuilt" }, data: null }),
});
registry.register(old);
assert.equal(outcomeOf(await registry.execute(old)), "tool_error");
