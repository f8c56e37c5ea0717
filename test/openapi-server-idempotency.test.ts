import { afterEach, describe, expect, it, vi } from "vitest";
import { createResultFormat } from "../src/formats/index.ts";
import {
  CallError,
  defineOperation,
  type Identity,
  OperationRegistry,
  toolError,
  toWire,
} from "../src/index.ts";
import type { HttpHandlerOptions } from "../src/openapi/index.ts";
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
let aborted = 0;
let failures = 0;
let keySeen: unknown;

interface Asked {
  readonly wait?: boolean;
  readonly fail?: string;
  readonly no?: boolean;
  readonly bytes?: boolean;
  readonly date?: boolean;
}

const make = defineOperation({
  namespace: "change",
  name: "make",
  version: "1.0.0",
  type: "mutation",
  description: "",
  handler: async (input, { metadata, signal }) => {
    runs += 1;
    signal.addEventListener("abort", () => {
      aborted += 1;
    });
    keySeen = metadata["idempotencyKey"];
    const { wait, fail, no, bytes, date } = (input ?? {}) as Asked;
    if (wait === true) await new Promise<void>((resolve) => waiting.push(resolve));
    if (fail !== undefined && failures-- > 0) throw new CallError(fail, "It failed.");
    if (no === true) return toolError("no", { code: "NO" });
    if (bytes === true) return new Uint8Array([0, 255, runs]);
    return date === true ? { at: new Date(runs), many: 2n ** 64n } : { runs };
  },
});

const ALL_FORMATS = (["tool-envelope", "tiered-envelope", "status-envelope"] as const).map((name) =>
  createResultFormat(name),
);
const FORMAT_TYPES = ALL_FORMATS.map(({ name }) => `application/vnd.waybill.${name}+json`);

const closed = query("closed.one", () => ++runs, { access: { scopes: { allOf: ["admin"] } } });

describe.each(WAYS)("idempotency keys over %s", (_, openWay) => {
  const start = async (options?: HttpHandlerOptions): Promise<OpenApi> => {
    [runs, aborted] = [0, 0];
    const operations = [make, closed, query("value.echo", (input) => input)];
    const api = await openWay(new OperationRegistry(operations), options);
    open.push(api);
    return api;
  };
  const post = (api: OpenApi, body: unknown, key?: string, more: Record<string, string> = {}): Promise<Got> =>
    api.send("/api/change/make", {
      body,
      headers: { ...(key !== undefined && { "idempotency-key": key }), ...more },
    });
  /** Callers who say themselves who they are, and what they may do. */
  const said: HttpHandlerOptions = {
    authenticate: (request) => JSON.parse(request.headers.get("x-who") ?? "null") as Identity | null,
  };
  const as = (who: Identity) => ({ "x-who": JSON.stringify(who) });

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

  it("RE-30 runs no handler again that failed, whatever it failed with: it may have done what it was for", async () => {
    const api = await start();
    for (const fail of ["RATE_LIMITED", "UNAVAILABLE", "VALIDATION_ERROR", "ACCESS_DENIED", "CONFLICT"]) {
      failures = 1;
      const { status } = await post(api, { fail }, fail);
      expect(status).toBeGreaterThanOrEqual(400);
      const again = await post(api, { fail }, fail);
      expect([again.status, again.headers["idempotency-replayed"]]).toEqual([status, "true"]);
    }
  });

  it("RE-30 keeps the keys of callers apart", async () => {
    const api = await start({
      authenticate: (request) => ({ subject: request.headers.get("x-who") ?? "none" }),
    });
    expect((await post(api, {}, "k", { "x-who": "ann" })).json).toEqual({ runs: 1 });
    expect((await post(api, {}, "k", { "x-who": "bob" })).json).toEqual({ runs: 2 });
    expect((await post(api, {}, "k", { "x-who": "ann" })).json).toEqual({ runs: 1 });
  });

  it("RE-30 refuses a new key while as many calls with keys run as are kept", async () => {
    const api = await start({ limits: { idempotencyKeys: 1 } });
    const first = post(api, { wait: true }, "a");
    await until(() => waiting.length === 1);
    expect((await post(api, {}, "b")).status).toBe(503);
    for (const go of waiting.splice(0)) go();
    expect((await first).status).toBe(200);
  });

  it("RE-30 forgets no answer before its time, and refuses a new key where there is no room", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const api = await start({ limits: { idempotencyKeys: 2, idempotencyMs: 30 } });
    await post(api, {}, "a");
    await post(api, {}, "b");
    const refused = await post(api, {}, "c");
    expect([refused.status, refused.json, runs]).toMatchObject([503, { code: "RESOURCE_EXHAUSTED" }, 2]);
    expect([(await post(api, {}, "a")).json, (await post(api, {}, "b")).json]).toEqual([
      { runs: 1 },
      { runs: 2 },
    ]);
    vi.advanceTimersByTime(31);
    expect((await post(api, {}, "c")).json).toEqual({ runs: 3 });
    expect((await post(api, {}, "a")).json).toEqual({ runs: 4 });
  });

  it("RE-30 keeps answers of so many bytes in all, and of each caller, until their time is over", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    /** Which of these are repeated when all are sent again, or with what they are refused. */
    const replayed = async (api: OpenApi, keys: readonly string[], more: Record<string, string> = {}) => {
      for (const key of keys) await post(api, {}, key, more);
      const again = await Promise.all(keys.map((key) => post(api, {}, key, more)));
      return again.map(({ status, headers }) => headers["idempotency-replayed"] ?? status);
    };
    /** The least limit with which an answer is kept. */
    const sizeOf = async (options: HttpHandlerOptions, more?: Record<string, string>): Promise<number> => {
      let [kept, lost] = [100_000, 0];
      while (kept - lost > 1) {
        const bytes = Math.ceil((kept + lost) / 2);
        const api = await start({ ...options, limits: { idempotencyBytes: bytes } });
        if ((await replayed(api, ["a"], more))[0] === "true") kept = bytes;
        else lost = bytes;
      }
      return kept;
    };
    const size = await sizeOf({});
    const limits = { idempotencyMs: 1_000 };
    const two = await start({ limits: { ...limits, idempotencyBytes: 2 * size } });
    expect(await replayed(two, ["a", "b", "c"])).toEqual(["true", "true", 503]);
    vi.advanceTimersByTime(1_000);
    expect(await replayed(two, ["c", "d", "e"])).toEqual(["true", "true", 503]);
    const less = await start({ limits: { ...limits, idempotencyBytes: 2 * size - 1 } });
    expect(await replayed(less, ["a", "b"])).toEqual(["true", 409]);
    const { detail } = (await post(less, {}, "b")).json as { detail: string };
    expect([runs, detail]).toEqual([2, expect.stringContaining("too long to be kept")]);
    const [ann, bob] = [as({ subject: "ann" }), as({ subject: "bob" })];
    const share = await sizeOf(said, ann);
    const shared = await start({ ...said, limits: { ...limits, idempotencyBytes: share } });
    expect([await replayed(shared, ["a", "b"], ann), await replayed(shared, ["a"], bob)]).toEqual([
      ["true", 503],
      ["true"],
    ]);
    vi.advanceTimersByTime(999);
    expect(await replayed(shared, ["b"], ann)).toEqual([503]);
    vi.advanceTimersByTime(1);
    expect(await replayed(shared, ["b"], ann)).toEqual(["true"]);
  });

  it("RE-30 tells of each repetition how the call ended", async () => {
    const heard: unknown[] = [];
    const onReplay: HttpHandlerOptions["onReplay"] = ({ outcome, code }) => heard.push([outcome, code]);
    const api = await start({ onReplay });
    failures = 1;
    for (const [key, body] of Object.entries({ a: {}, b: { no: true }, c: { fail: "CONFLICT" } })) {
      const before = heard.length;
      await post(api, body, key);
      expect(heard).toHaveLength(before);
      await post(api, body, key);
    }
    expect(heard).toEqual([
      ["ok", undefined],
      ["tool_error", "NO"],
      ["call_error", "CONFLICT"],
    ]);
  });

  it("RE-30 leaves room for others, where callers are told apart", async () => {
    const api = await start({ ...said, limits: { idempotencyKeys: 8 } });
    const status = async (subject: string, key: string) => (await post(api, {}, key, as({ subject }))).status;
    expect([await status("ann", "1"), await status("ann", "2"), await status("ann", "3")]).toEqual([
      200, 200, 503,
    ]);
    expect([await status("bob", "3"), await status("ann", "1")]).toEqual([200, 200]);
  });

  it("RE-30 lets a call with a key go on when its client leaves, and tells its outcome to whoever comes back", async () => {
    const api = await start();
    const leaving = new AbortController();
    const headers = { "idempotency-key": "k" };
    const first = api
      .send("/api/change/make", { body: { wait: true }, headers, signal: leaving.signal })
      .catch(() => {});
    await until(() => waiting.length === 1);
    leaving.abort();
    const again = post(api, { wait: true }, "k");
    await post(api, {}, "other");
    expect(aborted).toBe(0);
    for (const go of waiting.splice(0)) go();
    const got = await again;
    expect([got.status, got.headers["idempotency-replayed"], runs]).toEqual([200, "true", 2]);
    await first;
  });

  it("RE-30 does not run a call again whose outcome nobody knows", async () => {
    const api = await start();
    // No time passes until the call runs.
    vi.useFakeTimers({ toFake: ["performance"] });
    const late = post(api, { wait: true }, "k", { "request-timeout": "20" });
    await until(() => waiting.length === 1);
    vi.advanceTimersByTime(20);
    expect((await late).status).toBe(504);
    const again = await post(api, { wait: true }, "k");
    expect([again.status, again.json, runs]).toMatchObject([
      409,
      { code: "CONFLICT", detail: expect.stringContaining("its outcome is not known") },
      1,
    ]);
  });

  it("RE-30 ends calls with keys too when it closes", async () => {
    const api = await start();
    const running = post(api, { wait: true }, "k");
    await until(() => waiting.length === 1);
    await api.close({ timeoutMs: 20 });
    expect([(await running).status, aborted]).toEqual([503, 1]);
  });

  it("RE-30 repeats an answer only in the form it was given in, for an input in the same form", async () => {
    const api = await start();
    const echo = (key: string, headers: Record<string, string> = {}) =>
      api.send("/api/value/echo", { body: { a: 1 }, headers: { "idempotency-key": key, ...headers } });
    await echo("k");
    expect((await echo("k", { accept: "application/json" })).status).toBe(200);
    const forms = [
      { accept: "application/vnd.waybill.envelope+json" },
      { accept: "application/vnd.waybill.data+json" },
      { "content-type": "application/vnd.waybill.data+json" },
    ];
    for (const headers of forms) expect((await echo("k", headers)).status).toBe(422);
  });

  it("RE-30 repeats the same status, headers and body, in every form", async () => {
    // Formats write down when an error was told, which is now.
    vi.useFakeTimers({ toFake: ["Date"] });
    const api = await start({ formats: ALL_FORMATS });
    const bodies = [{ a: 1 }, { no: true }, { fail: "CONFLICT" }, { bytes: true }, { date: true }];
    const forms = ["application/json", "application/vnd.waybill.envelope+json", ...FORMAT_TYPES];
    for (const [n, accept] of forms.entries()) {
      for (const [m, body] of bodies.entries()) {
        failures = 1;
        const send = () => post(api, body, `k-${n}-${m}`, { accept });
        const [first, again] = [await send(), await send()];
        const { "x-request-id": _, traceparent: __, date: ___, ...headers } = first.headers;
        expect(again).toMatchObject({ status: first.status, headers, text: first.text });
        expect(again.headers["idempotency-replayed"]).toBe("true");
      }
    }
    expect(runs).toBe(bodies.length * forms.length);
  });

  it("RE-29 repeats an answer only to whoever has the same rights", async () => {
    const api = await start(said);
    const admin = { subject: "ann", scopes: ["admin"], claims: { iss: "i", jti: "1" } };
    const call = (who: Identity) =>
      api.send("/api/closed/one", { method: "POST", headers: { "idempotency-key": "k", ...as(who) } });
    expect((await call(admin)).json).toBe(1);
    expect((await call({ ...admin, claims: { iss: "i", jti: "2" } })).headers).toMatchObject({
      "idempotency-replayed": "true",
    });
    expect((await call({ ...admin, scopes: [] })).status).toBe(403);
    expect((await call({ ...admin, scopes: ["admin", "more"] })).status).toBe(422);
    expect((await call({ ...admin, tier: "pro" })).status).toBe(422);
    expect((await call({ ...admin, claims: { iss: "i", org: 2 } })).status).toBe(422);
    expect(runs).toBe(1);
    expect((await call({ ...admin, claims: { iss: "other" } })).json).toBe(2);
  });

  it("RE-30 keeps the keys of a batch apart from others, whatever its inputs hold", async () => {
    const api = await start();
    const item = { operation: "change.make", input: { a: 1n } };
    const batch = () =>
      api.send("/batch", {
        method: "POST",
        body: JSON.stringify(toWire([item])),
        headers: { "idempotency-key": "k", "content-type": "application/vnd.waybill.data+json" },
      });
    expect([(await batch()).json, (await batch()).json, runs]).toMatchObject([
      [{ status: 200, body: { runs: 1 } }],
      [{ status: 200, body: { runs: 1 }, headers: { "idempotency-replayed": "true" } }],
      1,
    ]);
    expect(keySeen).toMatch(/^[\w+/=]{44}$/);
    expect((await post(api, {}, String(keySeen))).json).toEqual({ runs: 2 });
    expect((await post(api, {}, "k.0")).json).toEqual({ runs: 3 });
  });

  it("RE-30 repeats nothing that was about the first request alone", async () => {
    const api = await start({ origins: ["https://app.example"] });
    const trace = { traceparent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01`, tracestate: "x=1" };
    await post(api, {}, "k", { origin: "https://app.example", ...trace });
    const again = await post(api, {}, "k");
    expect(again.headers).toMatchObject({ "idempotency-replayed": "true", vary: "accept" });
    for (const name of ["access-control-allow-origin", "tracestate"]) {
      expect(again.headers).not.toHaveProperty(name);
    }
  });
});
