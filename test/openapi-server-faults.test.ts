import { getEventListeners } from "node:events";
import { connect } from "node:net";
import { Hono } from "hono";
import { afterEach, describe, expect, it } from "vitest";
import {
  CallError,
  decodeEnvelope,
  type Executor,
  OperationRegistry,
  Type,
  toolError,
} from "../src/index.ts";
import {
  createHttpHandler,
  type HttpHandlerOptions,
  type HttpRequest,
  serveHttp,
} from "../src/openapi/index.ts";
import { nodeClient, type OpenApi, readEvent, WAYS } from "./http-requests.ts";
import { query, rejection, stream, until } from "./make-operation.ts";
import { withFacts } from "./with-facts.ts";

const open: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((api) => api.close()));
});

let next = "";
const access = { scopes: { allOf: ["admin"] } };
const inputSchema = Type.Object({ n: Type.Number() });

function registry(): OperationRegistry {
  return new OperationRegistry([
    query("value.echo", (input) => input),
    query("typed.object", () => 1, { inputSchema }),
    query("date.none", () => ({ at: [new Date(Number.NaN)] })),
    query("box.number", () => ({ n: Object(5) as unknown })),
    query("box.flag", () => Object(false) as unknown),
    query("list.page", () => withFacts([1], { page: { next }, message: "x".repeat(5_000) })),
    query("fail.foreign", () => {
      throw new Error("SECRET");
    }),
    query("fail.told", () => {
      throw new CallError("EXECUTION_ERROR", "It failed.", { cause: new CallError("TIMEOUT") });
    }),
    query("fail.tool", (code) => toolError("no", { code: String(code) })),
    query("closed.query", () => 1, { access, inputSchema }),
    stream(
      "closed.ticks",
      async function* () {
        yield 1;
      },
      { access, inputSchema },
    ),
    stream(
      "tick.count",
      async function* ({ n }: { n: number }) {
        for (let i = 0; i < n; i += 1) yield i;
      },
      { inputSchema },
    ),
    stream("tick.broken", async function* () {
      yield 1;
      throw new Error("SECRET");
    }),
  ]);
}

describe.each(WAYS)("faults over %s", (_, openWay) => {
  const start = async (options?: HttpHandlerOptions): Promise<OpenApi> => {
    const api = await openWay(registry(), options);
    open.push(api);
    return api;
  };

  it("RE-29 tells whoever may not call an operation that alone, whatever else is wrong", async () => {
    const api = await start({ authenticate: () => ({ subject: "ann" }) });
    const accept = { accept: "text/html" };
    for (const path of ["/api/closed/query", "/api/closed/ticks"]) {
      expect((await api.send(`${path}?n=1`)).status).toBe(403);
      expect((await api.send(`${path}?n=1`, { method: "HEAD" })).status).toBe(403);
      expect((await api.send(`${path}?n=1`, { headers: accept })).status).toBe(403);
      expect((await api.send(`${path}?n=x`)).status).toBe(403);
      expect((await api.send(`${path}?n=1`, { headers: { "request-timeout": "x" } })).status).toBe(403);
    }
    for (const operation of ["closed.query", "closed.ticks"]) {
      expect((await api.send("/call", { body: { operation }, headers: accept })).status).toBe(403);
      const resumed = { "last-event-id": "x" };
      expect((await api.send("/call", { body: { operation }, headers: resumed })).status).toBe(403);
    }
    const [answer] = (await api.send("/batch", { body: [{ operation: "closed.ticks" }] })).json as unknown[];
    expect(answer).toMatchObject({ status: 403 });
  });

  it("RE-28 goes on with a subscription of the generic call too", async () => {
    const api = await start();
    const body = { operation: "tick.count", input: { n: 5 } };
    const events = await api.events("/call", { body });
    await events.next();
    const { id } = readEvent(await events.next());
    await events.leave();
    const again = await api.events("/call", { body, headers: { "last-event-id": id } });
    await again.next();
    expect(readEvent(await again.next())).toMatchObject({ data: { data: 1 } });
  });

  it.each(["date.none", "box.number", "box.flag"])("X-6 refuses to make something else of %s", async (id) => {
    const api = await start();
    for (const accept of [
      "*/*",
      "application/vnd.waybill.envelope+json",
      "application/vnd.waybill.data+json",
    ]) {
      const got = await api.send("/call", { body: { operation: id }, headers: { accept } });
      expect([got.status, got.json]).toMatchObject([500, { code: "OUTPUT_INVALID" }]);
    }
  });

  it("RE-27 always says how to ask for the next page, or fails", async () => {
    const api = await start();
    const page = async (length: number, query = "") => {
      next = "c".repeat(length);
      return api.send(`/api/list/page${query}`, { method: "POST" });
    };
    const facts = (got: { headers: Readonly<Record<string, string>> }) =>
      JSON.parse(got.headers["waybill-facts"] ?? "null");
    expect(facts(await page(10_000))).toEqual({ page: { next } });
    const whole = await page(100_000, "?waybill-format=envelope");
    expect(decodeEnvelope(whole.text).meta.waybill?.page).toEqual({ next });
    const refused = await page(100_000);
    expect([refused.status, refused.json]).toMatchObject([500, { code: "OUTPUT_INVALID" }]);
  });

  it("RE-30 tells whoever runs it of errors that nobody meant, with their cause", async () => {
    const heard: [string, unknown][] = [];
    const api = await start({
      onWarning: (message, cause) => {
        heard.push([message, cause]);
        throw new Error("Of whoever hears it");
      },
    });
    const headers = { "x-request-id": "r-1" };
    const foreign = await api.send("/api/fail/foreign", { method: "POST", headers });
    expect([foreign.status, foreign.text.includes("SECRET")]).toEqual([500, false]);
    expect(heard.splice(0)).toEqual([
      ['"fail.foreign" failed unexpectedly (request r-1).', expect.objectContaining({ message: "SECRET" })],
    ]);
    await api.send("/api/fail/told", { method: "POST" });
    await api.send("/api/fail/tool", { body: {} });
    expect(heard).toEqual([]);
    const events = await api.events("/api/tick/broken", { method: "POST", headers });
    while ((await events.next()) !== undefined);
    expect(heard).toMatchObject([
      ['"tick.broken" failed unexpectedly (request r-1).', { message: "SECRET" }],
    ]);
  });

  it("RE-30 names what is wrong with a generic call", async () => {
    const api = await start();
    const got = await api.send("/call", { body: { operation: "value.echo", inputs: {} } });
    expect([got.status, got.json]).toMatchObject([
      400,
      { detail: 'A call has no member "inputs", only operation, input, timeoutMs.' },
    ]);
    const batch = await api.send("/batch", { body: [{ operation: "tick.count", input: { n: 1 } }] });
    expect(batch.json).toMatchObject([
      { status: 400, body: { detail: expect.stringMatching(/"tick.count" is a subscription.*\/call/) } },
    ]);
  });

  it.each([
    ["POST", "/api/typed/object", '"typed.object" is not for this HTTP method; use GET.'],
    ["GET", "/api/value/echo", '"value.echo" is not for this HTTP method; use POST.'],
    ["PUT", "/api/tick/count", '"tick.count" is not for this HTTP method; use GET.'],
    ["GET", "/call", "This address is not for this HTTP method; use POST."],
  ])("RE-30 says what to use in place of %s %s", async (method, path, detail) => {
    const got = await (await start()).send(path, { method });
    expect([got.status, got.json]).toMatchObject([405, { detail }]);
  });

  it("RE-30 says of tool errors whether they are worth another try", async () => {
    const api = await start();
    const said = async (code: string) =>
      (await api.send("/call", { body: { operation: "fail.tool", input: code } })).json;
    expect(await said("NO_ROOM")).toMatchObject({ retryable: false, correctable: false });
    expect(await said("RATE_LIMITED")).toMatchObject({ retryable: true, correctable: false });
    expect(await said("CONFLICT")).toMatchObject({ retryable: false, correctable: true });
  });

  it("RE-30 takes nobody for somebody", async () => {
    const known = await start({ auth: { apiKeys: { keys: () => null } } });
    expect((await known.send("/api/value/echo", { headers: { "x-api-key": "k" }, body: 1 })).status).toBe(
      401,
    );
    const asked = await start({ authenticate: async () => null });
    expect((await asked.send("/api/value/echo", { body: { a: 1 } })).json).toEqual({ a: 1 });
    expect((await asked.send("/api/closed/query?n=1")).status).toBe(401);
  });

  it("RE-30 takes no call whose caller it came to know after it began to close", async () => {
    let known: () => void = () => {};
    const asking = new Promise<void>((resolve) => {
      known = resolve;
    });
    let asked = 0;
    const api = await start({
      authenticate: async () => {
        asked += 1;
        await asking;
        return null;
      },
    });
    const call = api.send("/api/value/echo", { body: 1 });
    await until(() => asked === 1);
    const closed = api.close({ timeoutMs: 60_000 });
    // What had reached it is read for a few turns more.
    for (let turns = 0; turns < 10; turns++) await new Promise((resolve) => setImmediate(resolve));
    known();
    expect((await call).status).toBe(503);
    await closed;
  });

  it("RE-30 names the option that is wrong", async () => {
    const cases: [unknown, RegExp][] = [
      [{ cors: true }, /"cors".*"origins"/],
      [{ auth: { apiKeys: { keys: { k: {} } } } }, /auth\.apiKeys\.keys .*subject/],
      [{ auth: { apiKeys: {} } }, /auth\.apiKeys\.keys must be/],
      [{ auth: { bearer: { keys: new Uint8Array(32) } } }, /^TypeError: auth\.bearer\.audience must/],
      [{ auth: { bearer: { audience: "a" } } }, /auth\.bearer\.keys must/],
      [{ auth: { bearer: { audience: "a", keys: new Uint8Array(3) } } }, /auth\.bearer\.keys must/],
    ];
    for (const [options, message] of cases) {
      const opening = Promise.resolve().then(() => openWay(registry(), options as HttpHandlerOptions));
      expect(String(await rejection(opening))).toMatch(message);
    }
  });
});

describe("a handler by itself", () => {
  it("RE-30 has methods that can be passed on", async () => {
    const { fetch, close } = createHttpHandler(registry());
    open.push({ close });
    const app = new Hono().mount("/sub", fetch);
    const got = await app.request("http://localhost/sub/api/typed/object?n=1", {
      headers: { host: "localhost" },
    });
    expect([got.status, await got.json()]).toEqual([200, 1]);
  });

  it("RE-30 leaves nothing behind on a connection, whatever runs the operations", async () => {
    const inner = registry();
    const foreign = Object.fromEntries(
      (["execute", "subscribe", "list", "get", "onChange"] as const).map((name) => [
        name,
        (inner[name] as (...given: unknown[]) => unknown).bind(inner),
      ]),
    ) as unknown as Executor;
    const handler = createHttpHandler(foreign);
    open.push(handler);
    const { signal } = new AbortController();
    const request: HttpRequest = {
      ...{ method: "GET", path: "/api/typed/object", query: "n=1", origin: "http://localhost", signal },
      header: (name) => (name === "host" ? "localhost" : undefined),
      body: async () => new Uint8Array(),
      abort: () => {},
      toRequest: () => new Request("http://localhost"),
    };
    expect((await handler.handle(request)).status).toBe(200);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});

describe("a server under load", () => {
  it("RE-30 counts requests whose bodies are still being sent", async () => {
    const server = await serveHttp(registry(), { limits: { calls: 1 } });
    open.push(server);
    const { send } = nodeClient(server.url);
    const slow = connect(server.port, "127.0.0.1");
    slow.write("POST /api/value/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n");
    slow.write("Content-Length: 9\r\n\r\n[1");
    let status = 200;
    while (status === 200) status = (await send("/api/value/echo", { body: [1] })).status;
    expect(status).toBe(503);
    slow.destroy();
    while (status === 503) status = (await send("/api/value/echo", { body: [1] })).status;
    expect(status).toBe(200);
  });

  it("RE-30 names the port that is in use", async () => {
    const server = await serveHttp(registry());
    open.push(server);
    const error = await rejection(serveHttp(registry(), { port: server.port }));
    expect(String(error)).toContain(`port ${server.port} is in use; give another "port"`);
  });
});
