import { isCallError } from "../../core/errors/errors.ts";
import { checkOption } from "../../core/options/check-options.ts";
import {
  checkListenOptions,
  type HttpListener,
  LISTEN_OPTIONS,
  type Listened,
  type ListenOptions,
  listenHttp,
} from "../../http/listen.ts";
import { checkServer } from "./check-server-options.ts";
import { createMcpEndpoint, type McpEndpoint } from "./http-handler.ts";
import { checkHandlerOptions, type McpHandlerOptions } from "./http-handler-options.ts";
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
  const { port, host, unsafeOpen, unsentBytes, stalledMs, connections, ...rest } = options;
  const { path = "/mcp", ...handling } = rest;
  const listening = { port, host, unsafeOpen, unsentBytes, stalledMs, connections };
  checkOption("path", path, "a string", typeof path === "string");
  if (!path.startsWith("/")) throw new TypeError('path must begin with "/".');
  const isAuthenticated = options.auth !== undefined || options.authenticate !== undefined;
  checkListenOptions(listening, isAuthenticated);
  const handler = createMcpEndpoint(server, handling, path);
  const warn = options.onWarning ?? ((message, cause) => console.warn(message, cause));
  const onRequest = createListener(handler, warn);
  const onClose = (timeoutMs: number) => handler.close({ timeoutMs });
  const listener = await listenHttp({ onRequest, onClose }, listening);
  return {
    url: listener.origin + path,
    port: listener.port,
    close: (closing) => listener.close(closing),
  };
}

function createListener(
  handler: McpEndpoint,
  warn: (message: string, cause: unknown) => void,
): Listened["onRequest"] {
  return (request) => {
    handler
      .handle(request)
      .then((answer) => request.send(answer))
      .catch((thrown) => {
        // A reader that was too slow is no fault of this side.
        if (!isCallError(thrown)) warn("An answer could not be sent.", thrown);
        request.response.destroy();
      });
  };
}
