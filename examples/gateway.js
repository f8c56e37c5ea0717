// @ts-check
// A gateway inside a program of your own: an HTTP API and an operation of this process behind one endpoint, with policies.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createGateway, defineConfig, loadConfigObject, serveGateway } from "waybill/gateway";
import { fromMcp } from "waybill/mcp";

// Somebody else's API…
let asked = 0;
const api = createServer((request, response) => {
  asked += 1;
  response.setHeader("content-type", "application/json");
  response.end(
    JSON.stringify({ city: new URL(request.url ?? "/", "http://x").searchParams.get("city"), sky: "clear" }),
  );
});
await new Promise((resolve) => api.listen(0, "127.0.0.1", () => resolve(undefined)));
const { port } = /** @type {import("node:net").AddressInfo} */ (api.address());

// …its document, and a module with an operation of our own, as they would lie beside a config.
const folder = await mkdtemp(join(tmpdir(), "waybill-example-"));
await writeFile(
  join(folder, "weather.yaml"),
  `openapi: 3.1.0
info: { title: Weather, version: 1.0.0 }
paths:
  /today:
    get:
      operationId: today
      parameters: [{ name: city, in: query, required: true, schema: { type: string } }]
      responses:
        "200": { description: ok, content: { application/json: { schema: { type: object, properties: { sky: { type: string } } } } } }
`,
);
await writeFile(
  join(folder, "trip.mjs"),
  `export const plan = {
  namespace: "trip", name: "plan", version: "1.0.0", type: "query", description: "Plans a trip around the weather.",
  inputSchema: { type: "object", required: ["city"], properties: { city: { type: "string" } } },
  async handler({ city }, { execute }) {
    const { data } = await execute("weather.today", { city });
    return { city, advice: data.sky === "clear" ? "Go." : "Wait." };
  },
};
`,
);

const config = defineConfig({
  name: "travel",
  openapi: {
    weather: {
      document: "weather.yaml",
      baseUrl: `http://127.0.0.1:${port}`,
      policy: { cacheMs: 60_000, timeoutMs: 5_000 },
    },
  },
  mcpServers: { lost: { command: "there-is-no-such-command" } },
  operations: "*.mjs",
  serve: { port: 0 },
});
const loaded = await loadConfigObject(config, { baseDir: folder });
const gateway = await createGateway(loaded);
await gateway.ready;
const server = await serveGateway(gateway, loaded);

// One source is down, and says why; the rest works.
const states = gateway.sources.map(({ name, state }) => `${name} is ${state.status}`);
assert.deepEqual(states, ["lost is down", "weather is up", "local is up"]);

// Over HTTP…
const answer = await fetch(`${server.url}/api/trip/plan?city=Basel`);
assert.deepEqual(await answer.json(), { city: "Basel", advice: "Go." });
// …and over MCP; the weather was kept meanwhile.
const client = await fromMcp(`${server.url}/mcp`, { namespace: "travel" });
assert.deepEqual((await client.call("trip_plan", { city: "Basel" })).data, { city: "Basel", advice: "Go." });
assert.equal(asked, 1);
const down = await fetch(`${server.url}/api/lost/read`);
assert.equal(down.status, 503);
console.log((await down.json()).detail);

await client.close();
await server.close();
await gateway.close();
api.close();
await rm(folder, { recursive: true });
