// @ts-check
// Two MCP servers, one of them a process, behind one endpoint, with operations of this process beside them.
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { defineOperation, OperationRegistry, Type, unwrap } from "waybill";
import { fromMcp, serveMcpHttp, toMcpServer } from "waybill/mcp";

// A server somebody else runs…
const weather = toMcpServer(
  new OperationRegistry([
    defineOperation({
      namespace: "weather",
      name: "today",
      version: "1.0.0",
      type: "query",
      description: "Says what the weather is like.",
      inputSchema: Type.Object({ city: Type.String() }),
      outputSchema: Type.Object({ city: Type.String(), sky: Type.String() }),
      handler: ({ city }) => ({ city, sky: "clear" }),
    }),
  ]),
  { resources: [{ uri: "weather://legend", name: "legend", read: () => "clear: no cloud" }] },
);
const elsewhere = await serveMcpHttp(weather);

// …one that is started here…
const child = fileURLToPath(new URL("./mcp-conformance-server.js", import.meta.url));
const [remote, local] = await Promise.all([
  fromMcp(elsewhere.url, { namespace: "remote" }),
  fromMcp({ command: process.execPath, args: [child, "--stdio"] }, { namespace: "child" }),
]);

// …and an operation of our own, in one registry and behind one endpoint.
const registry = new OperationRegistry([
  defineOperation({
    namespace: "trip",
    name: "plan",
    version: "1.0.0",
    type: "query",
    description: "Plans a trip around the weather.",
    inputSchema: Type.Object({ city: Type.String() }),
    handler: async ({ city }, { execute }) => {
      const { sky } = /** @type {{ sky: string }} */ (
        unwrap(await execute("remote.weather_today", { city }))
      );
      return { city, advice: sky === "clear" ? "Go." : "Wait." };
    },
  }),
]);
registry.registerAll(remote);
registry.registerAll(local);
const gateway = toMcpServer(registry, { name: "gateway", providers: [remote, local] });
const http = await serveMcpHttp(gateway);

// Any client sees all of it; this one is ours.
const client = await fromMcp(http.url, { namespace: "all" });
assert.deepEqual((await client.call("trip_plan", { city: "Basel" })).data, { city: "Basel", advice: "Go." });
assert.deepEqual((await client.call("remote_weather_today", { city: "Bern" })).data, {
  city: "Bern",
  sky: "clear",
});
assert.match(JSON.stringify((await client.call("child_test_simple_text", {})).data), /simple text/);
const resources = await client.listResources();
assert.ok(resources.some(({ uri }) => uri === "weather://legend"));
assert.ok(resources.some(({ uri }) => uri === "test://static-text"));
assert.equal((await client.readResource("weather://legend")).contents[0]?.["text"], "clear: no cloud");
console.log([...client.operations].length, "tools and", resources.length, "resources behind one endpoint");

await client.close();
await http.close();
await gateway.close();
await Promise.all([remote.close(), local.close()]);
await elsewhere.close();
await weather.close();
