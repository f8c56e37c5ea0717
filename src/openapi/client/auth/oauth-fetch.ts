import type { OutgoingRequest, SendOptions, WholeResponse } from "../http-message.ts";

/** Sends a request through the guard of a source. */
export type Send = (request: OutgoingRequest, options: SendOptions) => Promise<WholeResponse>;

/** What the OAuth library asks of a `fetch`. */
export interface OAuthFetchOptions {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: URLSearchParams | string | undefined;
}

/** Bytes of an answer of an authorization server. */
const MOST_BYTES = 1_048_576;

/** Statuses that `Response` takes no body with. */
const EMPTY = new Set([204, 205, 304]);

/** Makes a `fetch` for the OAuth library of what sends requests; answers from another origin than was asked are refused. */
export function toOAuthFetch(
  send: Send,
  repeatable: boolean,
): (url: string, options: OAuthFetchOptions) => Promise<Response> {
  return async (address, { method, headers, body }) => {
    const url = new URL(address);
    // Never aborted: a renewal given up midway may lose the refresh token that the server has already replaced.
    const { signal } = new AbortController();
    const answer = await send(
      {
        method,
        origin: url.origin,
        path: url.pathname + url.search,
        headers: withoutUserAgent(headers),
        body: body?.toString(),
      },
      { signal, repeatable },
    );
    if (new URL(answer.url).origin !== url.origin) {
      throw new Error("The authorization server redirected to another origin.");
    }
    if (answer.body.length > MOST_BYTES) {
      throw new Error(`The answer of the authorization server is larger than ${MOST_BYTES} bytes.`);
    }
    return toResponse(answer, method === "POST");
  };
}

function withoutUserAgent(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name !== "user-agent"));
}

/** Only what the library reads: a challenge would hide the error that the body names. */
function toResponse({ status, headers, body }: WholeResponse, isGrant: boolean): Response {
  const type = headers["content-type"];
  const shown = typeof type === "string" ? type : type?.[0];
  return new Response(EMPTY.has(status) ? null : isGrant ? withoutIdToken(body) : new Uint8Array(body), {
    status,
    headers: shown === undefined ? {} : { "content-type": shown },
  });
}

/** An id token is of no use here, and cannot be checked where the issuer is not known. */
function withoutIdToken(body: Uint8Array): Uint8Array<ArrayBuffer> | string {
  try {
    const parsed: unknown = JSON.parse(new TextDecoder().decode(body));
    if (typeof parsed !== "object" || parsed === null || !Object.hasOwn(parsed, "id_token")) {
      return new Uint8Array(body);
    }
    const { id_token: _unused, ...rest } = parsed as Readonly<Record<string, unknown>>;
    return JSON.stringify(rest);
  } catch {
    return new Uint8Array(body);
  }
}
