import { afterEach, describe, expect, it } from "vitest";
import {
  CallError,
  decodeEnvelope,
  ERROR_CODES,
  type ErrorCode,
  fromWire,
  httpEnvelope,
  mcpEnvelope,
  type OperationContext,
  OperationRegistry,
  type ResultFormat,
  Type,
  toolError,
  toWire,
} from "../src/index.ts";
import type { HttpHandlerOptions } from "../src/openapi/index.ts";
import { type OpenApi, WAYS } from "./http-requests.ts";
import { query, rejection } from "./make-operation.ts";
import { roundTripOperations, VALUES } from "./round-trip-operations.ts";
import { withFacts } from "./with-facts.ts";

const open: OpenApi[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((api) => api.close()));
});

const REQUEST_ID = /^[0-9a-f]{32}$/;
const plain: ResultFormat = {
  name: "plain",
  write: ({ outcome }) => ({
    content: [
      { type: "text", text: "error" in outcome ? outcome.error.code : String(outcome.envelope.data) },
    ],
    isError: "error" in outcome,
  }),
  outputSchema: () => undefined,
};

let seen: OperationContext | undefined;
let runs = 0;

function registry(): OperationRegistry {
  return new OperationRegistry([
    ...roundTripOperations(),
    query("fail.blocks", () =>
      toolError(["No such file.", "Try another."].map((text) => ({ type: "text", text }))),
    ),
    query("fail.both", () =>
      mcpEnvelope({ code: 2 }, { isError: true, content: [{ type: "text", text: "No such file." }] }),
    ),
    query("see.context", (_, context) => {
      seen = context;
      runs += 1;
      return runs;
    }),
    query(
      "list.page",
      ({ cursor = "0" }: { cursor?: string }) => {
        const page = cursor === "2" ? {} : { next: String(Number(cursor) + 1) };
        return withFacts([cursor], { page });
      },
      { inputSchema: Type.Object({ cursor: Type.Optional(Type.String()), q: Type.Optional(Type.String()) }) },
    ),
    query("fact.odd", () => withFacts(1, { message: "é\r\nset-cookie: a=b 😀", event: "x" })),
    query("fact.long", () => withFacts(1, { message: "x".repeat(5_000) })),
    query("bytes.pdf", () =>
      httpEnvelope(Uint8Array.of(1), {
        statusCode: 201,
        headers: { "x-secret": "1" },
        contentType: "application/pdf",
      }),
    ),
    query("bytes.html", () =>
      httpEnvelope(Uint8Array.of(60), { statusCode: 200, headers: {}, contentType: "text/html" }),
    ),
    query("hold.function", () => () => 1),
    query("fail.slow", () => {
      throw new CallError("RATE_LIMITED", "Wait.", { details: { retryAfterMs: 1_200 } });
    }),
    query("hidden.one", () => 1, { visibility: "internal" }),
    query("closed.one", () => 1, { access: {}, inputSchema: Type.Object({ n: Type.Number() }) }),
  ]);
}

describe.each(WAYS)("an API over %s", (_, openWay) => {
  const start = async (options?: HttpHandlerOptions): Promise<OpenApi> => {
    const api = await openWay(registry(), options);
    open.push(api);
    return api;
  };

  it("RE-30 answers a query by GET with its data, and says where it came from", async () => {
    const api = await start();
    const got = await api.send("/api/typed/object?n=4");
    expect(got.status).toBe(200);
    expect(got.json).toEqual({ n: 5 });
    expect(got.headers).toMatchObject({
      "content-type": "application/json",
      "waybill-source": "local",
      "waybill-operation": "typed.object",
      "cache-control": "private, no-cache",
      vary: "accept",
    });
    expect(got.headers["x-request-id"]).toMatch(REQUEST_ID);
    expect(got.headers["content-length"]).toBe(String(got.bytes.length));
    expect(got.headers).not.toHaveProperty("waybill-facts");
  });

  it("RE-30 answers HEAD like GET, without the body", async () => {
    const api = await start();
    const [get, head] = [
      await api.send("/api/typed/object?n=4"),
      await api.send("/api/typed/object?n=4", { method: "HEAD" }),
    ];
    expect(head.status).toBe(200);
    expect(head.text).toBe("");
    for (const name of ["etag", "content-length", "content-type"])
      expect(head.headers[name]).toBe(get.headers[name]);
  });

  it("RE-30 takes the input of a mutation from the body, and none from an empty one", async () => {
    const api = await start();
    const got = await api.send("/api/change/make", { body: { to: "x" } });
    expect(got.json).toEqual({ changed: "x" });
    expect(got.headers).toMatchObject({ "cache-control": "no-store" });
    expect(got.headers).not.toHaveProperty("etag");
    expect((await api.send("/api/value/echo", { method: "POST" })).status).toBe(204);
    expect((await api.send("/api/odd/name.with-many_signs.and/slashes", { method: "POST" })).json).toBe(
      "reached",
    );
  });

  it.each(Object.keys(VALUES))("X-6 gives the value %s back exactly to whoever can read it", async (name) => {
    const api = await start();
    const got = await api.send(`/api/value/give?name=${name}`, {
      headers: { accept: "application/vnd.waybill.data+json, application/json" },
    });
    const type = got.headers["content-type"];
    const read = () => {
      if (got.status === 204) return undefined;
      if (type === "application/octet-stream") return got.bytes;
      return type === "application/json" ? got.json : fromWire(got.json);
    };
    expect(read()).toEqual(VALUES[name]);
  });

  it("X-6 gives everybody else plain JSON wherever JSON can hold the value", async () => {
    const api = await start();
    const date = await api.send("/api/value/give?name=date");
    expect([date.headers["content-type"], date.json]).toEqual([
      "application/json",
      "1970-01-02T00:00:00.000Z",
    ]);
    const big = await api.send("/api/value/give?name=big", { headers: { accept: "application/json" } });
    expect(big.headers["content-type"]).toBe("application/vnd.waybill.data+json");
    expect(fromWire(big.json)).toBe(VALUES["big"]);
    const none = await api.send("/api/value/give?name=none");
    expect([none.status, none.text]).toEqual([204, ""]);
  });

  it("X-6 takes inputs that JSON cannot hold in their wire form", async () => {
    const api = await start();
    const input = { at: new Date(5), bytes: Uint8Array.of(1, 2), none: undefined };
    const type = "application/vnd.waybill.data+json";
    const got = await api.send("/api/value/echo", {
      body: JSON.stringify(toWire(input)),
      method: "POST",
      headers: { "content-type": type, accept: type },
    });
    expect(fromWire(got.json)).toEqual(input);
  });

  it("RE-30 gives the whole envelope, or a format, to whoever asks by Accept or query", async () => {
    const api = await start({ formats: [plain] });
    for (const got of [
      await api.send("/api/typed/object?n=1&waybill-format=envelope"),
      await api.send("/api/typed/object?n=1", {
        headers: { accept: "application/vnd.waybill.envelope+json" },
      }),
    ]) {
      expect(got.headers["content-type"]).toBe("application/vnd.waybill.envelope+json");
      expect(decodeEnvelope(got.text)).toMatchObject({
        data: { n: 2 },
        meta: { operationId: "typed.object" },
      });
    }
    for (const got of [
      await api.send("/api/typed/number?waybill-format=plain", { method: "POST" }),
      await api.send("/api/typed/number", {
        method: "POST",
        headers: { accept: "application/vnd.waybill.plain+json" },
      }),
    ]) {
      expect(got.headers["content-type"]).toBe("application/vnd.waybill.plain+json");
      expect(got.json).toEqual({ content: [{ type: "text", text: "7" }], isError: false });
    }
    const failed = await api.send("/api/fail/domain?waybill-format=plain", { method: "POST" });
    expect([failed.status, failed.json]).toEqual([
      409,
      { content: [{ type: "text", text: "OUT_OF_STOCK" }], isError: true },
    ]);
  });

  it.each([
    ["text/html, */*;q=0.1", "application/json"],
    ["application/*", "application/json"],
    [
      "application/json;q=0.1, application/vnd.waybill.envelope+json;q=0.9",
      "application/vnd.waybill.envelope+json",
    ],
    ["application/vnd.waybill.envelope+json;q=0, */*", "application/json"],
    ["application/json;q=0, */*", "application/vnd.waybill.envelope+json"],
    ["application/json;q=0, application/vnd.waybill.data+json, */*;q=0.1", "application/json"],
    ["APPLICATION/JSON", "application/json"],
  ])("RE-30 weighs Accept: %s", async (accept, type) => {
    const api = await start();
    const got = await api.send("/api/typed/object?n=1", { headers: { accept } });
    expect([got.status, got.headers["content-type"]]).toEqual([200, type]);
  });

  it.each(["text/html", "application/json;q=0", "nonsense", "*/*;q=0", "application/json;q=x"])(
    "RE-30 says what there is where nothing would be accepted: %s",
    async (accept) => {
      const api = await start();
      runs = 0;
      const got = await api.send("/api/see/context", { method: "POST", headers: { accept } });
      expect([got.status, runs]).toEqual([406, 0]);
      expect(got.json).toMatchObject({
        details: { available: expect.arrayContaining(["application/json"]) },
      });
      expect((await api.send("/api/see/context?waybill-format=no", { method: "POST" })).status).toBe(406);
    },
  );

  it.each(Object.keys(ERROR_CODES) as ErrorCode[])("X-5 answers %s with its problem", async (code) => {
    const api = await start();
    const got = await api.send("/api/fail/code", { body: { code } });
    const status = code === "ABORTED" ? 500 : ERROR_CODES[code].httpStatus;
    expect(got.status).toBe(status);
    expect(got.headers).toMatchObject({
      "content-type": "application/problem+json",
      "cache-control": "no-store",
    });
    expect(got.json).toMatchObject({
      type: ERROR_CODES[code].problemType,
      status,
      code,
      detail: `It is ${code}.`,
      details: { n: 1, list: ["a"] },
      instance: `urn:waybill:request:${got.headers["x-request-id"]}`,
      waybill: { outcome: "call-error" },
    });
    expect(got.headers["www-authenticate"]).toBe(code === "UNAUTHENTICATED" ? "Bearer" : undefined);
  });

  it("X-5 keeps declared errors, what is wrong with an input, and how long to wait", async () => {
    const api = await start();
    const declared = await api.send("/api/fail/domain", { method: "POST" });
    expect([declared.status, declared.json]).toMatchObject([
      409,
      { code: "OUT_OF_STOCK", details: { left: 0 } },
    ]);
    const invalid = await api.send("/api/change/make", { body: { to: 5 } });
    expect([invalid.status, invalid.json]).toMatchObject([400, { code: "VALIDATION_ERROR" }]);
    expect((invalid.json as { details: { issues: unknown[] } }).details.issues).toHaveLength(1);
    expect((await api.send("/api/fail/slow", { method: "POST" })).headers["retry-after"]).toBe("2");
  });

  it("X-5 tells nobody what a handler threw", async () => {
    const api = await start({ onWarning: () => {} });
    const got = await api.send("/api/fail/foreign", { method: "POST" });
    expect(got.status).toBe(500);
    expect(got.text).not.toMatch(/SECRET|\.ts|at /);
    const unwritable = await api.send("/api/hold/function", { method: "POST" });
    expect([unwritable.status, unwritable.json]).toMatchObject([500, { code: "OUTPUT_INVALID" }]);
  });

  it("X-6 says that an operation reported an error, and why", async () => {
    const api = await start();
    const got = await api.send("/api/fail/tool", { body: { a: [1] } });
    expect(got.status).toBe(422);
    expect(got.json).toMatchObject({
      type: "https://waybill.dev/problems/tool-error",
      detail: "There is no room.",
      code: "NO_ROOM",
      details: { floor: 3 },
      waybill: { outcome: "tool-error", code: "NO_ROOM", message: "There is no room.", wire: { a: [1] } },
    });
    const blocks = await api.send("/api/fail/blocks", { method: "POST" });
    expect(blocks.json).toMatchObject({ detail: "No such file.\nTry another." });
    const both = await api.send("/api/fail/both", { method: "POST" });
    expect(both.json).toMatchObject({
      detail: "The operation reported an error",
      details: { said: "No such file." },
      waybill: { wire: { code: 2 } },
    });
    const bare = await api.send("/api/fail/plain", { method: "POST" });
    expect([bare.status, bare.json]).toMatchObject([422, { waybill: { outcome: "tool-error", wire: null } }]);
    const whole = await api.send("/api/fail/tool?waybill-format=envelope", { body: 1 });
    expect([whole.status, decodeEnvelope(whole.text).meta.isError]).toEqual([422, true]);
  });

  it("RE-30 writes facts as one line of ASCII, whatever they say, and none that are too long", async () => {
    const api = await start();
    const got = await api.send("/api/fact/odd", { method: "POST" });
    expect(got.headers["waybill-facts"]).toMatch(/^[\x20-\x7e]+$/);
    expect(JSON.parse(got.headers["waybill-facts"] as string)).toEqual({
      message: "é\r\nset-cookie: a=b 😀",
      event: "x",
    });
    expect(got.headers).not.toHaveProperty("set-cookie");
    expect((await api.send("/api/fact/long", { method: "POST" })).headers).not.toHaveProperty(
      "waybill-facts",
    );
  });

  it("RE-26 passes on the media type of bytes where no browser would run them, and no other header", async () => {
    const api = await start();
    const pdf = await api.send("/api/bytes/pdf", { method: "POST" });
    expect(pdf.headers).toMatchObject({
      "content-type": "application/pdf",
      "x-content-type-options": "nosniff",
    });
    expect(pdf.headers).not.toHaveProperty("x-secret");
    const html = await api.send("/api/bytes/html", { method: "POST" });
    expect(html.headers["content-type"]).toBe("application/octet-stream");
  });

  it("RE-27 links to the next page", async () => {
    const api = await start();
    const first = await api.send("/api/list/page?q=a%20b&cursor=0");
    expect(first.headers["link"]).toBe('<?q=a%20b&cursor=1>; rel="next"');
    expect((await api.send("/api/list/page?cursor=2")).headers).not.toHaveProperty("link");
  });

  it("RE-30 answers 304 to whoever has the answer already", async () => {
    const api = await start();
    const { etag = "" } = (await api.send("/api/typed/object?n=4")).headers;
    expect(etag).toMatch(/^"[\w-]{27}"$/);
    for (const tag of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
      const again = await api.send("/api/typed/object?n=4", { headers: { "if-none-match": tag } });
      expect([again.status, again.text, again.headers["etag"]]).toEqual([304, "", etag]);
    }
    const other = await api.send("/api/typed/object?n=5", { headers: { "if-none-match": etag } });
    expect(other.status).toBe(200);
  });

  it("RE-30 keeps request ids and traces, and makes new ones of what is none", async () => {
    const api = await start();
    const trace = "0af7651916cd43dd8448eb211c80319c";
    const got = await api.send("/api/see/context", {
      method: "POST",
      headers: { "x-request-id": "abc-1", traceparent: `00-${trace}-b7ad6b7169203331-01`, tracestate: "a=1" },
    });
    expect(got.headers["x-request-id"]).toBe("abc-1");
    expect(got.headers["traceparent"]).toMatch(
      new RegExp(`^00-${trace}-(?!b7ad6b7169203331)[0-9a-f]{16}-01$`),
    );
    expect(seen?.requestId).toBe("abc-1");
    expect(seen?.metadata).toEqual({ traceparent: got.headers["traceparent"], tracestate: "a=1" });
    for (const wrong of [
      `00-${"0".repeat(32)}-b7ad6b7169203331-01`,
      "01-x",
      `00-${trace}-${"0".repeat(16)}-01`,
    ]) {
      const headers = { traceparent: wrong, tracestate: "a=1", "x-request-id": "x".repeat(201) };
      const other = await api.send("/api/see/context", { method: "POST", headers });
      expect(other.headers["traceparent"]).not.toContain(trace);
      expect(other.headers).not.toHaveProperty("tracestate");
      expect(other.headers["x-request-id"]).toMatch(REQUEST_ID);
    }
  });

  it.each([
    ["PUT", "/api/typed/object", 405, "GET, HEAD, OPTIONS"],
    ["POST", "/api/typed/object", 405, "GET, HEAD, OPTIONS"],
    ["GET", "/api/change/make", 405, "POST, OPTIONS"],
    ["OPTIONS", "/api/change/make", 204, "POST, OPTIONS"],
    ["DELETE", "/call", 405, "POST, OPTIONS"],
    ["POST", "/openapi.json", 405, "GET, HEAD, OPTIONS"],
    ["POST", "/health", 405, "GET, HEAD"],
  ])("RE-30 answers %s %s with %i and what is allowed", async (method, path, status, allow) => {
    const api = await start();
    const got = await api.send(path, { method });
    expect([got.status, got.headers["allow"]]).toEqual([status, allow]);
  });

  it.each([
    "/",
    "/api",
    "/api/",
    "/api/typed",
    "/api/typed/",
    "/api/typed/none",
    "/api//typed/object",
    "//api/typed/object",
    "/api/typed%2Fobject",
    "/api/typed/%6fbject",
    "/api/typed/object/",
    "/api/hidden/one",
    "/api/__proto__/constructor",
    "/api/typed/object%00",
    "/api/odd/name.with-many_signs.and%2Fslashes",
    "/API/typed/object",
    "/docs/%2e%2e%2fpackage.json",
    "/docs/..%5c..%5cpackage.json",
    "/.well-known/oauth-protected-resource",
  ])("RE-30 has nothing at %s", async (path) => {
    const api = await start();
    const got = await api.send(path);
    expect([got.status, got.headers["content-type"]]).toEqual([404, "application/problem+json"]);
  });

  it.each([
    ["text/plain", "{}", 415],
    ["application/json; charset=latin1", "{}", 415],
    ["application/json; charset=utf-8", "{}", 200],
    ["application/merge-patch+json", "{}", 200],
    ["application/json", '{"a": tru}', 400],
    ["application/json", Uint8Array.of(34, 255, 34), 400],
    ["application/json", `${"[".repeat(513)}${"]".repeat(513)}`, 400],
    ["application/json", `${"[".repeat(100_000)}`, 400],
    ["application/json", '{"a":1,"a":2}', 200],
    ["application/vnd.waybill.data+json", '{"$waybill":["nonsense"]}', 400],
  ])("RE-30 takes JSON and nothing else: %s %s", async (type, body, status) => {
    const api = await start();
    const got = await api.send("/api/value/echo", {
      method: "POST",
      body,
      headers: { "content-type": type },
    });
    expect(got.status).toBe(status);
  });

  it("RE-30 names the place where a body goes wrong", async () => {
    const api = await start();
    const got = await api.send("/api/value/echo", {
      method: "POST",
      body: '{"a": tru}',
      headers: { "content-type": "application/json" },
    });
    expect(got.json).toMatchObject({ code: "VALIDATION_ERROR", details: { position: 6 } });
  });

  it("RE-30 refuses a query that is none, and tells callers without access nothing about it", async () => {
    const api = await start();
    expect((await api.send("/api/typed/object?n=x")).status).toBe(400);
    expect((await api.send("/api/typed/object")).status).toBe(400);
    expect((await api.send("/api/closed/one?n=x")).status).toBe(401);
  });

  it("RE-30 calls any operation by its id", async () => {
    const api = await start();
    const got = await api.send("/call", { body: { operation: "typed.object", input: { n: 1 } } });
    expect([got.status, got.json, got.headers["waybill-operation"]]).toEqual([200, { n: 2 }, "typed.object"]);
    const missing = await api.send("/call", { body: { operation: "hidden.one" } });
    expect([missing.status, missing.json]).toMatchObject([404, { code: "OPERATION_NOT_FOUND" }]);
    for (const body of [[], { operation: 1 }, "x", { operation: "a.b", timeoutMs: -1 }]) {
      const wrong = await api.send("/call", {
        body: typeof body === "string" ? JSON.stringify(body) : body,
        headers: { "content-type": "application/json" },
      });
      expect(wrong.status).toBe(400);
    }
    const late = await api.send("/call", { body: { operation: "wait.long", timeoutMs: 20 } });
    expect(late.status).toBe(504);
  });

  it("RE-30 answers a batch in order, each call by itself", async () => {
    const api = await start();
    const got = await api.send("/batch", {
      body: [
        { operation: "typed.object", input: { n: 1 } },
        { operation: "fail.domain" },
        { operation: "value.give", input: { name: "none" } },
        { operation: "value.give", input: { name: "bytes" } },
        "nonsense",
        { operation: "wait.long", timeoutMs: 10 },
      ],
      headers: { "x-request-id": "b" },
    });
    expect(got.status).toBe(200);
    const answers = got.json as { status: number; headers: Record<string, string>; body?: unknown }[];
    expect(answers.map(({ status }) => status)).toEqual([200, 409, 204, 200, 400, 504]);
    expect(answers[0]).toMatchObject({ body: { n: 2 }, headers: { "x-request-id": "b.0" } });
    expect(answers[1]?.body).toMatchObject({ code: "OUT_OF_STOCK" });
    expect(answers[2]).not.toHaveProperty("body");
    expect(fromWire(answers[3]?.body)).toEqual(VALUES["bytes"]);
  });

  it("RE-30 stops when its caller has waited long enough, or leaves", async () => {
    const api = await start();
    for (const name of ["request-timeout", "waybill-timeout-ms"]) {
      const got = await api.send("/api/wait/long", { method: "POST", headers: { [name]: "20" } });
      expect(got.status).toBe(504);
    }
    const wrong = await api.send("/api/wait/long", {
      method: "POST",
      headers: { "request-timeout": "soon" },
    });
    expect(wrong.status).toBe(400);
    let aborted: (() => void) | undefined;
    const heard = new Promise<void>((resolve) => {
      aborted = resolve;
    });
    const started = new OperationRegistry([
      query("wait.here", (__, { signal }) => {
        signal.addEventListener("abort", () => aborted?.());
        leaving.abort();
        return new Promise(() => {});
      }),
    ]);
    const leaving = new AbortController();
    const other = await openWay(started);
    open.push(other);
    // What is read of a call one has left differs; that the handler hears of it does not.
    other.send("/api/wait/here", { method: "POST", signal: leaving.signal }).catch(() => {});
    await heard;
  });

  it("RE-30 describes what each caller may call, and follows changes", async () => {
    const operations = registry();
    const api = await openWay(operations, {
      authenticate: (request) => (request.headers.has("x-known") ? { subject: "ann" } : undefined),
    });
    open.push(api);
    const paths = async (headers: Record<string, string>) =>
      Object.keys(((await api.send("/openapi.json", { headers })).json as { paths: object }).paths);
    expect(await paths({})).not.toContain("/api/closed/one");
    expect(await paths({ "x-known": "1" })).toContain("/api/closed/one");
    expect(await paths({})).not.toContain("/api/new/one");
    operations.register(query("new.one", () => 1));
    expect(await paths({})).toContain("/api/new/one");
    expect((await api.send("/api/new/one", { method: "POST" })).json).toBe(1);
    const { etag = "" } = (await api.send("/openapi.json")).headers;
    expect((await api.send("/openapi.json", { headers: { "if-none-match": etag } })).status).toBe(304);
  });

  it("RE-30 has a page of itself, unless told not to", async () => {
    const page = await (await start()).send("/docs");
    expect([page.status, page.headers["content-type"]]).toEqual([200, expect.stringContaining("text/html")]);
    expect((await (await start({ docs: false })).send("/docs")).status).toBe(404);
  });

  it("RE-30 serves operations under another path where told to", async () => {
    const api = await start({ basePath: "/v1/operations" });
    expect((await api.send("/v1/operations/typed/object?n=1")).json).toEqual({ n: 2 });
    expect((await api.send("/api/typed/object?n=1")).status).toBe(404);
  });

  it("RE-30 gives executors of others a signal of the platform, which hears of a client that leaves", async () => {
    const inner = registry();
    const leaving = new AbortController();
    const heard = new Promise<boolean>((resolve) => {
      const execute = (_id: string, _input: unknown, { signal }: { signal: AbortSignal }) => {
        return new Promise((__, reject) => {
          signal.addEventListener("abort", () => {
            resolve(signal instanceof AbortSignal);
            reject(signal.reason);
          });
          leaving.abort();
        });
      };
      const foreign = {
        execute,
        subscribe: inner.subscribe.bind(inner),
        list: inner.list.bind(inner),
        get: inner.get.bind(inner),
        onChange: inner.onChange.bind(inner),
      } as unknown as OperationRegistry;
      openWay(foreign).then((api) => {
        open.push(api);
        return api.send("/api/wait/long", { method: "POST", signal: leaving.signal }).catch(() => {});
      });
    });
    expect(await heard).toBe(true);
  });

  it("RE-30 refuses options that cannot work, by name", async () => {
    const cases: [unknown, RegExp][] = [
      [{ basePath: "api" }, /basePath must be/],
      [{ basePath: "/docs" }, /basePath must not begin/],
      [{ limits: { calls: 0 } }, /limits\.calls must be/],
      [{ limits: { cals: 1 } }, /did you mean "limits\.calls"/],
      [{ formats: [{ name: "a b" }] }, /formats must have names/],
      [{ auth: {} }, /auth must say/],
      [{ auth: { apiKeys: { keys: { "": { subject: "a" } } } } }, /holds a key/],
      [{ authenticate: 1 }, /authenticate must be a function/],
      [{ baseUrl: 1 }, /no option "baseUrl"/],
    ];
    for (const [options, message] of cases) {
      const opening = Promise.resolve().then(() => openWay(registry(), options as HttpHandlerOptions));
      expect(String(await rejection(opening))).toMatch(message);
    }
  });
});
