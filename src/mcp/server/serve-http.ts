import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { checkOption } from "../option-checks.ts";
import { isMetadataPath } from "./bearer.ts";
import { checkServer } from "./check-server-options.ts";
import { createMcpHandler, type McpHandler } from "./http-handler.ts";
import { checkHandlerOptions, type McpHandlerOptions } from "./http-handler-options.ts";
import { createRefusal } from "./http-refusal.ts";
import type { McpServer } from "./mcp-server.ts";

/** Where and how an MCP endpoint listens. */
export interface ServeMcpHttpOptions extends McpHandlerOptions {
  /** @default 0, a free one */
  readonly port?: number | undefined;
  /** The address to listen on. @default "127.0.0.1" */
  readonly host?: string | undefined;
  /** @default "/mcp" */
  readonly path?: string | undefined;
  /** Listens on an address others can reach although nobody is authenticated. @default false */
  readonly unsafeOpen?: boolean | undefined;
}

/** An MCP endpoint that listens. */
export interface McpHttpServer {
  readonly url: string;
  readonly port: number;
  /** Stops listening, waits for what runs, and ends it after `timeoutMs`. */
  close(options?: { /** @default 10_000 */ readonly timeoutMs?: number | undefined }): Promise<void>;
}

const LISTENING = ["port", "host", "path", "unsafeOpen"] satisfies (keyof ServeMcpHttpOptions)[];
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|::1)$/;

/** Times in which a client must have sent its headers, and all of its request, in milliseconds. */
const TIMEOUTS = { headersTimeout: 10_000, requestTimeout: 60_000, connectionsCheckingInterval: 5_000 };

/** Serves an MCP endpoint over HTTP. An address beyond this machine needs `auth` or `authenticate`, or else it is a `TypeError`. */
export async function serveMcpHttp(
  server: McpServer,
  options: ServeMcpHttpOptions = {},
): Promise<McpHttpServer> {
  checkServer(server, "serveMcpHttp");
  checkHandlerOptions(options, LISTENING);
  const { port = 0, host = "127.0.0.1", path = "/mcp", unsafeOpen = false, ...handling } = options;
  const isPort = Number.isInteger(port) && port >= 0 && port <= 65_535;
  checkOption("port", port, "a whole number from 0 to 65535", isPort);
  checkOption("host", host, "a string", typeof host === "string");
  checkOption("path", path, "a string", typeof path === "string");
  checkOption("unsafeOpen", unsafeOpen, "true or false", typeof unsafeOpen === "boolean");
  if (!path.startsWith("/")) throw new TypeError('path must begin with "/".');
  const authenticated = options.auth !== undefined || options.authenticate !== undefined;
  if (!LOOPBACK.test(host) && !authenticated && !unsafeOpen) {
    throw new TypeError(
      `Others can reach ${host}: give auth or authenticate, or unsafeOpen if everybody may call everything.`,
    );
  }
  const handler = createMcpHandler(server, handling);
  const http = createServer(TIMEOUTS, createListener(handler, path, options.auth !== undefined));
  try {
    await listen(http, port, host);
  } catch (thrown) {
    await handler.close();
    throw thrown;
  }
  const address = http.address() as AddressInfo;
  const name = host.includes(":") ? `[${host}]` : host;
  let closing: Promise<void> | undefined;
  return {
    url: `http://${name}:${address.port}${path}`,
    port: address.port,
    close({ timeoutMs = 10_000 } = {}) {
      closing ??= closeAll(http, handler, timeoutMs);
      return closing;
    },
  };
}

function createListener(
  handler: McpHandler,
  path: string,
  described: boolean,
): ReturnType<typeof getRequestListener> {
  const fetch = (request: Request): Promise<Response> | Response => {
    const { pathname } = new URL(request.url);
    if (pathname === path || (described && isMetadataPath(pathname))) return handler.fetch(request);
    return createRefusal(404, `There is nothing here; the endpoint is ${path}.`);
  };
  // The objects of the platform are the whole process's, and stay as they are.
  return getRequestListener(fetch, { overrideGlobalObjects: false });
}

function listen(http: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    http.once("error", reject);
    http.listen(port, host, () => {
      http.off("error", reject);
      resolve();
    });
  });
}

/** Connections that fall idle are closed one by one: Node looks for them only once. */
async function closeAll(http: Server, handler: McpHandler, timeoutMs: number): Promise<void> {
  const ended = new Promise<void>((resolve) => http.close(() => resolve()));
  const sweep = setInterval(() => http.closeIdleConnections(), 20);
  const until = performance.now() + timeoutMs;
  await handler.close({ timeoutMs });
  const left = Math.max(until - performance.now(), 200);
  const force = setTimeout(() => http.closeAllConnections(), left);
  await ended;
  clearInterval(sweep);
  clearTimeout(force);
}
