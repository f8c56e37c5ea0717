import { createServer } from "node:net";
import { expect, it } from "vitest";
import { sleep, until } from "./make-operation.ts";
import {
  failureOf,
  NEVER,
  ONCE,
  openTransport,
  REPEATABLE,
  readAll,
  serve,
  serveRaw,
  textOf,
  toRequest,
} from "./openapi-transport-peers.ts";

const CHUNKED = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n";

it("RE-25 RE-30 reads a body in chunks of one byte in a few times its size", async () => {
  const size = 1_000_000;
  const origin = await serveRaw((socket) => {
    socket.write(CHUNKED);
    socket.write(Buffer.from("1\r\na\r\n".repeat(size)));
    socket.write("0\r\n\r\n");
  });
  const response = await openTransport().send(toRequest(origin), ONCE);
  expect(response.body.length).toBe(size);
  expect(response.body.every((byte) => byte === 0x61)).toBe(true);
});

it("RE-25 RE-30 times out in the middle of a flood", async () => {
  const piece = Buffer.from("1\r\na\r\n".repeat(10_000));
  const origin = await serveRaw((socket) => {
    socket.write(CHUNKED);
    const flood = () => {
      while (!socket.destroyed && socket.write(piece));
    };
    socket.on("drain", flood);
    flood();
  });
  const transport = openTransport({ timeoutMs: 200, retry: false });
  expect(await failureOf(transport.send(toRequest(origin), ONCE))).toMatchObject({ code: "TIMEOUT" });
});

const OK = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nok";
const GO_ON = "HTTP/1.1 100 Continue\r\nx-a: b\r\n\r\n";

it.each([
  ["one", GO_ON + OK],
  ["several", GO_ON + GO_ON + OK],
  ["one and early hints", `${GO_ON}HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${GO_ON}${OK}`],
  ["none", OK],
  [
    "one, before much",
    `${GO_ON}HTTP/1.1 200 OK\r\nx-much: ${"x".repeat(20_000)}\r\ncontent-length: 2\r\n\r\nok`,
  ],
])(
  "RE-25 takes a response after 100 Continue that nobody asked for, however it is cut: %s",
  async (_, all) => {
    for (const step of [1, 5, 30, all.length].filter((size) => all.length / size < 500)) {
      const origin = await serveRaw(async (socket) => {
        socket.setNoDelay(true);
        for (let at = 0; at < all.length; at += step) {
          socket.write(all.slice(at, at + step));
          if (step > 1) await sleep(2);
        }
      });
      const transport = openTransport({ retry: false, timeoutMs: 60_000 });
      for (let call = 0; call < 2; call++) {
        const response = await transport.send(toRequest(origin), ONCE);
        expect([response.status, textOf(response.body)]).toEqual([200, "ok"]);
      }
    }
  },
);

it("RE-25 takes nothing out of a body that looks like a head", async () => {
  const body = `${GO_ON}x`;
  const origin = await serveRaw(async (socket) => {
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n`);
    await sleep(20);
    socket.write(body);
  });
  expect(textOf((await openTransport().send(toRequest(origin), ONCE)).body)).toBe(body);
});

it("RE-25 takes nothing that comes before it asks for the beginning of an answer", async () => {
  let asked = 0;
  let isSent = false;
  const origin = await serveRaw((socket) => {
    asked += 1;
    socket.write(OK);
    if (asked > 1) return;
    const more = "HTTP/1.1 102 Processing\r\nx-a: b";
    setTimeout(() => {
      socket.write(more, () => {
        isSent = true;
      });
    }, 20);
  });
  const transport = openTransport();
  for (let call = 0; call < 2; call++) {
    expect(textOf((await transport.send(toRequest(origin), REPEATABLE)).body)).toBe("ok");
    await until(() => isSent);
    await sleep(80);
  }
});

it("RE-25 does not wait for ever, nor succeed, where all that comes is 100 Continue", async () => {
  const origin = await serveRaw((socket) => void socket.end(GO_ON));
  const transport = openTransport({ retry: false });
  expect(await failureOf(transport.send(toRequest(origin), ONCE))).toMatchObject({ code: "UNAVAILABLE" });
  const endless = await serveRaw((socket) => void socket.end(`HTTP/1.1 100 C\r\nx: ${"x".repeat(100_000)}`));
  expect((await failureOf(transport.send(toRequest(endless), ONCE))).code).toMatch(
    /^(UNAVAILABLE|TOO_LARGE)$/,
  );
});

it.each(["hello", "H", "HTTP/1.1 1", "HTTP/2.0 100 Continue\r\n\r\n"])(
  "RE-25 takes %j for no response",
  async (text) => {
    const origin = await serveRaw((socket) => void socket.end(text));
    const error = await failureOf(openTransport({ retry: false }).send(toRequest(origin), ONCE));
    expect(error.code).toMatch(/^(?:OUTPUT_INVALID|UNAVAILABLE)$/);
  },
);

it("RE-25 opens no other connection for a call that was aborted", async () => {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  const transport = openTransport({ retry: false, timeoutMs: 1_000 });
  const failed = failureOf(transport.send(toRequest(`http://127.0.0.1:${port}`), ONCE));
  await until(() => connections === 1);
  expect(await failed).toMatchObject({ code: "TIMEOUT" });
  await sleep(150);
  expect(connections).toBe(1);
  await transport.close();
  server.close();
});

it("RE-25 counts each redirect towards the rate, and holds nobody's slot for it", async () => {
  const times: number[] = [];
  const origin = await serve((request, response) => {
    times.push(performance.now());
    const step = Number(request.url?.slice(1));
    if (step < 3) response.writeHead(302, { location: `/${step + 1}` });
    response.end("ok");
  });
  const transport = openTransport({ rate: { calls: 2, perMs: 150 }, concurrency: 1, timeoutMs: 60_000 });
  const startedAt = performance.now();
  const [first, second] = await Promise.all([
    transport.send(toRequest(origin, { path: "/0" }), ONCE),
    transport.send(toRequest(origin, { path: "/3" }), ONCE),
  ]);
  expect([first.status, second.status]).toEqual([200, 200]);
  expect(times).toHaveLength(5);
  // Two in each period: the fifth waits for the third. Servers may hear late of a request, never early.
  expect((times.at(-1) as number) - startedAt).toBeGreaterThan(290);
});

it("RE-25 a redirect that waits for its turn can be aborted, and ends with its transport", async () => {
  let asked = 0;
  const origin = await serve((_, response) => {
    asked += 1;
    response.writeHead(302, { location: "/again" });
    response.end();
  });
  const transport = openTransport({ rate: { calls: 1, perMs: 600_000 } });
  const stop = new AbortController();
  const aborted = failureOf(transport.send(toRequest(origin), { signal: stop.signal, repeatable: false }));
  await until(() => asked === 1);
  await sleep(50);
  stop.abort();
  expect((await aborted).code).toBe("ABORTED");
  const other = openTransport({ rate: { calls: 1, perMs: 600_000 } });
  const closed = failureOf(other.send(toRequest(origin), { signal: NEVER, repeatable: false }));
  await until(() => asked === 2);
  await sleep(50);
  await other.close();
  expect((await closed).code).toBe("UNAVAILABLE");
});

it("RE-25 names the host of a transport that is closed, and nothing of the request where too many wait", async () => {
  const closed = openTransport();
  await closed.close();
  expect(await failureOf(closed.send(toRequest("http://api.test:81"), ONCE))).toMatchObject({
    details: { host: "api.test" },
    message: expect.stringMatching(/^api\.test /),
  });
  let asked = 0;
  const origin = await serve(() => void asked++);
  const transport = openTransport({ concurrency: 1, queue: 1 });
  const request = toRequest(origin, { headers: { authorization: "Bearer secret" } });
  const open = [failureOf(transport.send(request, ONCE)), failureOf(transport.send(request, ONCE))];
  await until(() => asked === 1);
  expect((await failureOf(transport.send(request, ONCE))).details).toEqual({
    host: "127.0.0.1",
    attempts: 1,
  });
  await transport.close();
  await Promise.all(open);
});

it("RE-26 tells whether a stream says that it ended", async () => {
  const transport = openTransport();
  for (const [head, expected] of [
    ["content-length: 2", true],
    ["x-a: b", false],
  ] as const) {
    const origin = await serveRaw((socket) => void socket.end(`HTTP/1.1 200 OK\r\n${head}\r\n\r\nok`));
    const response = await transport.stream(toRequest(origin), ONCE);
    expect(response.delimited).toBe(expected);
    expect((await readAll(response.body)).toString()).toBe("ok");
  }
});
