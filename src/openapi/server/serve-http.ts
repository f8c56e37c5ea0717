import { checkOption } from "../../core/options/check-options.ts";
import { type CloseOptions, splitLimits } from "../../core/options/shared-options.ts";
import type { Executor } from "../../core/registry/executor.ts";
import {
  checkListenOptions,
  LISTEN_LIMITS,
  LISTEN_OPTIONS,
  type ListenLimits,
  type ListenOptions,
  listenHttp,
} from "../../http/listen.ts";
import { createHttpHandler } from "./http-handler.ts";
import {
  checkExecutor,
  checkHandlerOptions,
  type HttpHandlerLimits,
  type HttpHandlerOptions,
} from "./http-handler-options.ts";
import { createWarn } from "./problem-answer.ts";

/** Where and how an HTTP API listens. */
export interface ServeHttpOptions extends Omit<HttpHandlerOptions, "limits">, Omit<ListenOptions, "limits"> {
  /** @default those of each */
  readonly limits?: (HttpHandlerLimits & ListenLimits) | undefined;
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
  close(options?: CloseOptions): Promise<void>;
}

/** Serves operations over HTTP. An address beyond this machine needs `auth` or `authenticate`, or else it is a `TypeError`. */
export async function serveHttp(executor: Executor, options: ServeHttpOptions = {}): Promise<HttpServer> {
  checkExecutor(executor, "serveHttp");
  checkHandlerOptions(options, { options: [...LISTEN_OPTIONS, "drainOnSignal"], limits: LISTEN_LIMITS });
  const { port, host, unsafeOpen, drainOnSignal: drains = false, limits, ...handling } = options;
  const { own, rest } = splitLimits<ListenLimits, HttpHandlerLimits>(limits, LISTEN_LIMITS);
  const listening = { port, host, unsafeOpen, limits: own };
  checkOption("drainOnSignal", drains, "true or false", typeof drains === "boolean");
  const isAuthenticated = options.auth !== undefined || options.authenticate !== undefined;
  checkListenOptions(listening, isAuthenticated);
  const handler = createHttpHandler(executor, { ...handling, limits: rest });
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

const SIGNALS = ["SIGTERM", "SIGINT"] as const;

type Close = () => Promise<void>;

/** The servers of this process that close on a signal. */
const waiting = new Set<Close>();

/**
 * Closes a server on a signal. When all of them have closed, the signal ends the process as it would have without us; a second signal
 * does so at once. Returns how to stop hearing of signals.
 */
function drainOnSignal(close: Close): () => void {
  if (waiting.size === 0) for (const signal of SIGNALS) process.on(signal, drain);
  waiting.add(close);
  return () => {
    if (waiting.delete(close) && waiting.size === 0) stopHearing();
  };
}

function drain(signal: NodeJS.Signals): void {
  const closing = [...waiting].map((close) => close());
  waiting.clear();
  stopHearing();
  Promise.allSettled(closing).then(() => process.kill(process.pid, signal));
}

function stopHearing(): void {
  for (const signal of SIGNALS) process.off(signal, drain);
}
