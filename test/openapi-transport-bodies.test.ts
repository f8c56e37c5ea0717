import { brotliCompressSync, constants, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import fc from "fast-check";
import { expect, it } from "vitest";
import { isCallError } from "../src/index.ts";
import { sleep, until } from "./make-operation.ts";
import type { StreamedResponse } from "./openapi-transport-peers.ts";
import {
  failureOf,
  ONCE,
  openTransport,
  readAll,
  serve,
  serveRaw,
  textOf,
  toRequest,
} from "./openapi-transport-peers.ts";
import { runs } from "./runs.ts";

const TEXT = "Rex is a good dog. ".repeat(500);

const ENCODED: Readonly<Record<string, Buffer>> = {
  gzip: gzipSync(TEXT),
  "x-gzip": gzipSync(TEXT),
  GZIP: gzipSync(TEXT),
  deflate: deflateSync(TEXT),
  "identity, deflate": deflateRawSync(TEXT),
  br: brotliCompressSync(TEXT),
  "gzip, br": brotliCompressSync(gzipSync(TEXT)),
  "br, deflate": deflateSync(brotliCompressSync(TEXT)),
  identity: Buffer.from(TEXT),
};

it.each(Object.keys(ENCODED))("RE-26 undoes the encoding %s, whole and streamed", async (encoding) => {
  const origin = await serve((request, response) => {
    expect(request.headers["accept-encoding"]).toBe("gzip, deflate, br");
    response.writeHead(200, { "content-encoding": encoding }).end(ENCODED[encoding]);
  });
  const transport = openTransport();
  expect(textOf((await transport.send(toRequest(origin), ONCE)).body)).toBe(TEXT);
  const { body } = await transport.stream(toRequest(origin), ONCE);
  expect((await readAll(body)).toString()).toBe(TEXT);
});

it.each(["zstd", "gzip, gzip, gzip", "compress", "constructor"])(
  "RE-26 refuses the encoding %s",
  async (encoding) => {
    const origin = await serve((_request, response) => {
      response.writeHead(200, { "content-encoding": encoding }).end("x");
    });
    const error = await failureOf(openTransport().send(toRequest(origin), ONCE));
    expect(error.code).toBe("OUTPUT_INVALID");
    expect(error.details).toEqual({ host: "127.0.0.1", attempts: 1 });
  },
);

it("RE-26 takes no bytes at all for an empty body, whatever their encoding", async () => {
  const origin = await serve((_request, response) => {
    response.writeHead(200, { "content-encoding": "gzip, br", "content-length": 0 }).end();
  });
  expect((await openTransport().send(toRequest(origin), ONCE)).body).toEqual(new Uint8Array(0));
});

it("RE-26 refuses a body whose encoding is cut or broken, though the response is whole", async () => {
  const broken = Buffer.from(gzipSync(TEXT));
  broken.fill(0xff, 20, 40);
  const bodies: Record<string, Buffer> = { "/cut": gzipSync(TEXT).subarray(0, -9), "/broken": broken };
  const origin = await serve((request, response) => {
    response.writeHead(200, { "content-encoding": "gzip" }).end(bodies[request.url ?? ""]);
  });
  const transport = openTransport();
  expect((await failureOf(transport.send(toRequest(origin, { path: "/cut" }), ONCE))).code).toBe(
    "UNAVAILABLE",
  );
  const error = await failureOf(transport.send(toRequest(origin, { path: "/broken" }), ONCE));
  expect(error.code).toBe("OUTPUT_INVALID");
});

it("RE-26 takes a body of limits.responseBytes and none of a byte more, however it is sent", async () => {
  const responseBytes = 10_000;
  const origin = await serve((request, response) => {
    const body = Buffer.alloc(Number(request.headers["x-size"]), 97);
    if (request.url === "/length") response.writeHead(200, { "content-length": body.length }).end(body);
    else if (request.url === "/gzip")
      response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync(body));
    else {
      response.write(body.subarray(0, 100));
      response.end(body.subarray(100));
    }
  });
  const transport = openTransport({ limits: { responseBytes } });
  for (const path of ["/length", "/chunked", "/gzip"]) {
    const ask = (size: number) =>
      transport.send(toRequest(origin, { path, headers: { "x-size": `${size}` } }), ONCE);
    expect((await ask(responseBytes)).body.byteLength).toBe(responseBytes);
    const error = await failureOf(ask(responseBytes + 1));
    expect([error.code, error.message]).toEqual([
      "TOO_LARGE",
      "127.0.0.1 sent a body larger than limits.responseBytes allows.",
    ]);
  }
});

it("RE-26 cuts an endless body at the limit, and endless headers", async () => {
  let ended = 0;
  const origin = await serveRaw((socket, request) => {
    const isHeaders = request.startsWith("GET /headers");
    socket.write(isHeaders ? "HTTP/1.1 200 OK\r\n" : "HTTP/1.1 200 OK\r\n\r\n");
    const more = Buffer.from(isHeaders ? "x-more: and more\r\n".repeat(100) : "x".repeat(10_000));
    const pour = () => {
      while (!socket.destroyed && socket.write(more)) {}
    };
    socket.on("drain", pour).on("close", () => {
      ended += 1;
    });
    pour();
  });
  const transport = openTransport({ retry: false });
  expect((await failureOf(transport.send(toRequest(origin), ONCE))).code).toBe("TOO_LARGE");
  const error = await failureOf(transport.send(toRequest(origin, { path: "/headers" }), ONCE));
  expect(error.message).toBe("127.0.0.1 sent more headers than limits.headerBytes allows.");
  await until(() => ended === 2);
});

it("RE-26 refuses a small body that becomes a huge one, streamed or not, and in the layer between", async () => {
  const zeros = Buffer.alloc(200_000_000);
  const bomb = brotliCompressSync(zeros, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } });
  expect(bomb.length).toBeLessThan(50_000);
  const origin = await serve((request, response) => {
    const encoding = request.url === "/two" ? "gzip, br" : "br";
    response.writeHead(200, { "content-encoding": encoding }).end(bomb);
  });
  const transport = openTransport({ limits: { responseBytes: 1_000_000_000 } });
  const before = process.memoryUsage().rss;
  const error = await failureOf(transport.send(toRequest(origin), ONCE));
  expect([error.code, error.message]).toEqual([
    "TOO_LARGE",
    "127.0.0.1 sent a body that grows more than limits.decodedRatio allows when it is decoded.",
  ]);
  const streamed = transport.stream(toRequest(origin), ONCE).then(({ body }) => readAll(body));
  expect((await failureOf(streamed)).code).toBe("TOO_LARGE");
  // Zeros are no gzip either; either way it ends early.
  expect(isCallError(await failureOf(transport.send(toRequest(origin, { path: "/two" }), ONCE)))).toBe(true);
  expect(process.memoryUsage().rss - before).toBeLessThan(150_000_000);
});

it("RE-26 ignores the body of HEAD, 204 and 304", async () => {
  const origin = await serveRaw((socket, request) => {
    const status = /^\w+ \/(\d+)/.exec(request)?.[1];
    socket.end(`HTTP/1.1 ${status} Fine\r\nContent-Encoding: br\r\nContent-Length: 5\r\n\r\n`);
  });
  const transport = openTransport({ retry: false });
  for (const [method, path] of [
    ["HEAD", "/200"],
    ["GET", "/304"],
  ] as const) {
    const response = await transport.send(toRequest(origin, { method, path }), ONCE);
    expect([response.status, response.body.byteLength, response.delimited]).toEqual([
      Number(path.slice(1)),
      0,
      true,
    ]);
  }
  const empty = await serve((_request, response) => response.writeHead(204).end());
  expect((await transport.send(toRequest(empty), ONCE)).body.byteLength).toBe(0);
  expect((await readAll((await transport.stream(toRequest(empty), ONCE)).body)).length).toBe(0);
});

it("RE-26 gives a stream as it arrives, holds the server back, and ends the exchange when the reader leaves", async () => {
  let written = 0;
  let hasClosed = false;
  const origin = await serveRaw((socket) => {
    socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    const chunk = `10000\r\n${"x".repeat(65_536)}\r\n`;
    const pour = () => {
      while (!socket.destroyed && socket.write(chunk)) written += 65_536;
    };
    socket.on("drain", pour).on("close", () => {
      hasClosed = true;
    });
    pour();
  });
  const response = (await openTransport().stream(toRequest(origin), ONCE)) as StreamedResponse;
  let read = 0;
  for await (const chunk of response.body) {
    read += chunk.byteLength;
    await sleep(30);
    if (read > 300_000) break;
  }
  // What the kernel's buffers hold, and not what a free run of a few hundred milliseconds would give.
  expect(written).toBeLessThan(20_000_000);
  await until(() => hasClosed);
});

it.each([
  ["a body that ends with the connection", ""],
  ["content-length", "Content-Length: 300000\r\n"],
])("RE-26 reads a stream slowly to its end with %s, though the server has hung up", async (_name, header) => {
  for (const connection of ["close", "keep-alive"]) {
    if (header === "" && connection === "keep-alive") continue;
    const origin = await serveRaw((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nConnection: ${connection}\r\n${header}\r\n`);
      setTimeout(() => socket.end(Buffer.alloc(300_000, 65)), 5);
    });
    const { body } = await openTransport().stream(toRequest(origin), ONCE);
    let read = 0;
    for await (const chunk of body as AsyncIterable<Uint8Array>) {
      read += chunk.byteLength;
      await sleep(10);
    }
    expect(read).toBe(300_000);
  }
});

it("RE-26 uses a connection again after a stream that was read slowly", async () => {
  const ports = new Set<number | undefined>();
  const origin = await serve((request, response) => {
    ports.add(request.socket.remotePort);
    response.end(Buffer.alloc(200_000, 65));
  });
  const transport = openTransport({ concurrency: 1 });
  for (let round = 0; round < 5; round++) {
    const { body } = await transport.stream(toRequest(origin), ONCE);
    await sleep(5);
    expect((await readAll(body)).length).toBe(200_000);
  }
  expect(ports.size).toBe(1);
});

it("RE-26 ends a stream that is silent too long, and not one that is read slowly", async () => {
  const origin = await serve((_request, response) => {
    response.write("one");
  });
  const transport = openTransport({ idleTimeoutMs: 2_000 });
  const { body } = (await transport.stream(toRequest(origin), ONCE)) as StreamedResponse;
  const reader = body[Symbol.asyncIterator]();
  expect(textOf((await reader.next()).value)).toBe("one");
  await sleep(2_200);
  const error = await failureOf(reader.next());
  expect([error.code, error.message]).toEqual(["TIMEOUT", "127.0.0.1 sent nothing for 2000 ms."]);
  expect(await reader.next()).toEqual({ value: undefined, done: true });
});

it("RE-26 aborts a stream that is under way", async () => {
  const origin = await serve((_request, response) => {
    response.write("one");
  });
  const controller = new AbortController();
  const { body } = await openTransport().stream(toRequest(origin), {
    signal: controller.signal,
    repeatable: true,
  });
  setTimeout(() => controller.abort(), 20);
  expect((await failureOf(readAll(body))).code).toBe("ABORTED");
});

it("RE-26 reads the body of an error status whole where a stream was asked for", async () => {
  const origin = await serve((_request, response) => response.writeHead(404).end("no such pet"));
  const response = await openTransport().stream(toRequest(origin), ONCE);
  expect(response.body).toBeInstanceOf(Uint8Array);
  expect(textOf(response.body as Uint8Array)).toBe("no such pet");
});

it("RE-25 meets any bytes with a response or a CallError, and never a crash", async () => {
  const base = Buffer.from(
    "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
  );
  const answers: Buffer[] = [];
  const origin = await serveRaw((socket) => socket.end(answers.pop() ?? base));
  const transport = openTransport({ retry: false, timeoutMs: 3_000 });
  const words = fc.constantFrom(
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.1 200 OK\r\n",
    "Content-Length: 3\r\n",
    "Content-Length: -1\r\n",
    "Transfer-Encoding: gzip, chunked\r\n",
    "Content-Encoding: gzip\r\n",
    "__proto__: x\r\n",
    "Location: /\r\n",
    "\r\n",
    "ffffffffffffffff\r\n",
    "0\r\n\r\n",
    "abc",
    "\0",
  );
  const hostile = fc.oneof(
    fc.array(words, { maxLength: 12 }).map((parts) => Buffer.from(parts.join(""))),
    fc.tuple(fc.nat(base.length - 1), fc.nat(255)).map(([at, byte]) => {
      const changed = Buffer.from(base);
      changed[at] = byte;
      return changed;
    }),
    fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array)),
  );
  await fc.assert(
    fc.asyncProperty(hostile, fc.boolean(), async (bytes, streamed) => {
      answers.splice(0, answers.length, bytes);
      const call = streamed
        ? transport.stream(toRequest(origin), ONCE).then(({ body }) => readAll(body))
        : transport.send(toRequest(origin), ONCE);
      const thrown = await call.then(
        () => undefined,
        (error: unknown) => error,
      );
      expect(thrown === undefined || isCallError(thrown)).toBe(true);
    }),
    runs(300),
  );
});
