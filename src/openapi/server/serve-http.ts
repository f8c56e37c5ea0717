import { checkOption } from "../../core/options/check-options.ts";
import type { Executor } from "../../core/registry/executor.ts";
import { checkListenOptions, LISTEN_OPTIONS, type ListenOptions, listenHttp } from "../../http/listen.ts";
import { checkExecutor } from "./check-document-options.ts";
import { checkHandlerOptions } from "./check-handler-options.ts";
import { drainOnSignal } from "./drain-on-signal.ts";
import { createHttpHandler } from "./http-handler.ts";
import type { HttpHandlerOptions } from "./http-handler-options.ts";
import { createWarn } from "./warnings.ts";

/** Where and how an HTTP API listens. */
export interface ServeHttpOptions extends HttpHandlerOptions, ListenOptions {
  /**
   * Closes on `SIGTERM` and `SIGINT`, calls that run first, and then lets the signal end the process, once every server of this process
   * that does so has closed. @default false
   */
  readonly drainOnSignal?: boolean | undefined;
}

/** An HTTP API that listens. */
export interface HttpServer {
  /** Scheme, address and port. */
  readonly url: string;
  readonly port: number;
  /** Stops listening, waits for what runs, and ends it after `timeoutMs`. */
  close(options?: { /** @default 10_000 */ readonly timeoutMs?: number | undefined }): Promise<void>;
}

/** Serves operations over HTTP. An address beyond this machine needs `auth` or `authenticate`, or else it is a `TypeError`. */
export async function serveHttp(executor: Executor, options: ServeHttpOptions = {}): Promise<HttpServer> {
  checkExecutor(executor, "serveHttp");
  checkHandlerOptions(options, [...LISTEN_OPTIONS, "drainOnSignal"]);
  const { port, host, unsafeOpen, unsentBytes, stalledMs, connections, ...rest } = options;
  const { drainOnSignal: drains = false, ...handling } = rest;
  const listening = { port, host, unsafeOpen, unsentBytes, stalledMs, connections };
  checkOption("drainOnSignal", drains, "true or false", typeof drains === "boolean");
  const isAuthenticated = options.auth !== undefined || options.authenticate !== undefined;
  checkListenOptions(listening, isAuthenticated);
  const handler = createHttpHandler(executor, handling);
  const warn = createWarn(options.onWarning);
  const listener = await listenHttp(
    {
      onRequest(request) {
        handler
          .handle(request)
          .then((answer) => request.send(answer))
          .catch((thrown) => {
            warn("An answer could not be sent.", thrown);
            request.response.destroy();
          });
      },
      onClose: (timeoutMs) => handler.close({ timeoutMs }),
    },
    listening,
  );
  const stopHearing = drains ? drainOnSignal(() => listener.close()) : undefined;
  return {
    url: listener.origin,
    port: listener.port,
    async close(closing) {
      try {
        await listener.close(closing);
      } finally {
        stopHearing?.();
      }
    },
  };
}
