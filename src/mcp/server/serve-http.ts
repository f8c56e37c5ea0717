import { getRequestListener } from "@hono/node-server";
import { checkOption } from "../../core/options/check-options.ts";
import { isMetadataPath } from "../../http/bearer.ts";
import {
  checkListenOptions,
  type HttpListener,
  LISTEN_OPTIONS,
  type ListenOptions,
  listenHttp,
} from "../../http/listen.ts";
import { checkServer } from "./check-server-options.ts";
import { createMcpHandler, type McpHandler } from "./http-handler.ts";
import { checkHandlerOptions, type McpHandlerOptions } from "./http-handler-options.ts";
import { createRefusal } from "./http-refusal.ts";
import type { McpServer } from "./mcp-server.ts";

/** Where and how an MCP endpoint listens. */
export interface ServeMcpHttpOptions extends McpHandlerOptions, ListenOptions {
  /** @default "/mcp" */
  readonly path?: string | undefined;
}

/** An MCP endpoint that listens. */
export interface McpHttpServer extends Pick<HttpListener, "port" | "close"> {
  readonly url: string;
}

/** Serves an MCP endpoint over HTTP. An address beyond this machine needs `auth` or `authenticate`, or else it is a `TypeError`. */
export async function serveMcpHttp(
  server: McpServer,
  options: ServeMcpHttpOptions = {},
): Promise<McpHttpServer> {
  checkServer(server, "serveMcpHttp");
  checkHandlerOptions(options, [...LISTEN_OPTIONS, "path"]);
  const { port, host, path = "/mcp", unsafeOpen, ...handling } = options;
  checkOption("path", path, "a string", typeof path === "string");
  if (!path.startsWith("/")) throw new TypeError('path must begin with "/".');
  const isAuthenticated = options.auth !== undefined || options.authenticate !== undefined;
  checkListenOptions({ port, host, unsafeOpen }, isAuthenticated);
  const handler = createMcpHandler(server, handling);
  const onRequest = createListener(handler, path, options.auth !== undefined);
  const onClose = (timeoutMs: number) => handler.close({ timeoutMs });
  const listener = await listenHttp({ onRequest, onClose }, { port, host });
  return {
    url: listener.origin + path,
    port: listener.port,
    close: (closing) => listener.close(closing),
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
