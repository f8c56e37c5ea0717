import { lookup } from "node:dns";
import { isIP } from "node:net";
import { CallError } from "../../core/errors/errors.ts";
import {
  bareHost,
  createAddressGuard,
  guardedLookup,
  isPublicAddress,
  LOOPBACK,
  namedPlace,
  refusePrivate,
} from "../address-guard.ts";
import type { Fetch } from "./oauth-discovery.ts";

/** Bytes of one answer of an authorization server. */
const MOST_ANSWER_BYTES = 1_048_576;
/** Statuses that take no body. */
const EMPTY: ReadonlySet<number> = new Set([204, 205, 304]);

/**
 * Makes a `fetch` for addresses that others name: none of them may be at a private address, unless the server itself is on this machine or
 * at a private address by its number. Hosts that the user named may be anywhere. Redirects are answers.
 */
export function createGuardedFetch(server: URL, named: readonly (string | undefined)[] = []): Fetch {
  const trusted = [server.href, ...named.filter((address) => address !== undefined)].map(namedPlace);
  const host = bareHost(server.hostname);
  const isNear = LOOPBACK.test(server.hostname) || (isIP(host) !== 0 && !isPublicAddress(host));
  const guard = createAddressGuard(trusted, isNear);
  return async (to, init = {}) => {
    const url = new URL(String(to));
    const port = url.port || (url.protocol === "https:" ? "443" : "80");
    const mayBePrivate = guard.mayBePrivate(url.hostname, port);
    // Addresses in numbers are not looked up.
    const address = bareHost(url.hostname);
    if (!mayBePrivate && isIP(address) !== 0 && !isPublicAddress(address)) throw refuse(url, port);
    const { Agent, request } = await import("undici");
    const agent = new Agent({ connect: { lookup: guardedLookup(lookup, mayBePrivate, port) } });
    try {
      const headers = Object.fromEntries(new Headers(init.headers));
      const isForm = init.body instanceof URLSearchParams;
      const response = await request(url, {
        dispatcher: agent,
        method: (init.method ?? "GET") as "GET",
        headers: isForm
          ? { "content-type": "application/x-www-form-urlencoded;charset=UTF-8", ...headers }
          : headers,
        body: init.body == null ? null : String(init.body),
        signal: init.signal ?? undefined,
      });
      const { statusCode: status } = response;
      if (status >= 300 && status < 400 && init.redirect === "error")
        throw new TypeError("It was redirected.");
      const body = await readBounded(response.body);
      const given = new Headers();
      for (const [name, value] of Object.entries(response.headers)) {
        for (const each of [value ?? []].flat()) given.append(name, each);
      }
      return new Response(EMPTY.has(status) ? null : body, { status, headers: given });
    } catch (thrown) {
      throw isRefusal(thrown) ? refuse(url, port) : thrown;
    } finally {
      await agent.destroy();
    }
  };
}

function refuse(url: URL, port: string): CallError {
  const { details } = refusePrivate(url.hostname, port);
  const message = `The authorization leads to ${url.host}, which is at a private or reserved address; if you mean it, name it as the issuer.`;
  return new CallError("ACCESS_DENIED", message, { details, stack: false });
}

function isRefusal(thrown: unknown): boolean {
  return thrown instanceof CallError && thrown.code === "ACCESS_DENIED";
}

async function readBounded(body: AsyncIterable<Uint8Array>): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > MOST_ANSWER_BYTES) {
      throw new CallError(
        "TOO_LARGE",
        `The answer of the authorization server is larger than ${MOST_ANSWER_BYTES} bytes.`,
      );
    }
    chunks.push(chunk);
  }
  return new Uint8Array(Buffer.concat(chunks));
}
