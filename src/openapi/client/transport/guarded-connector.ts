import type { Socket } from "node:net";
import { isIP } from "node:net";
import { buildConnector, errors } from "undici";
import {
  bareHost,
  guardedLookup,
  isPublicAddress,
  type ResolveHost,
  refusePrivate,
} from "./address-guard.ts";
import { ReadGate } from "./read-gate.ts";

/** How connections to one origin are made. */
export interface ConnectorOptions {
  readonly port: string;
  readonly mayBePrivate: boolean;
  readonly connectTimeoutMs: number;
  readonly resolve: ResolveHost;
  /** Certificates that are trusted. @default those of the platform */
  readonly ca?: string | undefined;
  /** Holds what is open, or about to be. */
  readonly sockets: Set<Socket>;
}

/** Makes the function that connects to one origin, past the guard, whichever way the address is written. */
export function createConnector(options: ConnectorOptions): buildConnector.connector {
  const { connectTimeoutMs, mayBePrivate, port, sockets } = options;
  const connect = buildConnector({
    timeout: 0,
    lookup: guardedLookup(options.resolve, mayBePrivate, port),
    autoSelectFamily: true,
    ...(options.ca === undefined ? {} : { ca: options.ca }),
  });
  return (target, callback) => {
    const host = bareHost(target.hostname);
    if (isIP(host) !== 0 && !mayBePrivate && !isPublicAddress(host)) {
      callback(refusePrivate(host, port), null);
      return;
    }
    let timer: ReturnType<typeof setTimeout> | undefined;
    const opened = connect(target, (...result) => {
      clearTimeout(timer);
      callback(...result);
    });
    const socket = opened as unknown as Socket;
    sockets.add(socket);
    new ReadGate(socket);
    socket.prependListener("error", renameError);
    socket.once("close", () => {
      clearTimeout(timer);
      sockets.delete(socket);
    });
    if (connectTimeoutMs <= MOST_MS) timer = setTimeout(expire, connectTimeoutMs, socket);
  };
}

/** The longest a timer takes; who wants to wait longer leaves it to the system. */
const MOST_MS = 2 ** 31 - 1;

function expire(socket: Socket): void {
  socket.destroy(new errors.ConnectTimeoutError("The connection was not made in time."));
}

/**
 * Tells undici what it takes for something else. A reset is no end: it takes `ECONNRESET` for one where the body ends with the
 * connection. And what was aborted is over: it would connect again for it, only to find that out.
 */
function renameError(error: NodeJS.ErrnoException): void {
  if (error.code === "ECONNRESET") error.code = "WAYBILL_RESET";
  else if (error.code === "UND_ERR_INFO" && error.message === "aborted") error.code = "WAYBILL_ABORTED";
}
