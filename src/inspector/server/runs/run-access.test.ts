import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { afterEach, describe, expect, it, vi } from "vitest";
import { as, type InspectedGateway, inspectGateway, TOKENS } from "../../../../test/inspected-gateway.ts";
import { query, sleep, stream, until } from "../../../../test/make-operation.ts";
import type { GatewayConfig } from "../../../gateway/config/gateway-config.ts";
import type { CallView, Failure, LiveEvent } from "../../protocol.ts";

const seen = { begun: 0, aborted: 0, given: 0 };
let finish: () => void = () => {};

function operations() {
  return [
    query("desk.echo", (input) => input ?? null),
    query("desk.wait", (_, { signal }) => {
      seen.begun += 1;
      return new Promise((resolve, reject) => {
        finish = () => resolve("finished");
        signal.addEventListener("abort", () => {
          seen.aborted += 1;
          reject(signal.reason);
        });
      });
    }),
    query("desk.ask", async (_, context) => {
      const ask = () =>
        context.elicit({ message: "Who?", requestedSchema: { type: "object", properties: {} } });
      const first = ask();
      seen.begun += 1;
      return [await first, await ask()];
    }),
    stream("desk.tick", async function* () {
      for (;;) {
        seen.given += 1;
        yield seen.given;
        await sleep(20);
      }
    }),
    stream("desk.pour", async function* () {
      for (;;) {
        seen.given += 1;
        yield "x".repeat(1_000_000);
      }
    }),
  ];
}

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const AUTH = { serve: { auth: { tokens: TOKENS } } } satisfies GatewayConfig;
const { ann: _, ...OTHERS } = TOKENS;
const WITHOUT_ANN = { serve: { auth: { tokens: OTHERS } } } satisfies GatewayConfig;

async function start(
  config: GatewayConfig = AUTH,
  options: Parameters<typeof inspectGateway>[2] = {},
): Promise<InspectedGateway> {
  Object.assign(seen, { begun: 0, aborted: 0, given: 0 });
  const open = await inspectGateway(operations(), config, options);
  closers.push(() => open.close());
  return open;
}

describe("calls of a page whose callers are no longer believed", () => {
  it("end with a sentence, and go on where nothing changed for callers", async () => {
    const open = await start();
    const running = open.run({ operation: "desk.wait" }, { headers: as("ann") });
    await until(() => seen.begun === 1);
    await open.reload({ ...AUTH, name: "another" });
    await sleep(1_200);
    expect(seen.aborted).toBe(0);
    await open.reload(WITHOUT_ANN);
    expect((await running).at(-1)).toMatchObject({
      type: "error",
      error: { code: "UNAUTHENTICATED", message: expect.stringContaining("has changed") },
    });
    expect(seen.aborted).toBe(1);
  });

  it("tell no value more", async () => {
    const open = await start();
    const running = open.run({ operation: "desk.tick" }, { headers: as("ann") });
    await until(() => seen.given > 2);
    await open.reload(WITHOUT_ANN);
    const { given } = seen;
    const events = await running;
    expect(events.at(-1)).toMatchObject({ type: "error", error: { code: "UNAUTHENTICATED" } });
    expect(events.filter(({ type }) => type === "result").length).toBeLessThanOrEqual(given);
  });

  it("tell no result that comes after", async () => {
    const open = await start();
    const running = open.run({ operation: "desk.wait" }, { headers: as("ann") });
    await until(() => seen.begun === 1);
    await open.reload(WITHOUT_ANN);
    finish();
    const events = await running;
    expect(events.map(({ type }) => type)).toEqual(["started", "error"]);
  });

  it("do not begin when their request was still arriving", async () => {
    const open = await start();
    const body = JSON.stringify({ operation: "desk.wait" });
    const sent = request({
      host: "127.0.0.1",
      port: open.port,
      path: "/inspect/api/run",
      method: "POST",
      headers: {
        "content-type": "application/json",
        "content-length": body.length,
        expect: "100-continue",
        ...as("ann"),
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
    // Whoever is known is known by the time the next request is answered.
    expect((await open.ask("hello", { headers: as("ann") })).status).toBe(200);
    await open.reload(WITHOUT_ANN);
    sent.end(body.slice(5));
    expect([await answered, seen.begun]).toEqual([401, 0]);
  });

  it("do not wait for a page that does not read", async () => {
    const open = await start(AUTH, { writeTimeoutMs: 50 });
    const response = await open.ask("run", { body: { operation: "desk.pour" }, headers: as("ann") });
    await sleep(300);
    await open.reload(WITHOUT_ANN);
    await vi.waitFor(
      async () => {
        const { row } = await open.get<CallView>("call?seq=1", { headers: as("olga") });
        expect(row.outcome).toBeDefined();
      },
      { timeout: 20_000 },
    );
    await response.body?.cancel().catch(() => {});
  });
});

describe("calls of pages while the inspector closes", () => {
  it("go on to their end, while nothing new begins and feeds end", async () => {
    const open = await start({});
    const running = open.run({ operation: "desk.wait" });
    const feed = await open.ask("live");
    await until(() => seen.begun === 1);
    const closing = open.inspector.close({ timeoutMs: 60_000 });
    expect(await feed.text()).toContain('"begin"');
    expect((await open.ask("run", { body: { operation: "desk.echo" } })).status).toBe(404);
    finish();
    expect((await running).map(({ type }) => type)).toEqual(["started", "result", "end"]);
    await closing;
    expect(seen.aborted).toBe(0);
  });

  it("have their questions declined, which nobody can answer any more", async () => {
    const open = await start({});
    const running = open.run({ operation: "desk.ask" });
    await until(() => seen.begun === 1);
    const closing = open.inspector.close({ timeoutMs: 60_000 });
    expect((await running).at(-2)).toMatchObject({
      type: "result",
      result: { envelope: { data: [{ action: "decline" }, { action: "decline" }] } },
    });
    await closing;
  });

  it("are ended with a sentence when their time is up", async () => {
    const open = await start({});
    const running = open.run({ operation: "desk.wait" });
    await until(() => seen.begun === 1);
    const startedAt = performance.now();
    await open.inspector.close({ timeoutMs: 200 });
    expect(performance.now() - startedAt).toBeGreaterThan(150);
    expect((await running).at(-1)).toMatchObject({
      type: "error",
      error: { code: "ABORTED", message: expect.stringContaining("was closed") },
    });
  });
});

describe("callers of one name", () => {
  it("do not see each other's calls where they were recognised in other ways", async () => {
    const { publicKey, privateKey } = await generateKeyPair("ES256");
    const keys = { keys: [{ ...(await exportJWK(publicKey)), alg: "ES256", use: "sig" }] };
    const server = createServer((_, response) => response.end(JSON.stringify(keys)));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    closers.push(() => server.close());
    const jwksUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
    const issuer = ["https://one.example", "https://two.example"];
    const open = await start({
      serve: { auth: { tokens: TOKENS, jwt: { audience: "gate", jwksUrl, issuer } } },
    });
    const signed = async (from: string | undefined) => {
      const jwt = new SignJWT({})
        .setProtectedHeader({ alg: "ES256" })
        .setSubject("bob")
        .setIssuer(from ?? "")
        .setAudience("gate")
        .setExpirationTime("1m");
      return { authorization: `Bearer ${await jwt.sign(privateKey)}` };
    };
    const all = [as("bob"), await signed(issuer[0]), await signed(issuer[1])];
    for (const headers of all) {
      const called = await fetch(`${open.url}/call`, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: JSON.stringify({ operation: "desk.echo", input: 1 }),
      });
      expect(called.status).toBe(200);
    }
    // Another token of the same issuer for the same subject.
    for (const [at, headers] of [as("bob"), await signed(issuer[0]), await signed(issuer[1])].entries()) {
      const statuses = await Promise.all(
        [1, 2, 3].map(async (seq) => (await open.ask(`call?seq=${seq}`, { headers })).status),
      );
      expect(statuses).toEqual([404, 404, 404].with(at, 200));
      const feed = await open.live(headers);
      await until(() => feed.events.some(({ type }) => type === "calls"));
      expect(seqsOf(feed.events)).toEqual([at + 1]);
      feed.close();
    }
    const statuses = [1, 2, 3].map(
      async (seq) => (await open.ask(`call?seq=${seq}`, { headers: as("olga") })).status,
    );
    expect(await Promise.all(statuses)).toEqual([200, 200, 200]);
  });
});

describe("sources that are down", () => {
  it("are named to operators alone when one of their operations is asked for", async () => {
    const mcpServers = { vault: { url: "http://127.0.0.1:1/mcp" } };
    const open = await start({ ...AUTH, mcpServers });
    const failure = async (path: string, name: keyof typeof TOKENS, body?: object) => {
      const response = await open.ask(path, { headers: as(name), body });
      const { error } = (await response.json()) as Failure;
      return [response.status, error.code, error.message];
    };
    expect(await failure("operation?id=vault.read", "olga")).toEqual([
      503,
      "UNAVAILABLE",
      expect.stringContaining('"vault"'),
    ]);
    const hidden = [404, "OPERATION_NOT_FOUND", 'There is no operation "vault.read".'];
    expect(await failure("operation?id=vault.read", "bob")).toEqual(hidden);
    expect(await failure("validate", "bob", { operation: "vault.read", input: {} })).toEqual(hidden);
  });
});

function seqsOf(events: readonly LiveEvent[]): readonly number[] {
  return events.flatMap((event) => (event.type === "calls" ? event.rows.map(({ seq }) => seq) : []));
}
