import { checkOption } from "../../core/options/check-options.ts";
import type { Executor } from "../../core/registry/executor.ts";
import { checkListenOptions, LISTEN_OPTIONS, type ListenOptions, listenHttp } from "../../http/listen.ts";
import { checkExecutor, checkHandlerOptions } from "./check-handler-options.ts";
import { createHttpHandler } from "./http-handler.ts";
import type { HttpHandlerOptions } from "./http-handler-options.ts";
import { NodeRequest, sendAnswer } from "./node-exchange.ts";

/** Where and how an HTTP API listens. */
export interface ServeHttpOptions extends HttpHandlerOptions, ListenOptions {
  /** Closes on `SIGTERM` and `SIGINT`, calls that run first, and then lets the signal end the process. @default false */
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

const SIGNALS = ["SIGTERM", "SIGINT"] as const;

/** Serves operations over HTTP. An address beyond this machine needs `auth` or `authenticate`, or else it is a `TypeError`. */
export async function serveHttp(executor: Executor, options: ServeHttpOptions = {}): Promise<HttpServer> {
  checkExecutor(executor, "serveHttp");
  checkHandlerOptions(options, [...LISTEN_OPTIONS, "drainOnSignal"]);
  const { port, host, unsafeOpen, drainOnSignal = false, ...handling } = options;
  checkOption("drainOnSignal", drainOnSignal, "true or false", typeof drainOnSignal === "boolean");
  const isAuthenticated = options.auth !== undefined || options.authenticate !== undefined;
  checkListenOptions({ port, host, unsafeOpen }, isAuthenticated);
  const handler = createHttpHandler(executor, handling);
  const listener = await listenHttp(
    {
      onRequest(message, response) {
        handler
          .handle(new NodeRequest(message))
          .then((answer) => sendAnswer(answer, message, response))
          .catch((thrown) => {
            options.onWarning?.("An answer could not be sent.", thrown);
            response.destroy();
          });
      },
      onClose: (timeoutMs) => handler.close({ timeoutMs }),
    },
    { port, host },
  );
  const stopHearing = drainOnSignal ? closeOnSignal(() => listener.close()) : undefined;
  return {
    url: listener.origin,
    port: listener.port,
    async close(closing) {
      stopHearing?.();
      await listener.close(closing);
    },
  };
}

/** Closes on the first signal, and then lets it end the process as it would have without us; a second one does so at once. */
function closeOnSignal(close: () => Promise<void>): () => void {
  const stop = (): void => {
    for (const signal of SIGNALS) process.off(signal, drain);
  };
  const drain = (signal: NodeJS.Signals): void => {
    stop();
    close().finally(() => process.kill(process.pid, signal));
  };
  for (const signal of SIGNALS) process.on(signal, drain);
  return stop;
}
