import { request } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { type InspectedGateway, inspectGateway, TOKENS } from "../../../test/inspected-gateway.ts";
import { query, sleep } from "../../../test/make-operation.ts";
import type { GatewayConfig } from "../../gateway/config/gateway-config.ts";
import type { CallView, Failure } from "../protocol.ts";

let open: InspectedGateway | undefined;
afterEach(async () => {
  await open?.close();
  open = undefined;
});

async function start(config: GatewayConfig = {}): Promise<InspectedGateway> {
  open = await inspectGateway([query("desk.echo", (input) => input ?? null)], config);
  return open;
}

const AUTH = { serve: { auth: { tokens: TOKENS } } } satisfies GatewayConfig;

async function failureOf(response: Response): Promise<[number, string]> {
  const { error } = (await response.json()) as Failure;
  return [response.status, error.code];
}

describe("requests of the inspector", () => {
  it("are refused unless they come from its own page", async () => {
    const inspected = await start();
    const own = inspected.url;
    const status = async (headers: Record<string, string>) =>
      (await inspected.ask("hello", { headers })).status;
    expect(await status({ origin: own })).toBe(200);
    expect(await status({ origin: "https://evil.example" })).toBe(403);
    expect(await status({ origin: "http://localhost:1" })).toBe(403);
    expect(await status({ origin: "null" })).toBe(403);
    expect(await requestStatus(inspected, { "sec-fetch-site": "same-origin" })).toBe(200);
    for (const site of ["cross-site", "same-site", "none"]) {
      expect(await requestStatus(inspected, { "sec-fetch-site": site })).toBe(403);
    }
  });

  it("post JSON and nothing else, no more than is allowed", async () => {
    const inspected = await start();
    const body = { text: "x" };
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""]) {
      const asked = await inspected.ask("decode", { body, headers: { "content-type": type } });
      expect(asked.status).toBe(415);
    }
    for (const text of ["", "{", "[]", "1", '"x"', "null", `${"[".repeat(600)}${"]".repeat(600)}`]) {
      const asked = await inspected.ask("decode", { body: text });
      expect(await failureOf(asked)).toEqual([400, "VALIDATION_ERROR"]);
    }
    const padded = (bytes: number) => `{"text":"${"x".repeat(bytes - 11)}"}`;
    expect((await inspected.ask("answer", { body: padded(1_048_577) })).status).toBe(413);
    expect((await inspected.ask("answer", { body: padded(1_048_575) })).status).toBe(400);
    for (const path of ["decode", "formats"]) {
      expect((await inspected.ask(path, { body: padded(2_097_153) })).status).toBe(413);
      expect((await inspected.ask(path, { body: padded(2_097_152) })).status).toBe(400);
    }
    for (const path of ["validate", "run"]) {
      expect((await inspected.ask(path, { body: padded(4_194_305) })).status).toBe(413);
      expect((await inspected.ask(path, { body: padded(4_194_304) })).status).toBe(400);
    }
  });

  it("hold inputs as large as those of other callers may be", async () => {
    const inspected = await start({ limits: { bodyBytes: 1_000 } });
    const padded = (bytes: number) => `{"text":"${"x".repeat(bytes - 11)}"}`;
    for (const path of ["validate", "run"]) {
      expect((await inspected.ask(path, { body: padded(1_001) })).status).toBe(413);
      expect((await inspected.ask(path, { body: padded(1_000) })).status).toBe(400);
    }
  });

  it("hold inputs of at most a quarter of a million values, whatever their texts look like", async () => {
    const inspected = await start();
    // The request, the name, the input and its list count too.
    const asked = (values: number, item: string) => {
      const list = Array.from({ length: values - 4 }, () => item).join(",");
      return `{"operation":"desk.echo","input":{"list":[${list}]}}`;
    };
    for (const item of ["1", "{}", '",[{"']) {
      for (const path of ["validate", "run"]) {
        expect((await inspected.ask(path, { body: asked(250_000, item) })).status).toBe(200);
        const refused = await inspected.ask(path, { body: asked(250_001, item) });
        expect(refused.status).toBe(413);
        expect(((await refused.json()) as Failure).error.message).toContain("250,000");
      }
    }
  });

  it("that are large are all answered, one after the other", async () => {
    const inspected = await start();
    const body = { operation: "desk.echo", input: { text: "x".repeat(2_000_000) } };
    const all = await Promise.all(Array.from({ length: 5 }, () => inspected.ask("run", { body })));
    for (const answer of all) expect(await answer.text()).toContain('"type":"end"');
  });

  it("name operations with at most three hundred characters", async () => {
    const inspected = await start();
    const envelope = { data: 1, meta: { source: "local", operationId: "desk.add", timestamp: 1 } };
    for (const path of ["run", "validate", "formats"]) {
      const status = async (length: number) =>
        (await inspected.ask(path, { body: { operation: "x".repeat(length), envelope } })).status;
      expect(await status(300)).toBe(path === "validate" ? 404 : 200);
      expect(await status(301)).toBe(400);
    }
  });

  it("that arrive after it was closed start nothing", async () => {
    let calls = 0;
    open = await inspectGateway([
      query("desk.count", () => {
        calls += 1;
        return calls;
      }),
    ]);
    const { port, inspector } = open;
    const body = JSON.stringify({ operation: "desk.count" });
    const sent = request({
      host: "127.0.0.1",
      port,
      path: "/inspect/api/run",
      method: "POST",
      headers: {
        "content-type": "application/json",
        "content-length": body.length,
        expect: "100-continue",
      },
    });
    const answered = new Promise<number | undefined>((resolve, reject) => {
      sent.on("response", (response) => resolve(response.resume().statusCode)).on("error", reject);
    });
    // The gateway has the head by the time it asks for the body.
    const isWanted = new Promise((resolve) => sent.on("continue", resolve));
    sent.flushHeaders();
    await isWanted;
    sent.write(body.slice(0, 5));
    await sleep(100);
    inspector.close();
    sent.end(body.slice(5));
    expect([await answered, calls]).toEqual([404, 0]);
  });

  it("use the method their address is for, and addresses that exist", async () => {
    const inspected = await start();
    for (const path of ["hello", "operations", "search", "sources", "live", "operation", "call"]) {
      expect((await inspected.ask(path, { body: {} })).status).toBe(405);
    }
    for (const path of ["run", "decode", "formats", "validate", "answer", "sources/retry"]) {
      expect((await inspected.ask(path)).status).toBe(405);
      expect((await inspected.ask(path, { method: "DELETE" })).status).toBe(405);
    }
    for (const path of ["", "nothing", "__proto__", "constructor", "hello/", "%68ello"]) {
      expect(await failureOf(await inspected.ask(path))).toEqual([404, "NOT_FOUND"]);
    }
    expect((await inspected.ask("hello", { method: "HEAD" })).status).toBe(200);
  });

  it("are answered with headers that let nothing in from elsewhere", async () => {
    const inspected = await start();
    for (const path of ["hello", "nothing", "../index.html", "../nothing.js"]) {
      const { headers } = await inspected.ask(path);
      expect(headers.get("content-security-policy")).toContain("default-src 'none'");
      expect(headers.get("content-security-policy")).toContain("require-trusted-types-for 'script'");
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("x-frame-options")).toBe("DENY");
      expect(headers.get("cross-origin-resource-policy")).toBe("same-origin");
    }
    expect((await inspected.ask("hello")).headers.get("cache-control")).toBe("no-store");
  });

  it("for files need no token, and the API does", async () => {
    const inspected = await start(AUTH);
    const moved = await fetch(`${inspected.url}/inspect`, { redirect: "manual" });
    expect([moved.status, moved.headers.get("location")]).toEqual([308, "inspect/"]);
    expect((await fetch(`${inspected.url}/inspect/nothing.js`)).status).toBeOneOf([404, 503]);
    expect((await fetch(`${inspected.url}/inspect/api`)).status).toBe(401);
    expect((await fetch(`${inspected.url}/inspect/api/hello`)).status).toBe(401);
    expect(inspected.inspector.route.isOpen?.("/inspect/api/hello")).toBe(false);
    expect(inspected.inspector.route.isOpen?.("/inspect/apis.js")).toBe(true);
  });

  it("never learn a secret of the config, wherever it stands", async () => {
    open = await inspectGateway([
      query("desk.leak", () => ({
        "key-hunter2-hunter2": "say hunter2-hunter2",
        pin: 87654321,
        near: 1876543210,
      })),
    ]);
    open.loaded.secrets.add("hunter2-hunter2");
    open.loaded.secrets.add("87654321");
    const events = await open.run({ operation: "desk.leak", input: { sent: "hunter2-hunter2" } });
    expect(events.find(({ type }) => type === "result")).toMatchObject({
      result: { envelope: { data: { "key-***": "say ***", pin: "***", near: 1876543210 } } },
    });
    const view = await open.get<CallView>("call?seq=1");
    expect(view.input).toEqual({ value: { sent: "***" } });
    expect(JSON.stringify([events, view])).not.toContain("hunter2");
    const feed = await open.live();
    expect(JSON.stringify(feed.events)).not.toContain("hunter2");
    feed.close();
  });
});

/** `fetch` does not send these headers. */
function requestStatus(
  { port }: InspectedGateway,
  headers: Record<string, string>,
): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, path: "/inspect/api/hello", headers }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    sent.on("error", reject).end();
  });
}
