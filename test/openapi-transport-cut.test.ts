import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { isCallError } from "../src/index.ts";
import { ONCE, openTransport, readAll, serveRaw, textOf, toRequest } from "./openapi-transport-peers.ts";

const TEXT = '{"name":"Rex","tags":["a","b"]}';
const CHUNKED = `${size(10)}\r\n${TEXT.slice(0, 10)}\r\n${size(TEXT.length - 10)}\r\n${TEXT.slice(10)}\r\n0\r\n`;
const GZIPPED = gzipSync(TEXT);
const HALF = GZIPPED.length >> 1;

const CUT_OFF = "UNAVAILABLE: 127.0.0.1 ended the connection: the response was cut off.";

const RESPONSES: Readonly<Record<string, Buffer>> = {
  "content-length": bytes(`HTTP/1.1 200 OK\r\nContent-Length: ${TEXT.length}\r\n\r\n${TEXT}`),
  "content-length, closing": bytes(
    `HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: ${TEXT.length}\r\n\r\n${TEXT}`,
  ),
  "HTTP/1.0 with content-length": bytes(`HTTP/1.0 200 OK\r\nContent-Length: ${TEXT.length}\r\n\r\n${TEXT}`),
  chunked: bytes(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${CHUNKED}\r\n`),
  "chunked, closing": bytes(
    `HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n${CHUNKED}\r\n`,
  ),
  "chunked with trailers": bytes(
    `HTTP/1.1 200 OK\r\nConnection: close\r\nTrailer: x-sum\r\nTransfer-Encoding: chunked\r\n\r\n${CHUNKED}x-sum: 7\r\n\r\n`,
  ),
  "after an early hint": bytes(
    `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: ${TEXT.length}\r\n\r\n${TEXT}`,
  ),
  "gzip with content-length": Buffer.concat([
    bytes(`HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${GZIPPED.length}\r\n\r\n`),
    GZIPPED,
  ]),
  "gzip, chunked, closing": Buffer.concat([
    bytes(
      `HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n${size(HALF)}\r\n`,
    ),
    GZIPPED.subarray(0, HALF),
    bytes(`\r\n${size(GZIPPED.length - HALF)}\r\n`),
    GZIPPED.subarray(HALF),
    bytes("\r\n0\r\n\r\n"),
  ]),
};

describe.each(Object.keys(RESPONSES))("RE-25 a response with %s", (name) => {
  const whole = RESPONSES[name] as Buffer;

  it("RE-25 arrives when it is whole", async () => {
    const origin = await serveRaw((socket) => socket.end(whole));
    const transport = openTransport({ retry: false });
    const response = await transport.send(toRequest(origin), ONCE);
    expect(textOf(response.body)).toBe(TEXT);
    expect(response.delimited).toBe(true);
    const streamed = await transport.stream(toRequest(origin), ONCE);
    expect((await readAll(streamed.body)).toString()).toBe(TEXT);
  });

  it.each(["FIN", "RST"] as const)("RE-25 is never a success when cut after any byte by %s", async (end) => {
    const origin = await serveRaw((socket, request) => {
      const cut = Number(/^GET \/(\d+)/.exec(request)?.[1]);
      socket.write(whole.subarray(0, cut), () => {
        if (end === "FIN") socket.end();
        // Given a moment, or the bytes before the reset may never be seen.
        else setTimeout(() => socket.resetAndDestroy(), 3);
      });
      if (cut === 0) end === "FIN" ? socket.end() : socket.resetAndDestroy();
    });
    const transport = openTransport({ retry: false, timeoutMs: 100_000 });
    const cuts = Array.from({ length: whole.length }, (_, cut) => cut);
    const outcomes = await Promise.all(
      cuts.flatMap((cut) => [
        outcomeOf(transport.send(toRequest(origin, { path: `/${cut}` }), ONCE)),
        outcomeOf(
          transport
            .stream(toRequest(origin, { path: `/${cut}` }), ONCE)
            .then((response) => readAll(response.body)),
        ),
      ]),
    );
    expect([...new Set(outcomes)]).toEqual([CUT_OFF]);
  });
});

it("RE-25 tells a body that ends with its connection, and a reset is not its end", async () => {
  const origin = await serveRaw((socket, request) => {
    socket.write(`HTTP/1.0 200 OK\r\n\r\n${TEXT}`);
    if (request.startsWith("GET /reset")) setTimeout(() => socket.resetAndDestroy(), 20);
    else socket.end();
  });
  const transport = openTransport({ retry: false });
  const response = await transport.send(toRequest(origin), ONCE);
  expect({ text: textOf(response.body), delimited: response.delimited }).toEqual({
    text: TEXT,
    delimited: false,
  });
  expect(await outcomeOf(transport.send(toRequest(origin, { path: "/reset" }), ONCE))).toBe(CUT_OFF);
});

async function outcomeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return "success";
  } catch (error) {
    return isCallError(error) ? `${error.code}: ${error.message}` : String(error);
  }
}

function bytes(text: string): Buffer {
  return Buffer.from(text, "latin1");
}

function size(count: number): string {
  return count.toString(16);
}
