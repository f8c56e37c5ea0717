import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import type { OutgoingRequest } from "./openapi-transport-peers.ts";
import {
  failureOf,
  ONCE,
  openTransport,
  REPEATABLE,
  resolveTo,
  serve,
  serveSecurely,
  TEST_CERTIFICATE,
  textOf,
  toRequest,
} from "./openapi-transport-peers.ts";

const HERE = [["127.0.0.1"]];
const hello: RequestListener = (_request, response) => response.end("hello");

describe("RE-25 private addresses", () => {
  it.each([
    "http://127.0.0.1",
    "http://localhost",
    "http://[::1]",
    new URL("http://[::ffff:127.0.0.1]").origin,
    new URL("http://2130706433").origin,
    new URL("http://0x7f.1").origin,
    new URL("http://0177.0.0.1").origin,
    new URL("http://127.1").origin,
    "http://169.254.169.254",
    "http://10.1.2.3",
    "https://[fd00:ec2::254]",
  ])("RE-25 refuses %s, without a connection", async (origin) => {
    const transport = openTransport({ trusted: [] });
    const error = await failureOf(transport.send(toRequest(origin), REPEATABLE));
    const { hostname, protocol } = new URL(origin);
    const host = hostname.replace(/^\[|\]$/g, "");
    const port = protocol === "https:" ? 443 : 80;
    expect(error).toMatchObject({
      code: "ACCESS_DENIED",
      retryable: false,
      message: `${hostname}:${port} is at a private or reserved address; name it in the option allowPrivate to call it there.`,
      details: { host },
    });
  });

  it("RE-25 calls them where the option says so", async () => {
    const origin = await serve(hello);
    const { host } = new URL(origin);
    for (const allowPrivate of [true, ["127.0.0.1:*"], [host]]) {
      const transport = openTransport({ trusted: [], allowPrivate });
      expect((await transport.send(toRequest(origin), ONCE)).status).toBe(200);
    }
    for (const allowPrivate of [["127.0.0.1:1"], ["127.0.0.1"], false]) {
      const other = openTransport({ trusted: [], allowPrivate });
      expect((await failureOf(other.send(toRequest(origin), ONCE))).code).toBe("ACCESS_DENIED");
    }
  });

  it("RE-25 connects to the address that it checked, and checks each connection anew", async () => {
    const { port } = new URL(await serve(hello));
    const origin = `http://rebind.test:${port}`;
    const lookup = resolveTo({ "rebind.test": [["127.0.0.1"], ["198.51.100.1"]] });
    const trusting = openTransport({ trusted: ["rebind.test:*"] }, { lookup });
    expect(textOf((await trusting.send(toRequest(origin), ONCE)).body)).toBe("hello");
    expect(lookup.asked).toEqual(["rebind.test"]);

    const rebinding = resolveTo({ "rebind.test": [["192.0.43.8"], ["127.0.0.1"]] });
    const transport = openTransport(
      { trusted: [], connectTimeoutMs: 100, retry: false },
      { lookup: rebinding },
    );
    // The first answer is public, and is what is connected to: nobody is there.
    expect((await failureOf(transport.send(toRequest(origin), ONCE))).code).toMatch(
      /^(?:TIMEOUT|UNAVAILABLE)$/,
    );
    expect(rebinding.asked).toHaveLength(1);
    expect((await failureOf(transport.send(toRequest(origin), ONCE))).code).toBe("ACCESS_DENIED");
    expect(rebinding.asked).toHaveLength(2);
  });

  it("RE-25 refuses a redirect to one, and a name that turns out to be at one", async () => {
    let reached = 0;
    const inside = await serve((_request, response) => {
      reached += 1;
      response.end("secret");
    });
    const lookup = resolveTo({ "api.test": HERE, "inside.test": HERE });
    const places = [inside, `http://inside.test:${new URL(inside).port}/`, "http://169.254.169.254/latest"];
    const front = await serve((request, response) => {
      response.writeHead(302, { location: places[Number(request.url?.slice(1))] }).end();
    });
    const origin = `http://api.test:${new URL(front).port}`;
    const transport = openTransport({ trusted: ["api.test:*"] }, { lookup });
    for (const place of places.keys()) {
      const error = await failureOf(transport.send(toRequest(origin, { path: `/${place}` }), REPEATABLE));
      expect(error.code).toBe("ACCESS_DENIED");
    }
    expect(reached).toBe(0);
  });
});

describe("RE-25 redirects", () => {
  const sees: { method?: string | undefined; url?: string | undefined; headers: object; body: string }[] = [];

  async function note(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    sees.push({ method: request.method, url: request.url, headers: request.headers, body });
    response.end("there");
  }

  async function openTwo(status: number, location: (other: string) => string) {
    sees.length = 0;
    const there = await serve((request, response) => void note(request, response));
    const other = `http://other.test:${new URL(there).port}`;
    const front = await serve((request, response) => {
      if (request.url === "/start") response.writeHead(status, { location: location(other) }).end("moved");
      else void note(request, response);
    });
    const lookup = resolveTo({ "api.test": HERE, "other.test": HERE });
    const transport = openTransport({ trusted: ["api.test:*", "other.test:*"] }, { lookup });
    const origin = `http://api.test:${new URL(front).port}`;
    const send = (given: Partial<OutgoingRequest> = {}) =>
      transport.send(toRequest(origin, { path: "/start", ...given }), ONCE);
    return { origin, other, send };
  }

  const headers = {
    accept: "application/json",
    "user-agent": "test",
    authorization: "Bearer secret",
    cookie: "a=secret",
    "x-api-key": "secret",
    "content-type": "text/plain",
  };

  it.each([301, 302, 303, 307, 308])(
    "RE-25 follows a %s of a GET on the same origin with all headers",
    async (status) => {
      const { origin, send } = await openTwo(status, () => "/end?a=1#b");
      const response = await send({ headers });
      expect([response.status, response.url, textOf(response.body)]).toEqual([
        200,
        `${origin}/end?a=1`,
        "there",
      ]);
      expect(sees).toMatchObject([{ method: "GET", url: "/end?a=1", headers: { "x-api-key": "secret" } }]);
    },
  );

  it.each([301, 302, 303, 307, 308])(
    "RE-25 takes no secret along when a %s leads elsewhere",
    async (status) => {
      const { send } = await openTwo(status, (other) => `${other}/end`);
      await send({ headers });
      const { host, connection, ...kept } = { ...sees[0]?.headers } as Record<string, string>;
      expect(kept).toEqual({
        accept: "application/json",
        "accept-encoding": "gzip, deflate, br",
        "user-agent": "test",
      });
      expect([host?.startsWith("other.test:"), connection]).toEqual([true, "keep-alive"]);
    },
  );

  it.each([307, 308])(
    "RE-25 keeps method and body for a %s on the same origin, and to no other",
    async (status) => {
      const post = { method: "POST", body: "payload", headers };
      const same = await openTwo(status, () => "/end");
      await same.send(post);
      expect(sees).toMatchObject([
        { method: "POST", body: "payload", headers: { "content-type": "text/plain" } },
      ]);
      const elsewhere = await openTwo(status, (other) => `${other}/end`);
      expect(await failureOf(elsewhere.send(post))).toMatchObject({
        code: "ACCESS_DENIED",
        message: "api.test redirects a POST request with a body to another origin, which is not followed.",
      });
      expect(sees).toEqual([]);
    },
  );

  it.each([301, 302])("RE-25 does not turn a POST into a GET for a %s", async (status) => {
    const { send } = await openTwo(status, () => "/end");
    expect((await failureOf(send({ method: "POST", body: "payload" }))).code).toBe("ACCESS_DENIED");
    expect(sees).toEqual([]);
  });

  it("RE-25 reads what a 303 names, without the body and what described it", async () => {
    const { send } = await openTwo(303, () => "/end");
    await send({ method: "POST", body: "payload", headers });
    expect(sees).toMatchObject([{ method: "GET", body: "" }]);
    expect(sees[0]?.headers).not.toHaveProperty("content-type");
  });

  it.each([
    "ftp://api.test/",
    "file:///etc/passwd",
    "http://user:secret@api.test/",
    "http://",
    `/${"x".repeat(33_000)}`,
    "javascript:alert(1)",
  ])("RE-25 does not follow to %s", async (location) => {
    const { send } = await openTwo(302, () => location);
    expect((await failureOf(send())).code).toBe("OUTPUT_INVALID");
  });

  it("RE-25 follows as many redirects as the option says and not one more", async () => {
    const origin = await serve((request, response) => {
      const left = Number(request.url?.slice(1));
      if (left === 0) response.end("there");
      else response.writeHead(302, { location: `/${left - 1}` }).end();
    });
    for (const redirects of [0, 1, 5]) {
      const transport = openTransport({ redirects });
      const send = (hops: number) => transport.send(toRequest(origin, { path: `/${hops}` }), REPEATABLE);
      expect(textOf((await send(redirects)).body)).toBe("there");
      expect((await failureOf(send(redirects + 1))).code).toBe("OUTPUT_INVALID");
    }
  });

  it("RE-25 gives a redirect without a place as it is, and skips a redirect's body however long", async () => {
    const origin = await serve((request, response) => {
      if (request.url === "/none") response.writeHead(302).end("moved");
      else if (request.url === "/long")
        response.writeHead(302, { location: "/end" }).end(Buffer.alloc(1_000_000));
      else response.end("there");
    });
    const transport = openTransport({ limits: { responseBytes: 1_000 } });
    expect((await transport.send(toRequest(origin, { path: "/none" }), ONCE)).status).toBe(302);
    expect(textOf((await transport.send(toRequest(origin, { path: "/long" }), ONCE)).body)).toBe("there");
  });
});

describe("RE-25 TLS", () => {
  const lookup = resolveTo({ "api.test": HERE, "wrong.test": HERE });
  const seams = { lookup, ca: TEST_CERTIFICATE };
  const trusted = ["api.test:*", "wrong.test:*"];

  it("RE-25 connects to the checked address and asks for the certificate of the name", async () => {
    const port = await serveSecurely(hello);
    const transport = openTransport({ trusted }, seams);
    expect(textOf((await transport.send(toRequest(`https://api.test:${port}`), ONCE)).body)).toBe("hello");
    const error = await failureOf(transport.send(toRequest(`https://wrong.test:${port}`), REPEATABLE));
    expect(error).toMatchObject({
      code: "UNAVAILABLE",
      message: "wrong.test cannot be reached securely.",
      details: { host: "wrong.test", attempts: 1 },
    });
  });

  it("RE-25 does not trust a certificate that nobody vouches for, nor what is no TLS", async () => {
    const port = await serveSecurely(hello);
    const plain = new URL(await serve(hello)).port;
    const transport = openTransport({ trusted }, { lookup });
    for (const at of [port, plain]) {
      const error = await failureOf(transport.send(toRequest(`https://api.test:${at}`), ONCE));
      expect([error.code, error.message]).toEqual(["UNAVAILABLE", "api.test cannot be reached securely."]);
    }
  });

  it("RE-25 does not follow from https to http", async () => {
    const plain = await serve(hello);
    const port = await serveSecurely((_request, response) =>
      response.writeHead(302, { location: plain }).end(),
    );
    const transport = openTransport({ trusted: [...trusted, "127.0.0.1:*"] }, seams);
    expect(await failureOf(transport.send(toRequest(`https://api.test:${port}`), ONCE))).toMatchObject({
      code: "ACCESS_DENIED",
      message: "api.test redirects from https to http, which is not followed.",
    });
  });
});
