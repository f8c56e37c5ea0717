import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { parseUrl } from "../../core/text/parse-url.ts";
import { isSameSecret } from "./oauth-store.ts";

/** The path that a browser comes back on. */
const PATH = "/callback";
/** Connections at a time: a browser opens a few, and nobody else is expected. */
const MOST_CONNECTIONS = 16;

/** Where a browser comes back to after a login: an address of this machine alone. */
export interface LoginRedirect {
  /** What authorization servers are given as the redirect URI. */
  readonly url: string;
  /** Resolves with the address that a browser came back on; whatever has another state is refused and changes nothing. */
  wait(state: string, signal: AbortSignal): Promise<string>;
  close(): Promise<void>;
}

/** Listens on the loopback interface, at a port that is free or at the one wanted. */
export async function listenForRedirect(wanted?: string): Promise<LoginRedirect> {
  const asked = wanted === undefined ? undefined : new URL(wanted);
  let waiting: { readonly state: string; readonly done: (address: string) => void } | undefined;
  let place = { url: "", path: asked?.pathname ?? PATH, host: "" };
  const answer = (request: IncomingMessage): readonly [status: number, text: string] => {
    const target = parseUrl(request.url ?? "", place.url);
    // A page elsewhere could have a name of its own lead here.
    if (request.headers.host !== place.host || target?.origin !== new URL(place.url).origin) {
      return [403, "This address is not served here."];
    }
    if (request.method !== "GET" || target.pathname !== place.path) return [404, "There is nothing here."];
    const state = target.searchParams.get("state") ?? "";
    if (waiting === undefined || !isSameSecret(state, waiting.state)) {
      return [400, "This is not the login that waits here. Nothing has changed."];
    }
    const { done } = waiting;
    waiting = undefined;
    done(target.href);
    const told = target.searchParams.has("error") ? "The login was refused." : "The login has come back.";
    return [200, `${told} You can close this page and go back to the terminal.`];
  };
  const server = createServer({ requestTimeout: 10_000, maxHeaderSize: 32_768 }, (request, response) => {
    const [status, text] = answer(request);
    sendPage(response, status, text);
  });
  server.maxConnections = MOST_CONNECTIONS;
  await listen(server, asked);
  const { port } = server.address() as AddressInfo;
  const host = `${asked?.hostname ?? "127.0.0.1"}:${port}`;
  place = { ...place, url: `http://${host}${place.path}`, host };
  return {
    url: place.url,
    wait: (state, signal) =>
      new Promise((resolve, reject) => {
        const stop = (): void => reject(signal.reason);
        signal.addEventListener("abort", stop, { once: true });
        if (signal.aborted) stop();
        waiting = { state, done: resolve };
      }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeIdleConnections();
        setTimeout(() => server.closeAllConnections(), 500).unref();
      }),
  };
}

function listen(server: Server, asked: URL | undefined): Promise<void> {
  const host = asked?.hostname === "[::1]" ? "::1" : "127.0.0.1";
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(Number(asked?.port || 0), host, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

function sendPage(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    connection: "close",
  });
  response.end(`<!doctype html><html lang="en"><title>Waybill</title><p>${text}</p></html>\n`);
}

/** Says what is wrong with an address that a person pasted; nothing where it is the one that is waited for. */
export function pastedMisfit(text: string, redirectUrl: string, state: string): string | undefined {
  const [given, expected] = [parseUrl(text), new URL(redirectUrl)];
  if (given === undefined) return "That is no address; paste all of it, from http to its end.";
  if (given.origin !== expected.origin || given.pathname !== expected.pathname) {
    return `That is another address than the one that the browser was sent back to, which begins with ${redirectUrl}.`;
  }
  if (!isSameSecret(given.searchParams.get("state") ?? "", state)) return "That address is of another login.";
  return undefined;
}
