import { afterEach, describe, expect, it } from "vitest";
import { defineOperation, OperationRegistry } from "../src/index.ts";
import type { HttpHandlerOptions } from "../src/openapi/index.ts";
import { type Got, type OpenApi, WAYS } from "./http-requests.ts";
import { query, until } from "./make-operation.ts";

const open: OpenApi[] = [];
afterEach(async () => {
  for (const go of waiting.splice(0)) go();
  await Promise.all(open.splice(0).map((api) => api.close()));
});

const waiting: (() => void)[] = [];
let runs = 0;

const make = defineOperation({
  namespace: "change",
  name: "make",
  version: "1.0.0",
  type: "mutation",
  description: "",
  handler: async (input) => {
    runs += 1;
    const { wait } = (input ?? {}) as { wait?: boolean };
    if (wait === true) await new Promise<void>((resolve) => waiting.push(resolve));
    return { runs };
  },
});

describe.each(WAYS)("bounds over %s", (_, openWay) => {
  const start = async (options?: HttpHandlerOptions): Promise<OpenApi> => {
    runs = 0;
    const operations = [
      make,
      query("value.echo", (input) => input),
      query("text.make", (input) => "x".repeat((input as { size: number }).size)),
      query("wait.long", () => {
        runs += 1;
        return new Promise(() => {});
      }),
    ];
    const api = await openWay(new OperationRegistry(operations), options);
    open.push(api);
    return api;
  };
  const post = (api: OpenApi, body: unknown): Promise<Got> => api.send("/api/change/make", { body });

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

  it("RE-30 holds so many characters in the answers of a batch, and says of the others that they ran", async () => {
    const api = await start();
    // A quarter of what there is room for, in quotes.
    const characters = 67_108_864 / 4 - 2;
    const sizes = [characters, characters, characters + 1, characters, characters, 1];
    const body = sizes.map((size) => ({ operation: "text.make", input: { size } }));
    const { status, json } = await api.send("/batch", { body });
    const answers = json as { status: number; body: { code?: string; detail?: string } }[];
    expect([status, answers.map((answer) => answer.status)]).toEqual([200, [200, 200, 200, 413, 413, 200]]);
    expect(answers[3]?.body).toMatchObject({
      code: "TOO_LARGE",
      detail: "The call has run, but the answers of a batch have at most 67108864 characters: make it alone.",
      details: { limit: 67_108_864 },
    });
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
    const closed = api.close({ timeoutMs: 60_000 });
    // What reaches it in the moment in which it stops listening is still answered.
    await expect.poll(async () => [503, "refused"].includes(await isOpen())).toBe(true);
    for (const go of waiting.splice(0)) go();
    expect((await running).status).toBe(200);
    await closed;
  });

  it("RE-30 ends calls that take too long to close", async () => {
    const api = await start();
    const running = api.send("/api/wait/long", { method: "POST" });
    await until(() => runs === 1);
    await api.close({ timeoutMs: 50 });
    const got = await running;
    expect([got.status, got.json]).toMatchObject([503, { code: "UNAVAILABLE" }]);
  });
});
