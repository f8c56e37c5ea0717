import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  CallError,
  compileSchema,
  defineOperation,
  OperationRegistry,
  Type,
  toolError,
  withCursor,
} from "../src/index.ts";
import { serveHttp } from "../src/openapi/index.ts";
import { query, stream } from "./make-operation.ts";
import { runs } from "./runs.ts";

/** What the served document says of one operation, as any tool reads it. */
interface Described {
  readonly method: string;
  readonly path: string;
  readonly operation: {
    readonly operationId: string;
    readonly parameters?: readonly {
      readonly name: string;
      readonly in: string;
      readonly required?: boolean;
      readonly schema: object;
    }[];
    readonly requestBody?: {
      readonly required?: boolean;
      readonly content: Readonly<Record<string, { schema: object }>>;
    };
    readonly responses: Readonly<Record<string, unknown>>;
  };
}

const METHODS = ["get", "post"] as const;

const registry = new OperationRegistry([
  defineOperation({
    namespace: "shop",
    name: "search",
    version: "1.0.0",
    type: "query",
    description: "Finds things.",
    inputSchema: Type.Object(
      {
        text: Type.String({ minLength: 1, maxLength: 20 }),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 50 })),
        inStock: Type.Optional(Type.Boolean()),
        kinds: Type.Optional(
          Type.Array(Type.Union([Type.Literal("a"), Type.Literal("b")]), { minItems: 1, maxItems: 3 }),
        ),
      },
      { additionalProperties: false },
    ),
    outputSchema: Type.Object({ found: Type.Array(Type.String()) }),
    handler: ({ text, limit = 2 }) => ({
      found: Array.from({ length: Math.min(limit, 3) }, (_, n) => `${text} ${n}`),
    }),
  }),
  defineOperation({
    namespace: "shop",
    name: "order",
    version: "1.0.0",
    type: "mutation",
    description: "Orders something.",
    errors: [{ code: "OUT_OF_STOCK", httpStatus: 409, schema: Type.Object({ left: Type.Integer() }) }],
    inputSchema: Type.Object({
      lines: Type.Array(
        Type.Object({ sku: Type.String({ minLength: 1 }), count: Type.Integer({ minimum: 1 }) }),
        { minItems: 1 },
      ),
      note: Type.Optional(Type.Union([Type.String(), Type.Null()])),
    }),
    outputSchema: Type.Object({ order: Type.Integer() }),
    handler: ({ lines }) => {
      const count = lines.reduce((sum, line) => sum + line.count, 0);
      if (count > 1_000_000) throw new CallError("OUT_OF_STOCK", "None left.", { details: { left: 0 } });
      if (count % 7 === 0)
        return toolError({ order: 0 }, { code: "NO_SEVENS", message: "Sevens are not delivered." });
      return { order: lines.length };
    },
  }),
  query("shop.anything", (input) => input ?? null),
  query("shop.nothing", () => undefined),
  query("shop.secret", () => "told", { access: { scopes: { allOf: ["secrets"] } } }),
  stream("shop.news", async function* () {
    yield withCursor({ n: 1 }, "c1");
  }),
  stream(
    "shop.ticks",
    async function* (input) {
      for (let n = 0; n < Math.min((input as { to: number }).to, 3); n++) yield { n };
    },
    {
      inputSchema: Type.Object({ to: Type.Integer({ minimum: 0 }), of: Type.Optional(Type.String()) }),
      outputSchema: Type.Object({ n: Type.Integer() }),
    },
  ),
  query("slow.broken", () => {
    throw new Error("This is nobody's business.");
  }),
  query("slow.waiting", (_, { signal }) => {
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  }),
]);

let http: Awaited<ReturnType<typeof serveHttp>>;
let document: {
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly components: object;
};
let described: readonly Described[];

const KEY = { "x-api-key": "the-key" };

beforeAll(async () => {
  http = await serveHttp(registry, {
    auth: { apiKeys: { keys: { "the-key": { subject: "tester", scopes: ["secrets"] } } } },
    limits: { bodyBytes: 100_000 },
    onWarning: () => {},
  });
  document = await (await fetch(`${http.url}/openapi.json`, { headers: KEY })).json();
  described = Object.entries(document.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method] !== undefined).map((method) => ({
      method,
      path,
      operation: item[method] as Described["operation"],
    })),
  );
});
afterAll(() => http.close());

/** A schema of the document that can be used by itself. */
const whole = (schema: object) => ({ ...schema, components: document.components });

/** Holds a response against what the document says of its operation. */
async function expectDocumented({ path, operation }: Described, response: Response): Promise<void> {
  // What the API itself answers with has its own entry; `default` is for codes that only some operation may know.
  const declared = operation.responses[response.status] as
    | { readonly $ref?: string; readonly content?: Readonly<Record<string, { readonly schema?: object }>> }
    | undefined;
  const responses = (document.components as { responses?: Record<string, typeof declared> }).responses ?? {};
  const found = declared?.$ref === undefined ? declared : responses[declared.$ref.split("/").at(-1) ?? ""];
  expect(found, `${response.status} of ${path} is documented`).toBeDefined();
  const type = response.headers.get("content-type")?.split(";")[0]?.trim();
  const text = await response.text();
  if (text === "") return;
  const content = found?.content ?? {};
  expect(Object.keys(content), `${type} of ${response.status} of ${path} is documented`).toContain(type);
  const schema = content[type ?? ""]?.schema;
  if (schema === undefined || !/json$/.test(type ?? "")) return;
  const compiled = compileSchema(whole(schema));
  const body: unknown = JSON.parse(text);
  expect(
    compiled.check(body),
    `${path} ${response.status} ${text}: ${JSON.stringify(compiled.errors(body))}`,
  ).toBe(true);
}

/** Any JSON value, and strings that mean something in addresses and headers. */
const anyValue = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom("", "..", "a&b=c", "%00", "\r\nx: y", "true", "1e5", "null", "ü€😀", "x".repeat(200)),
);

/** Inputs near what the schema wants: known names, values of any kind. */
const nearly = (names: readonly string[]) =>
  fc.dictionary(fc.oneof(fc.constantFrom(...names, "unknown"), fc.string({ maxLength: 5 })), anyValue, {
    maxKeys: 5,
  });

function toRequest(
  { method, path }: Described,
  input: unknown,
  headers: Record<string, string>,
): [string, RequestInit] {
  if (method === "post") {
    const body = JSON.stringify(input);
    return [
      `${http.url}${path}`,
      { method: "POST", headers: { ...headers, "content-type": "application/json" }, body },
    ];
  }
  const query = new URLSearchParams();
  const members = typeof input === "object" && input !== null ? Object.entries(input) : [];
  for (const [name, value] of members) {
    for (const item of [value].flat())
      query.append(name, typeof item === "string" ? item : JSON.stringify(item));
  }
  return [`${http.url}${path}?${query}`, { headers }];
}

const callable = () => described.filter(({ path }) => path.startsWith("/api/"));

describe("the served API, held against its own document", () => {
  it("RE-30 documents every operation, and nothing else under /api", () => {
    const ids = callable().map(({ operation }) => operation.operationId);
    expect(ids.sort()).toEqual(registry.operations.map(({ id }) => id).sort());
  });

  it("RE-30 answers whatever is sent with a documented status, type and body, and never with 500", async () => {
    for (const one of callable().filter(({ path }) => !path.startsWith("/api/slow/"))) {
      const names = ["text", "limit", "inStock", "kinds", "lines", "note", "operation", "input", "to"];
      const inputs = one.method === "get" ? nearly(names) : fc.oneof(nearly(names), anyValue);
      await fc.assert(
        fc.asyncProperty(inputs, async (input) => {
          const response = await fetch(...toRequest(one, input, KEY));
          expect(response.status, `${one.path} ${JSON.stringify(input)}`).toBeLessThan(500);
          await expectDocumented(one, response);
        }),
        runs(60),
      );
    }
  });

  it("RE-30 RE-10 takes what its schemas accept and refuses the rest", async () => {
    const search = callable().find(({ operation }) => operation.operationId === "shop.search") as Described;
    const valid = fc.record(
      {
        text: fc.string({ minLength: 1, maxLength: 10, unit: "grapheme-ascii" }),
        limit: fc.integer({ min: 1, max: 50 }),
        inStock: fc.boolean(),
        kinds: fc.array(fc.constantFrom("a", "b"), { minLength: 1, maxLength: 3 }),
      },
      { requiredKeys: ["text"] },
    );
    await fc.assert(
      fc.asyncProperty(valid, async (input) => {
        const response = await fetch(...toRequest(search, input, KEY));
        expect(response.status, JSON.stringify(input)).toBe(200);
        await expectDocumented(search, response);
      }),
    );
    for (const input of [
      {},
      { text: "" },
      { text: "a", limit: 0 },
      { text: "a", limit: "one" },
      { text: "a", more: 1 },
      { text: "a", inStock: "yes" },
      { text: "a", kinds: "c" },
    ]) {
      const response = await fetch(...toRequest(search, input, KEY));
      expect(response.status, JSON.stringify(input)).toBe(400);
      await expectDocumented(search, response);
    }
  });

  it("X-5 says declared errors and tool errors as documented", async () => {
    const order = callable().find(({ operation }) => operation.operationId === "shop.order") as Described;
    for (const [count, status] of [
      [1, 200],
      [7, 422],
      [1_000_001, 409],
    ] as const) {
      const response = await fetch(...toRequest(order, { lines: [{ sku: "x", count }] }, KEY));
      expect(response.status).toBe(status);
      await expectDocumented(order, response);
    }
  });

  const find = (id: string) =>
    described.find(({ operation, path }) => operation.operationId === id || path === id) as Described;

  it.each<[string, number, string, unknown, Record<string, string>]>([
    ["an input that is not taken", 400, "shop.ticks", { to: -1 }, {}],
    ["a page of somebody else's", 403, "shop.search", { text: "a" }, { origin: "https://evil.example" }],
    ["nothing it offers", 406, "shop.search", { text: "a" }, { accept: "image/png" }],
    ["no events", 406, "shop.ticks", { to: 1 }, { accept: "image/png" }],
    ["a stream that is not known", 410, "shop.ticks", { to: 1 }, { "last-event-id": `${"a".repeat(22)}-1` }],
    ["too long a body", 413, "shop.anything", "x".repeat(100_001), {}],
    ["a body of another kind", 415, "shop.anything", "x", { "content-type": "text/plain" }],
    ["what fails", 500, "slow.broken", undefined, {}],
    ["what takes too long", 504, "slow.waiting", undefined, { "waybill-timeout-ms": "20" }],
    ["no such operation", 404, "/call", { operation: "no.such" }, {}],
    ["no call", 400, "/call", 5, {}],
    ["no list of calls", 400, "/batch", 5, {}],
    [
      "too long a list",
      413,
      "/batch",
      Array.from({ length: 101 }, () => ({ operation: "shop.nothing" })),
      {},
    ],
  ])("RE-30 X-5 documents how it answers who sends %s: %i", async (_, status, id, input, headers) => {
    const one = find(id);
    const [url, init] = toRequest(one, input, { ...KEY });
    const response = await fetch(url, { ...init, headers: { ...init.headers, ...headers } });
    expect(response.status).toBe(status);
    await expectDocumented(one, response);
  });

  it("RE-30 X-5 documents a key that is used for something else", async () => {
    const order = find("shop.order");
    const headers = { ...KEY, "idempotency-key": "once" };
    for (const [count, status] of [
      [1, 200],
      [1, 200],
      [2, 422],
    ] as const) {
      const response = await fetch(...toRequest(order, { lines: [{ sku: "x", count }] }, headers));
      expect(response.status).toBe(status);
      await expectDocumented(order, response);
    }
  });

  it("RE-30 streams the events that its document tells of", async () => {
    const ticks = find("shop.ticks");
    expect(ticks.method).toBe("get");
    const response = await fetch(...toRequest(ticks, { to: 2 }, KEY));
    const text = await response.clone().text();
    await expectDocumented(ticks, response);
    const data = [...text.matchAll(/^event: next\n(?:id: .*\n)?data: (.*)$/gm)].map(([, line = ""]) =>
      JSON.parse(line),
    );
    expect(data.map((event) => event.data)).toEqual([{ n: 0 }, { n: 1 }]);
    const media = (ticks.operation.responses["200"] as { content: Record<string, Record<string, object>> })
      .content["text/event-stream"];
    const compiled = compileSchema(whole(media?.["x-waybill-data"] ?? {}));
    for (const event of data) expect(compiled.check(event.data)).toBe(true);
    const [last = ""] = [...text.matchAll(/^id: (.*)$/gm)].map(([, id]) => id).slice(-1);
    const again = await fetch(...toRequest(ticks, { to: 2 }, { ...KEY, "last-event-id": last }));
    expect(again.status).toBe(204);
    await expectDocumented(ticks, again);
  });

  it("RE-30 refuses wrong methods with what is allowed", async () => {
    for (const one of described) {
      for (const method of ["PUT", "DELETE", "PATCH", one.method === "get" ? "POST" : "GET"]) {
        const response = await fetch(`${http.url}${one.path}`, { method, headers: KEY });
        expect([one.path, method, response.status]).toEqual([one.path, method, 405]);
        expect(response.headers.get("allow")?.toLowerCase()).toContain(one.method);
      }
    }
  });

  it("RE-30 refuses callers without a key, or with a wrong one, everywhere but where it tells its health", async () => {
    for (const one of described) {
      for (const headers of [{}, { "x-api-key": "wrong" }]) {
        const response = await fetch(...toRequest(one, {}, headers));
        const isOpen = ["/health", "/ready"].includes(one.path);
        expect([one.path, response.status]).toEqual([one.path, isOpen ? 200 : 401]);
        await expectDocumented(one, response);
      }
    }
  });

  it("RE-30 refuses bodies that are not JSON", async () => {
    const order = callable().find(({ operation }) => operation.operationId === "shop.order") as Described;
    for (const [type, body, status] of [
      ["text/plain", "{}", 415],
      ["application/json", "{", 400],
      ["application/json", "\u0000", 400],
      ["application/xml", "<a/>", 415],
    ] as const) {
      const headers = { ...KEY, "content-type": type };
      const response = await fetch(`${http.url}${order.path}`, { method: "POST", headers, body });
      expect([type, response.status]).toEqual([type, status]);
      await expectDocumented(order, response);
    }
  });
});
