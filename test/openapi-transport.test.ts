import { getEventListeners } from "node:events";
import { expect, it, onTestFinished } from "vitest";
import { CallError } from "../src/index.ts";
import { sleep, until } from "./make-operation.ts";
import {
  createTransport,
  failureOf,
  type HttpTransport,
  NEVER,
  ONCE,
  openTransport,
  REPEATABLE,
  type ResolveHost,
  readAll,
  resolveTo,
  serve,
  serveRaw,
  textOf,
  toRequest,
} from "./openapi-transport-peers.ts";

it("RE-25 sends a request as it is and gives all of the response", async () => {
  const origin = await serve(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    const { "x-a": a, "content-length": length, host } = request.headers;
    response.setHeader("Set-Cookie", ["a=1", "b=2"]);
    response.writeHead(201, { "X-Kind": "Dog" });
    response.end(JSON.stringify({ method: request.method, url: request.url, a, length, host, body }));
  });
  const transport = openTransport();
  for (const body of ["Größe", new TextEncoder().encode("Größe"), undefined]) {
    const headers = { "x-a": "1", Host: "evil.test", "content-length": "9", connection: "close" };
    const response = await transport.send(
      toRequest(origin, { method: "PUT", path: "/pets/a%2Fb?x=%20", headers, body }),
      ONCE,
    );
    expect(JSON.parse(textOf(response.body))).toEqual({
      method: "PUT",
      url: "/pets/a%2Fb?x=%20",
      a: "1",
      length: body === undefined ? "0" : "7",
      host: new URL(origin).host,
      body: body === undefined ? "" : "Größe",
    });
    expect(response).toMatchObject({ status: 201, attempts: 1, delimited: true });
    expect(response.url).toBe(`${origin}/pets/a%2Fb?x=%20`);
    expect(response.headers["set-cookie"]).toEqual(["a=1", "b=2"]);
    expect(response.headers["x-kind"]).toBe("Dog");
  }
});

it("RE-25 keeps connections alive and opens no more than the option concurrency", async () => {
  const ports = new Set<number | undefined>();
  const origin = await serve((request, response) => {
    ports.add(request.socket.remotePort);
    setTimeout(() => response.end("ok"), 1);
  });
  const transport = openTransport({ concurrency: 4 });
  await Promise.all(Array.from({ length: 60 }, () => transport.send(toRequest(origin), ONCE)));
  expect(ports.size).toBe(4);
});

it("RE-25 takes headers of any name for ordinary ones", async () => {
  const origin = await serveRaw((socket) => {
    socket.end(
      "HTTP/1.1 200 OK\r\n__proto__: a\r\nconstructor: b\r\ntoString: c\r\nContent-Length: 0\r\n\r\n",
    );
  });
  const { headers } = await openTransport().send(toRequest(origin), ONCE);
  expect(Object.entries(headers)).toEqual([
    ["__proto__", "a"],
    ["constructor", "b"],
    ["tostring", "c"],
    ["content-length", "0"],
  ]);
});

it("RE-25 refuses requests that are too large, or that HTTP cannot carry, before they are sent", async () => {
  let requests = 0;
  const origin = await serve((_request, response) => {
    requests += 1;
    response.end();
  });
  const transport = openTransport({ limits: { requestBytes: 10, urlCharacters: 100 } });
  const send = (given: object) => transport.send(toRequest(origin, { method: "POST", ...given }), ONCE);
  await send({ body: "x".repeat(10), path: `/${"x".repeat(99 - origin.length)}` });
  expect((await failureOf(send({ body: "x".repeat(11) }))).code).toBe("TOO_LARGE");
  expect((await failureOf(send({ path: `/${"x".repeat(100 - origin.length)}` }))).code).toBe("TOO_LARGE");
  for (const bad of [
    { path: "/a b" },
    { path: "/\r\nx: y" },
    { headers: { a: "b\r\nc: d" } },
    { headers: { "a b": "" } },
  ]) {
    expect((await failureOf(send(bad))).code).toBe("VALIDATION_ERROR");
  }
  for (const bad of ["ftp://127.0.0.1", "http://a:b@127.0.0.1", `${origin}/base`, "nonsense"]) {
    expect((await failureOf(transport.send(toRequest(bad), ONCE))).code).toBe("VALIDATION_ERROR");
  }
  expect(requests).toBe(1);
});

it("X-5 says what went wrong by table, without foreign words", async () => {
  const garbage = await serveRaw((socket) => socket.end("SSH-2.0-OpenSSH\r\n\r\n"));
  const silent = await serveRaw(() => {});
  const lookup = resolveTo({});
  const transport = openTransport({ trusted: ["127.0.0.1:*", "gone.test:*"], retry: false }, { lookup });
  const hasty = openTransport({ retry: false, timeoutMs: 50 });
  const codes: [string, string, string][] = [
    [garbage, "OUTPUT_INVALID", "127.0.0.1 did not answer in valid HTTP."],
    [silent, "TIMEOUT", "127.0.0.1 did not answer within 50 ms."],
    ["http://127.0.0.1:1", "UNAVAILABLE", "127.0.0.1:1 cannot be reached."],
    ["http://gone.test", "UNAVAILABLE", "gone.test cannot be reached."],
  ];
  for (const [origin, code, message] of codes) {
    const error = await failureOf(
      (origin === silent ? hasty : transport).send(toRequest(origin), REPEATABLE),
    );
    expect({ code: error.code, message: error.message }).toEqual({ code, message });
    expect(error.details).toEqual({ host: new URL(origin).hostname, attempts: 1 });
  }
});

it("X-5 ends a call at once with what its signal says", async () => {
  const origin = await serve(() => {});
  const transport = openTransport();
  const reasons: [unknown, string][] = [
    [undefined, "ABORTED"],
    [new DOMException("too late", "TimeoutError"), "TIMEOUT"],
    [new CallError("CONFLICT", "mine"), "CONFLICT"],
    ["a word", "ABORTED"],
  ];
  for (const [reason, code] of reasons) {
    const controller = new AbortController();
    const call = transport.send(toRequest(origin), { signal: controller.signal, repeatable: true });
    setTimeout(() => controller.abort(reason), 10);
    const error = await failureOf(call);
    expect(error.code).toBe(code);
    if (reason instanceof CallError) expect(error).toBe(reason);
    else expect(error.cause).toBe(controller.signal.reason);
    const again = transport.send(toRequest(origin), { signal: controller.signal, repeatable: true });
    expect((await failureOf(again)).code).toBe(code);
  }
});

it("RE-25 connects in time or not at all, and never sends what was given up", async () => {
  let requests = 0;
  const { port } = new URL(
    await serve((_request, response) => {
      requests += 1;
      response.end();
    }),
  );
  const held: (() => void)[] = [];
  const lookup: ResolveHost = (_name, _options, callback) =>
    void held.push(() => callback(null, [{ address: "127.0.0.1", family: 4 }]));
  const slow = { trusted: ["slow.test:*"], retry: false } as const;
  const transport = openTransport({ ...slow, connectTimeoutMs: 300 }, { lookup });
  const error = await failureOf(transport.send(toRequest(`http://slow.test:${port}`), ONCE));
  expect([error.code, error.message]).toEqual([
    "TIMEOUT",
    `slow.test:${port} did not accept a connection in time.`,
  ]);
  const given = openTransport({ ...slow, timeoutMs: 300 }, { lookup });
  expect((await failureOf(given.send(toRequest(`http://slow.test:${port}`), ONCE))).code).toBe("TIMEOUT");
  expect(held).toHaveLength(2);
  for (const find of held) find();
  await sleep(100);
  expect(requests).toBe(0);
});

it("RE-25 frees the slot of a call that was given up while it was connecting", async () => {
  const { port } = new URL(await serve((_request, response) => response.end("ok")));
  const held: (() => void)[] = [];
  const transport = openTransport(
    { trusted: ["slow.test:*"], concurrency: 1, retry: false },
    {
      lookup: (_name, _options, callback) => {
        const find = () => callback(null, [{ address: "127.0.0.1", family: 4 }]);
        if (held.push(find) > 1) setImmediate(find);
      },
    },
  );
  const origin = `http://slow.test:${port}`;
  const controller = new AbortController();
  const call = transport.send(toRequest(origin), { signal: controller.signal, repeatable: false });
  await until(() => held.length === 1);
  controller.abort();
  expect((await failureOf(call)).code).toBe("ABORTED");
  const next = transport.send(toRequest(origin), ONCE);
  held[0]?.();
  expect((await next).status).toBe(200);
});

it.each([408, 425, 429, 502, 503, 504])(
  "RE-25 sends a repeatable request again after a %s",
  async (status) => {
    let requests = 0;
    const origin = await serve((_request, response) => {
      requests += 1;
      response.writeHead(requests < 3 ? status : 200).end("ok");
    });
    const transport = openTransport();
    expect(await transport.send(toRequest(origin), REPEATABLE)).toMatchObject({ status: 200, attempts: 3 });
    requests = 0;
    expect(await transport.send(toRequest(origin), ONCE)).toMatchObject({ status, attempts: 1 });
    requests = -1;
    expect(await transport.send(toRequest(origin), REPEATABLE)).toMatchObject({ status, attempts: 3 });
    requests = 0;
    expect(await openTransport({ retry: false }).send(toRequest(origin), REPEATABLE)).toMatchObject({
      status,
    });
    expect(requests).toBe(1);
  },
);

it.each([400, 401, 404, 409, 500, 501])("RE-25 gives a %s as it is, once", async (status) => {
  const origin = await serve((_request, response) => response.writeHead(status).end("no"));
  const response = await openTransport().send(toRequest(origin), REPEATABLE);
  expect(response).toMatchObject({ status, attempts: 1 });
  expect(textOf(response.body)).toBe("no");
});

it("RE-25 sends a request again after a lost connection only where that does no harm", async () => {
  let requests = 0;
  const origin = await serveRaw((socket) => {
    requests += 1;
    if (requests % 3 === 0) socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    else socket.destroy();
  });
  const transport = openTransport();
  expect(await transport.send(toRequest(origin), REPEATABLE)).toMatchObject({ status: 200, attempts: 3 });
  const error = await failureOf(transport.send(toRequest(origin, { method: "POST", body: "x" }), ONCE));
  expect([error.code, error.details, requests]).toEqual([
    "UNAVAILABLE",
    { host: "127.0.0.1", attempts: 1 },
    4,
  ]);
});

it("RE-25 sends any request again when nothing of it can have left", async () => {
  const { port } = new URL(await serve((_request, response) => response.end("ok")));
  let lookups = 0;
  const transport = openTransport(
    { trusted: ["late.test:*"] },
    {
      lookup: (_name, _options, callback) => {
        lookups += 1;
        if (lookups < 3) setImmediate(callback, Object.assign(new Error("x"), { code: "EAI_AGAIN" }), []);
        else setImmediate(callback, null, [{ address: "127.0.0.1", family: 4 }]);
      },
    },
  );
  const request = toRequest(`http://late.test:${port}`, { method: "POST", body: "x" });
  expect(await transport.send(request, ONCE)).toMatchObject({ status: 200, attempts: 3 });
  const error = await failureOf(transport.send(toRequest("http://127.0.0.1:1"), ONCE));
  expect(error.code).toBe("ACCESS_DENIED");
});

it("RE-25 waits as long as Retry-After says, up to the longest wait, and not at all past it", async () => {
  let requests = 0;
  let retryAfter = "0.1";
  const origin = await serve((_request, response) => {
    requests += 1;
    response.writeHead(requests === 1 ? 503 : 200, { "retry-after": retryAfter }).end();
  });
  const transport = openTransport({ retry: { maxDelayMs: 2_500 } });
  const started = performance.now();
  expect(await transport.send(toRequest(origin), REPEATABLE)).toMatchObject({ status: 200, attempts: 2 });
  expect(performance.now() - started).toBeGreaterThan(95);
  for (const far of ["3", "99999999999999999999", new Date(Date.now() + 60_000).toUTCString()]) {
    requests = 0;
    retryAfter = far;
    expect(await transport.send(toRequest(origin), REPEATABLE)).toMatchObject({ status: 503, attempts: 1 });
  }
});

it("RE-25 ends the wait for another attempt at once on abort, and on close", async () => {
  let requests = 0;
  const origin = await serve((_request, response) => {
    requests += 1;
    response.writeHead(503, { "retry-after": "600" }).end();
  });
  const controller = new AbortController();
  const transport = openTransport({ timeoutMs: 900_000, retry: { maxDelayMs: 900_000 } });
  const call = failureOf(transport.send(toRequest(origin), { signal: controller.signal, repeatable: true }));
  await until(() => requests === 1);
  await sleep(30);
  controller.abort();
  expect((await call).code).toBe("ABORTED");
  const other = failureOf(transport.send(toRequest(origin), REPEATABLE));
  await until(() => requests === 2);
  await sleep(30);
  await transport.close();
  expect((await other).message).toBe("127.0.0.1 is not called any more: the source is closed.");
});

it("RE-25 lets so many run, so many wait, and one more fail at once", async () => {
  const open: (() => void)[] = [];
  const origin = await serve((_request, response) => {
    open.push(() => response.end("ok"));
  });
  const transport = openTransport({ concurrency: 3, queue: 2 });
  const controller = new AbortController();
  const send = (signal: AbortSignal = NEVER) =>
    transport.send(toRequest(origin), { signal, repeatable: true });
  const running = [send(), send(), send()];
  const waiting = [send(controller.signal), send()];
  expect((await failureOf(send())).code).toBe("RESOURCE_EXHAUSTED");
  await until(() => open.length === 3);
  controller.abort();
  expect((await failureOf(waiting[0] as Promise<unknown>)).code).toBe("ABORTED");
  const third = send();
  expect((await failureOf(send())).code).toBe("RESOURCE_EXHAUSTED");
  await sleep(20);
  expect(open).toHaveLength(3);
  const timer = setInterval(() => open.shift()?.(), 1);
  onTestFinished(() => clearInterval(timer));
  expect((await Promise.all([...running, waiting[1], third])).map((response) => response?.status)).toEqual([
    200, 200, 200, 200, 200,
  ]);
});

it("RE-25 counts a stream as running until it ends", async () => {
  const origin = await serve((request, response) => {
    if (request.url === "/stream") response.write("one");
    else response.end("ok");
  });
  const transport = openTransport({ concurrency: 1 });
  const { body } = await transport.stream(toRequest(origin, { path: "/stream" }), ONCE);
  let isDone = false;
  const call = transport.send(toRequest(origin), ONCE).then(() => {
    isDone = true;
  });
  await sleep(30);
  expect(isDone).toBe(false);
  for await (const _chunk of body as AsyncIterable<Uint8Array>) break;
  await call;
});

it("RE-25 begins no more requests in a period than the option rate says", async () => {
  let requests = 0;
  const origin = await serve((_request, response) => {
    requests += 1;
    response.end("ok");
  });
  const send = (transport: HttpTransport, count: number) =>
    Promise.all(Array.from({ length: count }, () => transport.send(toRequest(origin), ONCE)));
  const slow = openTransport({ rate: { calls: 3, perMs: 3_600_000 } });
  await send(slow, 3);
  const fourth = failureOf(send(slow, 1));
  await sleep(50);
  expect(requests).toBe(3);
  await slow.close();
  expect((await fourth).code).toBe("UNAVAILABLE");
  const started = performance.now();
  await send(openTransport({ rate: { calls: 3, perMs: 150 } }), 7);
  expect(performance.now() - started).toBeGreaterThan(290);
  expect(requests).toBe(10);
});

it("RE-25 ends whatever is open when it is closed, and leaves nothing behind", async () => {
  const origin = await serve((request, response) => {
    if (request.url === "/stream") response.write("one");
  });
  const count = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
  const before = count();
  const transport = createTransport(
    { trusted: ["127.0.0.1:*", "slow.test:*"], concurrency: 3 },
    { lookup: () => {} },
  );
  const streamed = await transport.stream(toRequest(origin, { path: "/stream" }), ONCE);
  const calls = [
    failureOf(readAll(streamed.body)),
    failureOf(transport.send(toRequest(origin), REPEATABLE)),
    failureOf(transport.send(toRequest("http://slow.test"), REPEATABLE)),
    failureOf(transport.send(toRequest(origin), REPEATABLE)),
  ];
  await sleep(20);
  await Promise.all([transport.close(), transport.close()]);
  const errors = await Promise.all(calls);
  expect(errors.map(({ code }) => code)).toEqual(Array(4).fill("UNAVAILABLE"));
  for (const { message } of errors)
    expect(message).toMatch(/ is not called any more: the source is closed\.$/);
  expect((await failureOf(transport.send(toRequest(origin), ONCE))).code).toBe("UNAVAILABLE");
  await transport.close();
  await until(() => count() <= before);
});

it("RE-25 leaves no listener at a signal that outlives its calls", async () => {
  const origin = await serve((_request, response) => response.end("ok"));
  const controller = new AbortController();
  const transport = openTransport();
  const options = { signal: controller.signal, repeatable: true };
  await Promise.all(Array.from({ length: 100 }, () => transport.send(toRequest(origin), options)));
  expect(getEventListeners(controller.signal, "abort")).toHaveLength(0);
});
