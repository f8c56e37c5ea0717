import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { type AddressInfo, createServer as createRawServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import type { ResolveHost } from "../src/http/address-guard.ts";
import { type CallError, isCallError } from "../src/index.ts";
import type { OutgoingRequest, SendOptions } from "../src/openapi/client/http-message.ts";
import { createTransport, type HttpTransport } from "../src/openapi/client/transport/create-transport.ts";
import type { TransportSeams } from "../src/openapi/client/transport/origin-pools.ts";
import type { CreateTransportOptions } from "../src/openapi/client/transport/transport-settings.ts";

export type { ResolveHost } from "../src/http/address-guard.ts";
export type {
  OutgoingRequest,
  StreamedResponse,
  WholeResponse,
} from "../src/openapi/client/http-message.ts";
export { createTransport, type HttpTransport };

/** A signal that never aborts. */
export const NEVER = new AbortController().signal;

/** Sends once. */
export const ONCE: SendOptions = { signal: NEVER, repeatable: false };

/** May be sent again. */
export const REPEATABLE: SendOptions = { signal: NEVER, repeatable: true };

/** Makes a request, a GET of `/` where nothing else is said. */
export function toRequest(origin: string, given: Partial<OutgoingRequest> = {}): OutgoingRequest {
  return { method: "GET", origin, path: "/", headers: {}, body: undefined, ...given };
}

/** Makes a transport that may call this machine, and closes it with the test. */
export function openTransport(
  options: Partial<CreateTransportOptions> = {},
  seams: TransportSeams = {},
): HttpTransport {
  const retry = { delayMs: 1, ...(options.retry || {}) };
  const transport = createTransport(
    { trusted: ["127.0.0.1:*"], ...options, retry: options.retry === false ? false : retry },
    seams,
  );
  onTestFinished(() => transport.close());
  return transport;
}

/** Serves HTTP until the test ends; gives the origin. */
export async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  return `http://127.0.0.1:${await listen(server)}`;
}

/** Serves HTTP over TLS, with the certificate of `api.test` and `other.test`; gives the port. */
export function serveSecurely(listener: RequestListener): Promise<number> {
  return listen(createSecureServer({ key: TEST_KEY, cert: TEST_CERTIFICATE }, listener));
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** Serves raw bytes until the test ends: what is given hears of each request's first bytes. */
export async function serveRaw(onRequest: (socket: Socket, request: string) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createRawServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    socket.on("data", (bytes) => onRequest(socket, bytes.toString("latin1")));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Resolves names to what the test says, time after time; the last answer stays. */
export function resolveTo(answers: Readonly<Record<string, readonly (readonly string[])[]>>): ResolveHost & {
  readonly asked: string[];
} {
  const asked: string[] = [];
  const resolve: ResolveHost = (hostname, _options, callback) => {
    const times = asked.filter((name) => name === hostname).length;
    asked.push(hostname);
    const found = answers[hostname];
    const addresses = found?.[Math.min(times, found.length - 1)] ?? [];
    const error = addresses.length === 0 ? Object.assign(new Error("none"), { code: "ENOTFOUND" }) : null;
    const listed = addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
    setImmediate(callback, error, listed);
  };
  return Object.assign(resolve, { asked });
}

/** What a call failed with; fails itself where the call did not. */
export async function failureOf(call: Promise<unknown>): Promise<CallError> {
  const thrown = await call.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!isCallError(thrown)) throw new Error("A CallError was expected.", { cause: thrown });
  return thrown;
}

/** Bytes as text. */
export function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

/** Reads a stream to its end. */
export async function readAll(body: AsyncIterable<Uint8Array> | Uint8Array): Promise<Buffer> {
  if (body instanceof Uint8Array) return Buffer.from(body);
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Certificate of `api.test` and `other.test`, signed by itself; for tests alone. */
export const TEST_CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBnjCCAUSgAwIBAgIUUtQowAwK1sPzSX8UvPkZ/m1sdh0wCgYIKoZIzj0EAwIw
EzERMA8GA1UEAwwIYXBpLnRlc3QwIBcNMjYxMTE1MjM0OTQ1WhgPMjEyNjEwMjIy
MzQ5NDVaMBMxETAPBgNVBAMMCGFwaS50ZXN0MFkwEwYHKoZIzj0CAQYIKoZIzj0D
AQcDQgAEtFPTNOUPEo6hqc8Fh9qHLFgxbc/5MCmw4dDc1cd73SNjXiva5qrxc8pF
mj9Zglu7Nlu2wz/4ad26wuFnjT77XqN0MHIwHQYDVR0OBBYEFFQZXZxrBE3Zzzaq
l6h6U4epYJRMMB8GA1UdIwQYMBaAFFQZXZxrBE3Zzzaql6h6U4epYJRMMA8GA1Ud
EwEB/wQFMAMBAf8wHwYDVR0RBBgwFoIIYXBpLnRlc3SCCm90aGVyLnRlc3QwCgYI
KoZIzj0EAwIDSAAwRQIhAJrnJINUDlM0EXHde8B1w2Y4dFBd8dcFDfIX+TD88nGj
AiB4MZY/0xFsmc4NGupU19O3KTHSNHLuub7KwkX5/tlnlQ==
-----END CERTIFICATE-----`;

const TEST_KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgnt4nO5DDEXbMKeAu
IeL4XdcXYzWCVOsVklOfD/5n9ZahRANCAAS0U9M05Q8SjqGpzwWH2ocsWDFtz/kw
KbDh0NzVx3vdI2NeK9rmqvFzykWaP1mCW7s2W7bDP/hp3brC4WeNPvte
-----END PRIVATE KEY-----`;
