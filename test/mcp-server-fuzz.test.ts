import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { OperationRegistry } from "../src/index.ts";
import { createMcpHandler, toMcpServer } from "../src/mcp/index.ts";
import { query } from "./make-operation.ts";
import { ENDPOINT, initialize, modern, post } from "./mcp-requests.ts";
import { runs, scaled } from "./runs.ts";

const faults: unknown[] = [];
const server = toMcpServer(new OperationRegistry([query("a.echo", (input) => input)]), {
  resources: [{ uri: "x://a", name: "a", read: () => "a" }],
  prompts: [{ name: "p", get: () => "p" }],
  onWarning: (message, cause) => faults.push([message, cause]),
});
const handler = createMcpHandler(server, { onWarning: (message, cause) => faults.push([message, cause]) });
afterAll(async () => {
  await handler.close();
  await server.close();
});

const METHODS = [
  "initialize",
  "notifications/initialized",
  "notifications/cancelled",
  "ping",
  "tools/list",
  "tools/call",
  "resources/list",
  "resources/read",
  "resources/subscribe",
  "resources/unsubscribe",
  "prompts/get",
  "completion/complete",
  "logging/setLevel",
  "server/discover",
  "subscriptions/listen",
  "__proto__",
];
const VERSIONS = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "2027-01-01", "", "junk"];

const METHOD = fc.constantFrom(...METHODS);
const ODD = fc.oneof(fc.jsonValue(), fc.constantFrom<unknown>("a_echo", "x://a", "p", "debug", 1, null, []));
const META = fc.record(
  {
    "io.modelcontextprotocol/protocolVersion": fc.oneof(fc.constantFrom(...VERSIONS), fc.jsonValue()),
    "io.modelcontextprotocol/clientInfo": fc.oneof(fc.constant({ name: "t", version: "1" }), fc.jsonValue()),
    "io.modelcontextprotocol/clientCapabilities": fc.oneof(fc.constant({}), fc.jsonValue()),
    "io.modelcontextprotocol/logLevel": ODD,
    progressToken: ODD,
    "dev.waybill/format": ODD,
  },
  { requiredKeys: [] },
);
const PARAMS = fc.record(
  {
    name: ODD,
    uri: ODD,
    arguments: ODD,
    cursor: ODD,
    level: ODD,
    ref: fc.oneof(
      ODD,
      fc.record({ type: fc.constantFrom("ref/prompt", "ref/resource"), name: ODD, uri: ODD }),
    ),
    argument: fc.oneof(ODD, fc.record({ name: ODD, value: ODD })),
    requestId: ODD,
    notifications: fc.oneof(ODD, fc.record({ resourceSubscriptions: fc.oneof(ODD, fc.array(ODD)) })),
    protocolVersion: fc.constantFrom(...VERSIONS),
    capabilities: fc.oneof(fc.constant({}), fc.jsonValue()),
    clientInfo: fc.oneof(fc.constant({ name: "t", version: "1" }), fc.jsonValue()),
    inputResponses: ODD,
    requestState: ODD,
    _meta: fc.oneof(META, fc.jsonValue()),
  },
  { requiredKeys: [] },
);
const MESSAGE = fc.record(
  {
    jsonrpc: fc.constantFrom<unknown>("2.0", "2.0", "2.0", "1.0", 2),
    id: fc.oneof(fc.nat(), fc.string(), fc.double(), fc.jsonValue()),
    method: fc.oneof(METHOD, fc.string()),
    params: fc.oneof(PARAMS, fc.jsonValue()),
    result: fc.jsonValue(),
    error: fc.jsonValue(),
  },
  { requiredKeys: ["jsonrpc"] },
);
const BODY = fc.oneof(
  { weight: 5, arbitrary: MESSAGE.map((message) => JSON.stringify(message)) },
  { weight: 2, arbitrary: fc.array(MESSAGE, { maxLength: 5 }).map((batch) => JSON.stringify(batch)) },
  { weight: 2, arbitrary: fc.json() },
  { weight: 1, arbitrary: fc.string({ unit: "binary" }) },
);

/** What the platform lets a header hold. */
const FIELD = fc.string({ maxLength: 40 }).map((text) => text.replace(/[^\x20-\x7e\x80-\xff]/g, ""));
const HEADERS = fc.record(
  {
    accept: fc.oneof(
      { weight: 4, arbitrary: fc.constant("application/json, text/event-stream") },
      { weight: 1, arbitrary: FIELD },
    ),
    "content-type": fc.oneof(
      { weight: 8, arbitrary: fc.constant("application/json") },
      { weight: 1, arbitrary: FIELD },
    ),
    "mcp-protocol-version": fc.oneof(fc.constantFrom(...VERSIONS), FIELD),
    "mcp-method": fc.oneof(METHOD, FIELD),
    "mcp-name": fc.oneof(fc.constantFrom("a_echo", "x://a", "p"), FIELD),
    "mcp-session-id": fc.oneof(fc.constant("mine"), fc.constant("mine"), FIELD),
    "last-event-id": fc.oneof(fc.constantFrom("1:_GET_stream", "0:a", "999999999999999:a"), FIELD),
    authorization: FIELD,
  },
  { requiredKeys: ["accept", "content-type"] },
);
/** What mostly has a request refused before anything else is looked at, and so comes with few. */
const REFUSED = fc.record(
  {
    "content-length": fc.oneof(fc.nat().map(String), FIELD),
    "content-encoding": FIELD,
    origin: fc.oneof(fc.constantFrom("http://localhost", "null"), FIELD),
  },
  { requiredKeys: [] },
);
const OTHERS = fc.dictionary(fc.stringMatching(/^[a-z][a-z0-9-]{0,20}$/), FIELD, { maxKeys: 3 });
const ALL_HEADERS = fc
  .tuple(
    OTHERS,
    HEADERS,
    fc.oneof({ weight: 6, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: REFUSED }),
  )
  .map(([others, headers, refused]) => ({ ...others, ...headers, ...refused }));
const VERB = fc.constantFrom("POST", "POST", "POST", "POST", "GET", "DELETE", "PUT", "OPTIONS", "HEAD");

/** Sends it, reads what comes at once, and leaves. */
async function statusOf(request: Request): Promise<number> {
  const response = await handler.fetch(request);
  expect(response).toBeInstanceOf(Response);
  await response.body?.cancel();
  return response.status;
}

describe("createMcpHandler, whatever it is sent", () => {
  it("Mcp: answers every request with a response, and with no fault of its own", async () => {
    let session = await initialize(handler);
    const statuses = new Map<number, number>();
    const tried = runs(1_500);
    await fc.assert(
      fc.asyncProperty(VERB, BODY, ALL_HEADERS, async (method, body, given) => {
        const headers = new Headers(given);
        if (headers.get("mcp-session-id") === "mine") headers.set("mcp-session-id", session);
        const posts = method === "POST" || method === "PUT";
        const status = await statusOf(new Request(ENDPOINT, { method, headers, ...(posts && { body }) }));
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        expect(status).not.toBe(500);
        if (method === "DELETE" && status === 200) session = await initialize(handler);
      }),
      tried,
    );
    expect(faults).toEqual([]);
    // The cases are worth something: many got through, and many did not. One in fifty does, which a few cases say nothing about.
    if (tried.numRuns >= 1_500) expect(statuses.get(200)).toBeGreaterThan(10);
    expect(statuses.get(400)).toBeGreaterThan(10);
    expect(Object.keys(Object.prototype)).toEqual([]);
  });

  it("Mcp: answers whatever a well-formed request asks for, in both revisions, without a fault of its own", async () => {
    const session = { "mcp-session-id": await initialize(handler) };
    let id = 10;
    let reached = 0;
    await fc.assert(
      fc.asyncProperty(METHOD, PARAMS, fc.boolean(), async (method, params, isModern) => {
        id += 1;
        const { _meta: _, ...rest } = params;
        const message = { jsonrpc: "2.0", id, method, params: rest };
        const status = await statusOf(isModern ? modern(method, rest) : post(message, session));
        expect(status).not.toBe(500);
        if (status === 200) reached += 1;
      }),
      runs(1_500),
    );
    expect(reached).toBeGreaterThan(scaled(300));
    expect(faults).toEqual([]);
  });

  it("Mcp: still serves whoever comes next", async () => {
    await initialize(handler);
  });
});
