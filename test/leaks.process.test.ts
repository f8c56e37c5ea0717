import { describe, expect, it } from "vitest";
import { runNode } from "./run-node.ts";

/** Calls a tool over HTTP again and again, on one connection, and prints how many more objects the heap holds after the second half. */
const CALLS_OVER_HTTP = `
  import { json } from "node:stream/consumers";
  import { getHeapSnapshot } from "node:v8";
  import { OperationRegistry } from "waybill";
  import { fromMcp } from "waybill/mcp";
  const served = { name: "served", version: "1" };
  const answers = {
    "server/discover": { supportedVersions: ["2026-07-28"], capabilities: { tools: {} }, serverInfo: served, resultType: "complete", ttlMs: 0, cacheScope: "private" },
    "tools/list": { tools: [{ name: "add", inputSchema: { type: "object" } }], resultType: "complete", ttlMs: 0, cacheScope: "private" },
    "tools/call": { content: [{ type: "text", text: "3" }], resultType: "complete" },
  };
  const fetch = async (url, { body }) => {
    const { id, method } = JSON.parse(body);
    if (id === undefined) return new Response(null, { status: 202 });
    return Response.json({ jsonrpc: "2.0", id, result: answers[method] });
  };
  const source = await fromMcp({ url: "http://127.0.0.1:1/mcp" }, { namespace: "served", fetch });
  const registry = new OperationRegistry();
  registry.registerAll(source);
  const call = async (count) => {
    for (let done = 0; done < count; done += 100) {
      await Promise.all(Array.from({ length: 100 }, () => registry.execute("served.add", {})));
    }
  };
  // Objects that are still there after garbage is gone: all but what is compiled and its texts.
  const count = async () => {
    // Who called lingers for two seconds, for lines of the log that come late, until the next call.
    await new Promise((resolve) => setTimeout(resolve, 2_100));
    await call(100);
    await new Promise((resolve) => setTimeout(resolve, 20));
    const { snapshot, nodes } = await json(getHeapSnapshot());
    const { node_fields, node_types } = snapshot.meta;
    const kept = ["object", "hidden", "array", "closure", "native"].map((type) => node_types[0].indexOf(type));
    return nodes.filter((type, i) => i % node_fields.length === 0 && kept.includes(type)).length;
  };
  await call(2_000);
  const before = await count();
  await call(2_000);
  console.log(await count() - before);
  await source.close();
`;

describe("many calls on one connection", () => {
  it("RE-10 RE-23 over HTTP leave nothing behind in the connection", async () => {
    const ran = await runNode(["--input-type=module", "--eval", CALLS_OVER_HTTP]);
    expect(ran.stderr).toBe("");
    // Some come and go with what is compiled; one that each call leaves would be 2,000.
    expect(Number(ran.stdout)).toBeLessThan(1_000);
  });
});
