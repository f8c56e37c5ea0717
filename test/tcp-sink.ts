import { createServer, type Socket } from "node:net";

/** One request as it came over the wire. */
export interface RawRequest {
  readonly method: string;
  readonly target: string;
  /** Names in lower case, in the order they came, repeated ones included. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer;
}

/** A TCP server that keeps every byte, and answers each request with 204. */
export interface TcpSink {
  readonly origin: string;
  /** Takes what arrived since the last time, read as requests; bytes that are no request are an error. */
  take(): RawRequest[];
  close(): Promise<void>;
}

const ANSWER = "HTTP/1.1 204 No Content\r\n\r\n";

/** Listens on a free port of this machine. */
export async function createTcpSink(): Promise<TcpSink> {
  const sockets = new Set<Socket>();
  const taken: RawRequest[] = [];
  const failures: Error[] = [];
  const server = createServer((socket) => {
    let left = Buffer.alloc(0);
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => {
      sockets.delete(socket);
      if (left.length > 0) failures.push(new Error(`left over: ${JSON.stringify(left.toString("latin1"))}`));
    });
    socket.on("data", (bytes) => {
      left = Buffer.concat([left, bytes]);
      try {
        for (let read = readRequest(left); read !== undefined; read = readRequest(left)) {
          left = left.subarray(read.length);
          taken.push(read.request);
          socket.write(ANSWER);
        }
      } catch (error) {
        failures.push(error as Error);
        socket.destroy();
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    origin: `http://127.0.0.1:${port}`,
    take: () => {
      const [failure] = failures.splice(0);
      if (failure !== undefined) throw failure;
      return taken.splice(0);
    },
    close: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** Reads the first request of some bytes, strictly, once all of it is there. */
function readRequest(bytes: Buffer): { readonly request: RawRequest; readonly length: number } | undefined {
  const end = bytes.indexOf("\r\n\r\n");
  if (end === -1) return undefined;
  const [first = "", ...lines] = bytes.subarray(0, end).toString("latin1").split("\r\n");
  const start = /^([A-Z]+) (\/[!-~]*) HTTP\/1\.1$/.exec(first);
  if (start === null) throw new Error(`no request line: ${JSON.stringify(first)}`);
  const headers = lines.map(readHeader);
  if (headers.some(([name]) => name === "transfer-encoding")) throw new Error("a body without a length");
  const lengths = headers.filter(([name]) => name === "content-length");
  if (lengths.length > 1) throw new Error("two lengths");
  const length = Number(lengths[0]?.[1] ?? 0);
  const from = end + 4;
  if (bytes.length < from + length) return undefined;
  const body = Buffer.from(bytes.subarray(from, from + length));
  return {
    request: { method: start[1] ?? "", target: start[2] ?? "", headers, body },
    length: from + length,
  };
}

function readHeader(line: string): readonly [string, string] {
  const header = /^([!#$%&'*+.^_`|~\w-]+): ?([\t -~]*)$/.exec(line);
  if (header === null) throw new Error(`no header: ${JSON.stringify(line)}`);
  return [(header[1] ?? "").toLowerCase(), header[2] ?? ""];
}
