import { afterEach, describe, expect, it, vi } from "vitest";
import { toolError } from "../src/core/envelope/envelope.ts";
import { CallError } from "../src/core/errors/errors.ts";
import { defineOperation } from "../src/core/operation/operation.ts";
import { OperationRegistry } from "../src/index.ts";
import type { HttpHandlerOptions } from "../src/openapi/server/http-handler-options.ts";
import { type Got, type OpenApi, WAYS } from "./http-requests.ts";
import { query, until } from "./make-operation.ts";

const open: OpenApi[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const go of waiting.splice(0)) go();
  await Promise.all(open.splice(0).map((api) => api.close()));
});

const waiting: (() => void)[] = [];
let runs = 0;
let failures = 0;
let keySeen: unknown;

const make = defineOperation({
  namespace: "change",
  name: "make",
  version: "1.0.0",
  type: "mutation",
  description: "",
  handler: async (input, { metadata }) => {
    runs += 1;
    keySeen = metadata["idempotencyKey"];
    const { wait, fail, no } = (input ?? {}) as { wait?: boolean; fail?: string; no?: boolean };
    if (wait === true) await new Promise<void>((resolve) => waiting.push(resolve));
    if (fail !== undefined && failures-- > 0) throw new CallError(fail, "It failed.");
    return no === true ? toolError("no") : { runs };
  },
});

describe.each(WAYS)("bounds over %s", (_, openWay) => {
  const start = async (options?: HttpHandlerOptions): Promise<OpenApi> => {
    runs = 0;
    const operations = [
      make,
      query("value.echo", (input) => input),
      query("wait.long", () => {
        runs += 1;
        return new Promise(() => {});
      }),
    ];
    const api = await openWay(new OperationRegistry(operations), options);
    open.push(api);
    return api;
  };
  const post = (api: OpenApi, body: unknown, key?: string, more: Record<string, string> = {}): Promise<Got> =>
    api.send("/api/change/make", {
      body,
      headers: { ...(key !== undefined && { "idempotency-key": key }), ...more },
    });

  it("RE-30 takes a body of so many bytes, declared or not", async () => {
    const api = await start({ limits: { bodyBytes: 20 } });
    const send = (length: number) =>
      api.send("/api/value/echo", {
        method: "POST",
        body: JSON.stringify("x".repeat(length - 2)),
        headers: { "content-type": "application/json" },
      });
    expect([(await send(20)).status, (await send(21)).status]).toEqual([200, 413]);
  });

  it("RE-30 takes so many calls in a batch", async () => {
    const api = await start({ limits: { batch: 2 } });
    const batch = async (size: number) =>
      (await api.send("/batch", { body: Array.from({ length: size }, () => ({ operation: "change.make" })) }))
        .status;
    expect([await batch(2), await batch(3), await batch(0)]).toEqual([200, 413, 200]);
    expect((await api.send("/batch", { body: {} })).status).toBe(400);
  });

  it("RE-30 runs so many calls at a time", async () => {
    const api = await start({ limits: { calls: 2 } });
    const running = [post(api, { wait: true }), post(api, { wait: true })];
    await until(() => waiting.length === 2);
    const refused = await post(api, {});
    expect([refused.status, refused.headers["retry-after"]]).toEqual([503, "1"]);
    expect(refused.json).toMatchObject({ code: "RESOURCE_EXHAUSTED" });
    for (const go of waiting.splice(0)) go();
    expect((await Promise.all(running)).map(({ status }) => status)).toEqual([200, 200]);
    expect((await post(api, {})).status).toBe(200);
  });

  it("RE-30 waits no longer than it is allowed to, whatever is asked for", async () => {
    const api = await start({ limits: { timeoutMs: 30 } });
    for (const headers of [{}, { "request-timeout": "9999999" }]) {
      expect((await api.send("/api/wait/long", { method: "POST", headers })).status).toBe(504);
    }
  });

  it("RE-30 runs a call with a key once, and repeats its answer", async () => {
    const api = await start();
    const [first, second] = [await post(api, { a: 1 }, "k1"), await post(api, { a: 1 }, "k1")];
    expect([first.json, second.json, runs]).toEqual([{ runs: 1 }, { runs: 1 }, 1]);
    expect(first.headers).not.toHaveProperty("idempotency-replayed");
    expect(second.headers).toMatchObject({ "idempotency-replayed": "true" });
    expect(second.headers["x-request-id"]).not.toBe(first.headers["x-request-id"]);
    expect(keySeen).toBe("k1");
    expect((await post(api, { a: 1 }, "k2")).json).toEqual({ runs: 2 });
    const generic = {
      body: { operation: "change.make", input: { a: 1 } },
      headers: { "idempotency-key": "k9" },
    };
    expect((await api.send("/call", generic)).json).toEqual((await api.send("/call", generic)).json);
    expect((await post(api, { no: true }, "k3")).status).toBe(422);
    expect((await post(api, { no: true }, "k3")).headers).toMatchObject({ "idempotency-replayed": "true" });
  });

  it("RE-30 refuses a key that was used for something else, or is none", async () => {
    const api = await start();
    await post(api, { a: 1 }, "k1");
    const other = await post(api, { a: 2 }, "k1");
    expect([other.status, other.json, runs]).toMatchObject([422, { code: "CONFLICT" }, 1]);
    expect((await post(api, {}, "a b")).status).toBe(400);
    expect((await post(api, {}, "x".repeat(256))).status).toBe(400);
    expect((await post(api, {}, "x".repeat(255))).status).toBe(200);
  });

  it("RE-30 lets a second call wait for the first of its key, as long as its patience lasts", async () => {
    const api = await start();
    const first = post(api, { wait: true }, "k1");
    await until(() => waiting.length === 1);
    const second = post(api, { wait: true }, "k1");
    const impatient = await post(api, { wait: true }, "k1", { "request-timeout": "20" });
    expect([impatient.status, impatient.json]).toMatchObject([409, { code: "CONFLICT" }]);
    for (const go of waiting.splice(0)) go();
    expect([(await first).json, (await second).json, runs]).toEqual([{ runs: 1 }, { runs: 1 }, 1]);
  });

  it("RE-30 runs a call again that did not run, or may work later", async () => {
    const api = await start();
    for (const fail of ["RATE_LIMITED", "UNAVAILABLE", "VALIDATION_ERROR", "ACCESS_DENIED"]) {
      failures = 1;
      expect((await post(api, { fail }, fail)).status).toBeGreaterThanOrEqual(400);
      expect((await post(api, { fail }, fail)).status).toBe(200);
    }
    failures = 1;
    expect((await post(api, { fail: "CONFLICT" }, "c")).status).toBe(409);
    expect((await post(api, { fail: "CONFLICT" }, "c")).status).toBe(409);
  });

  it("RE-30 keeps the keys of callers apart", async () => {
    const api = await start({
      authenticate: (request) => ({ subject: request.headers.get("x-who") ?? "none" }),
    });
    expect((await post(api, {}, "k", { "x-who": "ann" })).json).toEqual({ runs: 1 });
    expect((await post(api, {}, "k", { "x-who": "bob" })).json).toEqual({ runs: 2 });
    expect((await post(api, {}, "k", { "x-who": "ann" })).json).toEqual({ runs: 1 });
  });

  it("RE-30 keeps so many answers, of so many bytes, for so long", async () => {
    const few = await start({ limits: { idempotencyKeys: 2 } });
    for (const key of ["a", "b", "c"]) await post(few, {}, key);
    expect([(await post(few, {}, "b")).json, (await post(few, {}, "c")).json]).toEqual([
      { runs: 2 },
      { runs: 3 },
    ]);
    expect((await post(few, {}, "a")).json).toEqual({ runs: 4 });
    const small = await start({ limits: { idempotencyBytes: 10 } });
    await post(small, {}, "a");
    expect((await post(small, {}, "a")).json).toEqual({ runs: 2 });
    vi.useFakeTimers({ toFake: ["performance"] });
    const short = await start({ limits: { idempotencyMs: 30 } });
    await post(short, {}, "a");
    expect((await post(short, {}, "a")).json).toEqual({ runs: 1 });
    vi.advanceTimersByTime(31);
    expect((await post(short, {}, "a")).json).toEqual({ runs: 2 });
  });

  it("RE-30 refuses a new key while as many calls with keys run as are kept", async () => {
    const api = await start({ limits: { idempotencyKeys: 1 } });
    const first = post(api, { wait: true }, "a");
    await until(() => waiting.length === 1);
    expect((await post(api, {}, "b")).status).toBe(503);
    for (const go of waiting.splice(0)) go();
    expect((await first).status).toBe(200);
  });

  it("RE-30 lets calls end while it closes, and takes no new ones", async () => {
    const api = await start();
    const running = post(api, { wait: true });
    await until(() => waiting.length === 1);
    const isOpen = async () => {
      try {
        return (await api.send("/ready")).status;
      } catch {
        return "refused";
      }
    };
    expect(await isOpen()).toBe(200);
    const closed = api.close({ timeoutMs: 5_000 });
    expect([503, "refused"]).toContain(await isOpen());
    for (const go of waiting.splice(0)) go();
    expect((await running).status).toBe(200);
    await closed;
  });

  it("RE-30 ends calls that take too long to close", async () => {
    const api = await start();
    const running = api.send("/api/wait/long", { method: "POST" });
    await until(() => runs === 1);
    const from = performance.now();
    await api.close({ timeoutMs: 50 });
    expect(performance.now() - from).toBeLessThan(5_000);
    const got = await running;
    expect([got.status, got.json]).toMatchObject([503, { code: "UNAVAILABLE" }]);
  });
});
