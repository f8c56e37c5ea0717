import { runInNewContext } from "node:vm";
import { Value } from "typebox/value";
import { expect } from "vitest";
import { CallEventSchema, createMemoryBus, PendingRequestMap, serveCalls } from "../../src/call/index.ts";
import {
  CallError,
  compileSchema,
  httpEnvelope,
  isResponseEnvelope,
  localEnvelope,
  MCPContentBlockSchema,
  mcpEnvelope,
  outcomeOf,
  RESPONSE_SOURCES,
  type RegistryWarning,
  type ResponseEnvelope,
  ResponseEnvelopeSchema,
  ResponseMetaSchema,
  Type,
  toolError,
  unwrap,
} from "../../src/index.ts";
import { collect, query, rejection, stream } from "../make-operation.ts";
import { openEnd } from "../open-end.ts";
import { readSourceFiles } from "../source-files.ts";
import { registryOf, type SeedDocument } from "./sentence.ts";

const TEXT = { type: "text", text: "Done" } as const;
const HTTP = {
  statusCode: 200,
  headers: { "content-type": "application/json" },
  contentType: "application/json",
};
const MCP = { isError: false, content: [TEXT] };
const DENIED = mcpEnvelope([TEXT], { isError: true, content: [TEXT] });
const Count = Type.Object({ count: Type.Integer() });
const code = (expected: string) => expect.objectContaining({ code: expected });
const registry = (handler: () => unknown, extra = {}) => registryOf([query("task.run", handler, extra)]);
const run = (handler: () => unknown, extra = {}): Promise<ResponseEnvelope> =>
  registry(handler, extra).execute("task.run", {});

/** Operations behind a bus, called as the protocol does it; gives what `use` gives. */
async function onBus<T>(
  operations: Parameters<typeof registryOf>[0],
  use: (map: PendingRequestMap, bus: ReturnType<typeof createMemoryBus>) => Promise<T>,
): Promise<T> {
  const bus = createMemoryBus();
  const handler = await serveCalls(registryOf(operations), bus);
  const map = new PendingRequestMap(bus);
  try {
    return await use(map, bus);
  } finally {
    await map.close();
    await handler.drain();
    await bus.close();
  }
}

/** The first half of the proposal: envelopes, the registry, and the call protocol. */
export const envelopeProposal: SeedDocument = {
  Problem: [
    [
      "RE-1",
      "a consumer can tell what source made a result",
      async () => {
        const made = [localEnvelope(1, "a.b"), httpEnvelope(1, HTTP), mcpEnvelope(1, MCP)];
        const sources = made.map((envelope) => run(() => envelope).then(({ meta }) => meta.source));
        expect(await Promise.all(sources)).toEqual(["local", "http", "mcp"]);
      },
    ],
    [
      "RE-3 RE-4",
      "a consumer gets at the status of HTTP and the error flag of MCP",
      async () => {
        expect((await run(() => httpEnvelope(1, HTTP))).meta).toMatchObject({ statusCode: 200 });
        expect((await run(() => DENIED)).meta).toMatchObject({ isError: true });
      },
    ],
    [
      "RE-10 X-6",
      "operations of several sources are put together through one interface",
      async () => {
        const operations = [
          query("a.local", () => 1),
          query("a.http", () => httpEnvelope(2, HTTP)),
          query("a.mcp", () => mcpEnvelope(3, MCP)),
          query("a.sum", async (_, { execute }) => {
            const parts = await Promise.all(["a.local", "a.http", "a.mcp"].map((id) => execute(id, {})));
            return parts.reduce((sum, { data }) => sum + (data as number), 0);
          }),
        ];
        expect((await registryOf(operations).execute("a.sum", {})).data).toBe(6);
      },
    ],
  ],
  Types: [
    [
      "RE-1",
      "an envelope has data and meta, and meta.source is one of three",
      () => {
        expect(Object.keys(localEnvelope(1, "a.b"))).toEqual(["data", "meta"]);
        expect(RESPONSE_SOURCES).toEqual(["local", "http", "mcp"]);
      },
    ],
    [
      "RE-2",
      "local meta has the full id of the operation, and the time of wrapping in milliseconds",
      async () => {
        const before = Date.now();
        const { meta } = await run(() => 1);
        expect(meta).toEqual({ source: "local", operationId: "task.run", timestamp: expect.any(Number) });
        expect((meta as { timestamp: number }).timestamp).toBeGreaterThanOrEqual(before);
        expect((meta as { timestamp: number }).timestamp).toBeLessThanOrEqual(Date.now());
      },
    ],
    [
      "RE-3",
      "HTTP meta has status, headers and content type; several values of a header are joined",
      () => {
        const headers = new Headers([
          ["accept-ranges", "a"],
          ["accept-ranges", "b"],
        ]);
        expect(httpEnvelope(1, { statusCode: 206, headers, contentType: null }).meta).toEqual({
          source: "http",
          statusCode: 206,
          headers: { "accept-ranges": "a, b" },
          contentType: "",
        });
      },
    ],
    [
      "RE-3",
      "cookies that are set cannot be told apart once they are joined",
      () => {
        const setCookie = ["a=1; Expires=Wed, 01 Jan 2031 00:00:00 GMT", "b=2"];
        expect(httpEnvelope(1, { ...HTTP, setCookie }).meta).toMatchObject({ setCookie });
      },
      "`setCookie?: string[]` keeps what joining would break",
    ],
    [
      "RE-4",
      "MCP meta mirrors the tool result: isError, content, structuredContent and _meta, the last two where they are",
      () => {
        expect(mcpEnvelope(1, MCP).meta).toEqual({ source: "mcp", isError: false, content: [TEXT] });
        const more = { ...MCP, structuredContent: { a: 1 }, _meta: { "x/y": 2 } };
        expect(mcpEnvelope({ a: 1 }, more).meta).toEqual({ source: "mcp", ...more });
      },
    ],
    [
      "RE-4 RE-20",
      "isError: true is a result and no exception; consumers look at meta.isError",
      async () => {
        const envelope = await run(() => DENIED);
        expect(envelope.meta.isError).toBe(true);
        expect(outcomeOf(envelope)).toBe("tool_error");
      },
    ],
    ...Object.entries({
      text: { type: "text", text: "x" },
      image: { type: "image", data: "AAAA", mimeType: "image/png" },
      audio: { type: "audio", data: "AAAA", mimeType: "audio/wav" },
      resource: {
        type: "resource",
        resource: { uri: "a:b", mimeType: "text/plain", text: "x", blob: "AAAA" },
      },
      resource_link: {
        type: "resource_link",
        uri: "a:b",
        name: "B",
        description: "x",
        mimeType: "text/plain",
      },
    }).map(
      ([type, block]) =>
        [
          "RE-5",
          `a block may be of the kind ${type}, with annotations`,
          () => {
            const annotations = { audience: ["user", "assistant"], priority: 1, lastModified: "2026-01-01" };
            for (const each of [block, { ...block, annotations }]) {
              expect(Value.Check(MCPContentBlockSchema, each)).toBe(true);
              expect(isResponseEnvelope(mcpEnvelope(1, { isError: false, content: [each as never] }))).toBe(
                true,
              );
            }
            expect(Value.Check(MCPContentBlockSchema, { type })).toBe(false);
          },
        ] as const,
    ),
    [
      "RE-5",
      "these types are our own: the main entry needs no SDK of MCP",
      () => {
        const files = [
          ...readSourceFiles("src/core"),
          ...readSourceFiles("src").filter(({ path }) => path === "src/index.ts"),
        ];
        const importing = files.filter(
          ({ path, text }) => !path.includes(".test") && text.includes("@modelcontextprotocol"),
        );
        expect(importing.map(({ path }) => path)).toEqual([]);
      },
    ],
  ],
  Detection: [
    [
      "RE-7",
      "no object, no data, no meta or no known source is no envelope",
      () => {
        const meta = localEnvelope(1, "a.b").meta;
        const others = [
          null,
          5,
          "x",
          [],
          {},
          { data: 1 },
          { meta },
          { data: 1, meta: null },
          { data: 1, meta: 7 },
        ];
        for (const value of others) expect(isResponseEnvelope(value)).toBe(false);
        expect(isResponseEnvelope({ data: 1, meta })).toBe(true);
      },
    ],
    [
      "RE-7",
      "a source that is not registered is none",
      () => {
        const meta = { source: "ftp", operationId: "a.b", timestamp: 1 };
        expect(isResponseEnvelope({ data: 1, meta })).toBe(false);
        expect(Value.Check(ResponseMetaSchema, meta)).toBe(false);
      },
    ],
    [
      "RE-7",
      "an envelope is one after it was JSON",
      () => {
        for (const made of [localEnvelope(1, "a.b"), httpEnvelope(1, HTTP), mcpEnvelope(1, MCP)])
          expect(isResponseEnvelope(JSON.parse(JSON.stringify(made)))).toBe(true);
      },
    ],
    [
      "RE-7",
      "an envelope of another realm is one",
      () => {
        const text = JSON.stringify(mcpEnvelope({ a: 1 }, MCP));
        expect(isResponseEnvelope(runInNewContext(`JSON.parse(${JSON.stringify(text)})`))).toBe(true);
      },
    ],
    [
      "RE-11",
      "execute tells by that shape alone whether a handler returned an envelope",
      async () => {
        const lookalike = { data: "forged", meta: { source: "local", operationId: "a.b", timestamp: 1 } };
        expect(isResponseEnvelope(lookalike)).toBe(true);
        const envelope = await run(() => lookalike);
        expect(envelope.data).toBe(lookalike);
        expect(envelope.meta).toMatchObject({ operationId: "task.run" });
      },
      "003",
    ],
  ],
  "Factory functions": [
    [
      "RE-6",
      "localEnvelope wraps with source, operation and time",
      () =>
        expect(localEnvelope("x", "a.b")).toEqual({
          data: "x",
          meta: { source: "local", operationId: "a.b", timestamp: expect.any(Number) },
        }),
    ],
    [
      "RE-6",
      "httpEnvelope and mcpEnvelope take all of meta but its source, which cannot be smuggled in",
      () => {
        expect(httpEnvelope("x", HTTP)).toEqual({ data: "x", meta: { source: "http", ...HTTP } });
        expect(mcpEnvelope("x", MCP)).toEqual({ data: "x", meta: { source: "mcp", ...MCP } });
        expect(mcpEnvelope("x", { ...MCP, source: "local" } as never).meta.source).toBe("mcp");
      },
    ],
    [
      "RE-6",
      "a handler that returns nothing has undefined for data",
      async () => {
        expect(isResponseEnvelope(localEnvelope(undefined, "a.b"))).toBe(true);
        expect(await run(() => undefined)).toMatchObject({ data: undefined, meta: { source: "local" } });
      },
    ],
  ],
  Utility: [
    [
      "RE-8",
      "unwrap gives the data",
      async () => {
        const data = { id: 1 };
        expect(unwrap(await run(() => data))).toBe(data);
      },
    ],
  ],
  "Schema constants": [
    [
      "RE-9",
      "there is a schema for the envelope, and one for meta that is the union of three",
      () => {
        for (const made of [localEnvelope(1, "a.b"), httpEnvelope(1, HTTP), mcpEnvelope(1, MCP)]) {
          expect(compileSchema(ResponseEnvelopeSchema).check(JSON.parse(JSON.stringify(made)))).toBe(true);
          expect(Value.Check(ResponseMetaSchema, made.meta)).toBe(true);
        }
        expect(Value.Check(ResponseEnvelopeSchema, { data: 1 })).toBe(false);
      },
    ],
  ],
  "execute()": [
    [
      "RE-10",
      "an id that is not there, then an input that does not fit, end the call before the handler runs",
      async () => {
        let runs = 0;
        const operations = registry(() => runs++, { inputSchema: Type.Object({ id: Type.String() }) });
        expect(await rejection(operations.execute("task.none", {}))).toEqual(code("OPERATION_NOT_FOUND"));
        expect(await rejection(operations.execute("task.run", {}))).toEqual(code("VALIDATION_ERROR"));
        expect(runs).toBe(0);
      },
    ],
    [
      "RE-11",
      "an envelope passes through as it is, a frozen one too, of whatever source",
      async () => {
        const made = [localEnvelope(1, "other.origin"), httpEnvelope(1, HTTP), mcpEnvelope(1, MCP)];
        for (const envelope of made) expect(await run(() => Object.freeze(envelope))).toBe(envelope);
      },
    ],
    [
      "RE-10",
      "any other value is wrapped in a local envelope with the operation's id",
      async () => {
        for (const value of [0, "", null, false, [], {}])
          expect(await run(() => value)).toMatchObject({
            data: value,
            meta: { source: "local", operationId: "task.run" },
          });
      },
    ],
    [
      "RE-12",
      "data that does not fit outputSchema is warned of, and returned",
      async () => {
        const warnings: RegistryWarning[] = [];
        const operation = query("task.run", () => ({ count: "many" }), { outputSchema: Count });
        const operations = registryOf([operation], { onWarning: (warning) => warnings.push(warning) });
        const envelope = await operations.execute("task.run", {});
        expect(envelope.data).toEqual({ count: "many" });
        expect(warnings).toMatchObject([{ type: "output-invalid", operationId: "task.run" }]);
      },
    ],
    [
      "RE-12",
      "it is the data of the envelope that is held against outputSchema",
      async () => {
        const envelope = await run(() => mcpEnvelope({ count: "many" }, MCP), { outputSchema: Count });
        expect(envelope.meta.waybill?.violations).toMatchObject([{ pointer: "/count" }]);
        const right = await run(() => mcpEnvelope({ count: 1 }, MCP), { outputSchema: Count });
        expect(right.meta.waybill ?? {}).not.toHaveProperty("violations");
      },
    ],
  ],
  CallHandler: [
    [
      "RE-18 RE-19",
      "a handler returns and publishes nothing; what it returned is wrapped and answered",
      () =>
        onBus([query("a.b", () => 7)], async (map) => {
          const envelope = await map.call("a.b");
          expect(envelope).toMatchObject({ data: 7, meta: { source: "local", operationId: "a.b" } });
        }),
    ],
    [
      "RE-18",
      "an envelope that a handler returned is answered as it is",
      () =>
        onBus([query("a.b", () => httpEnvelope(7, HTTP))], async (map) => {
          expect((await map.call("a.b")).meta).toMatchObject({ source: "http", statusCode: 200 });
        }),
    ],
    [
      "RE-18",
      "access is checked, then the input, and the handler does not run",
      () => {
        const inputSchema = Type.Object({ id: Type.String() });
        const access = { scopes: { allOf: ["s"] } };
        const operations = [
          query("a.closed", () => 1, { inputSchema, access }),
          query("a.open", () => 1, { inputSchema }),
        ];
        return onBus(operations, async (map) => {
          expect(await rejection(map.call("a.closed", {}))).toEqual(code("UNAUTHENTICATED"));
          expect(await rejection(map.call("a.open", {}))).toEqual(code("VALIDATION_ERROR"));
        });
      },
      "Access before validation",
    ],
    [
      "RE-12 RE-18",
      "data that does not fit outputSchema is answered all the same",
      () =>
        onBus([query("a.b", () => ({ count: "many" }), { outputSchema: Count })], async (map) => {
          expect((await map.call("a.b")).data).toEqual({ count: "many" });
        }),
    ],
    [
      "RE-20",
      "what a handler throws becomes call.error",
      () => {
        const throws = query("a.b", () => {
          throw new CallError("NOT_FOUND");
        });
        return onBus([throws], async (map, bus) => {
          const heard: string[] = [];
          bus.onCall(({ type }) => heard.push(type));
          expect(await rejection(map.call("a.b"))).toEqual(code("NOT_FOUND"));
          expect(heard).toContain("error");
          expect(heard).not.toContain("responded");
        });
      },
    ],
    [
      "RE-20",
      "an envelope with isError: true does not",
      () =>
        onBus([query("a.mcp", () => DENIED), query("a.local", () => toolError("no"))], async (map, bus) => {
          const heard: string[] = [];
          bus.onCall(({ type }) => heard.push(type));
          for (const id of ["a.mcp", "a.local"]) expect(outcomeOf(await map.call(id))).toBe("tool_error");
          expect(heard).toContain("responded");
          expect(heard).not.toContain("error");
        }),
    ],
  ],
  PendingRequestMap: [
    [
      "RE-19",
      "respond() throws on anything that is no envelope, and the call goes on waiting",
      async () => {
        const { map, last } = openEnd();
        const answer = map.call("a.b");
        for (const raw of [undefined, 7, { data: 1 }, { data: 1, meta: { source: "ftp" } }])
          expect(() => map.respond(last().asker, raw)).toThrow(TypeError);
        map.respond(last().asker, localEnvelope(1, "a.b"));
        expect((await answer).data).toBe(1);
      },
    ],
    [
      "RE-29",
      "whoever knows a request id can answer it with respond(), which may become internal one day",
      async () => {
        const { map, last } = openEnd();
        const answer = map.call("a.b", 1, { requestId: "known" });
        map.respond("known", localEnvelope("forged", "a.b"));
        expect([map.size, map.counters.forged]).toEqual([1, 1]);
        map.respond(last().asker, localEnvelope("true", "a.b"));
        expect((await answer).data).toBe("true");
      },
      "007",
    ],
    [
      "RE-19",
      "call() resolves with the envelope that was answered",
      async () => {
        const { map, last } = openEnd();
        const answer = map.call("a.b");
        const envelope = localEnvelope({ a: 1 }, "a.b");
        map.respond(last().asker, envelope);
        expect(await answer).toBe(envelope);
      },
    ],
  ],
  "subscribe()": [
    [
      "RE-14 RE-21",
      "a handler yields plain values, and each is wrapped with a time of its own",
      async () => {
        const values = async function* () {
          yield 1;
          yield 2;
        };
        const found = await collect(registryOf([stream("a.s", values)]).subscribe("a.s"));
        expect(found.map(({ data }) => data)).toEqual([1, 2]);
        for (const { meta } of found)
          expect(meta).toMatchObject({ source: "local", operationId: "a.s", timestamp: expect.any(Number) });
        expect(found[0]?.meta).not.toBe(found[1]?.meta);
        const overBus = await onBus([stream("a.s", values)], (map) => collect(map.subscribe("a.s")));
        expect(overBus.map(({ data }) => data)).toEqual([1, 2]);
      },
    ],
    [
      "RE-14",
      "an envelope that is yielded passes through",
      async () => {
        const values = async function* () {
          yield mcpEnvelope(1, MCP);
        };
        const [first] = await collect(registryOf([stream("a.s", values)]).subscribe("a.s"));
        expect(first?.meta).toMatchObject({ source: "mcp", content: [TEXT] });
      },
    ],
    [
      "RE-21",
      "over the protocol a stream ends with call.completed, and a reader that leaves aborts it",
      () => {
        let left = false;
        const values = async function* () {
          try {
            for (let i = 0; ; i++) yield i;
          } finally {
            left = true;
          }
        };
        const few = async function* () {
          yield 1;
        };
        return onBus([stream("a.s", values), stream("a.few", few)], async (map, bus) => {
          const heard: string[] = [];
          bus.onCall(({ type }) => heard.push(type));
          await collect(map.subscribe("a.few"));
          expect(heard).toContain("completed");
          for await (const { data } of map.subscribe("a.s")) if (data === 2) break;
          await expect.poll(() => left).toBe(true);
          expect(heard).toContain("aborted");
        });
      },
    ],
  ],
  "buildEnv()": [
    [
      "RE-15",
      "each function of the map gives a promise of an envelope",
      async () => {
        const env = registry(() => 7).buildEnv();
        const envelope = await env["task"]?.["run"]?.({});
        expect(isResponseEnvelope(envelope)).toBe(true);
        expect(envelope?.data).toBe(7);
      },
    ],
  ],
  CallEventSchema: [
    [
      "RE-17",
      "call.responded is a request id and an envelope, and no raw value",
      () => {
        const schema = CallEventSchema["call.responded"];
        const output = localEnvelope(1, "a.b");
        expect(Value.Check(schema, { requestId: "r", output })).toBe(true);
        for (const raw of [1, { a: 1 }, undefined, null])
          expect(Value.Check(schema, { requestId: "r", output: raw })).toBe(false);
      },
    ],
    [
      "RE-17",
      "every event of the protocol has a schema",
      () => {
        const events = ["call.requested", "call.responded", "call.completed", "call.aborted", "call.error"];
        for (const event of events) expect(CallEventSchema).toHaveProperty([event]);
      },
    ],
    [
      "RE-17",
      "whoever listens to call.responded on the bus is given the envelope",
      () =>
        onBus([query("a.b", () => "a secret")], async (map, bus) => {
          const heard: object[] = [];
          bus.onCall((call) => heard.push(call));
          await map.call("a.b");
          expect(heard).toContainEqual(expect.objectContaining({ type: "responded", outcome: "ok" }));
          expect(JSON.stringify(heard)).not.toContain("a secret");
        }),
      "007",
    ],
  ],
  Constraints: [
    [
      "RE-16",
      "handlers here return plain values; wrapping is not their business, and changes nothing about the value",
      async () => {
        const value = Object.freeze({ count: 1 });
        expect((await run(() => value, { outputSchema: Count })).data).toBe(value);
        expect((await run(async () => value)).data).toBe(value);
      },
    ],
    [
      "RE-17 RE-19",
      "at the boundary of the call protocol there is an envelope, always",
      () =>
        onBus([query("a.nothing", () => undefined), query("a.text", () => "x")], async (map) => {
          for (const id of ["a.nothing", "a.text"]) expect(isResponseEnvelope(await map.call(id))).toBe(true);
        }),
    ],
    [
      "RE-7",
      "there is no other way to tell an envelope than isResponseEnvelope: no brands",
      async () => {
        const copy = structuredClone(localEnvelope(1, "a.b"));
        expect(isResponseEnvelope(copy)).toBe(true);
        expect((await run(() => copy)).data).toBe(copy);
        expect((await run(() => localEnvelope(1, "a.b"))).data).toBe(1);
      },
      "Recognise, don't guess",
    ],
  ],
};
