import { CallError } from "../../core/errors/errors.ts";
import { namedPlace } from "../../http/address-guard.ts";
import type { OutgoingRequest, WholeResponse } from "./http-message.ts";
import type { OpenApiOptions } from "./openapi-options.ts";
import { checkOptionHeaders } from "./request/input-text.ts";
import { codeOfStatus } from "./response/hop-outcome.ts";
import { createTransport, type HttpTransport } from "./transport/create-transport.ts";

/** Milliseconds one file of a document may take. */
const TIMEOUT_MS = 30_000;

const ACCEPT = "application/openapi+json, application/json, application/yaml, */*;q=0.1";

/**
 * Makes what reads documents over HTTP, each time with connections of its own, since the limits of documents are others than those
 * of responses. Headers and plain credentials go to where the document was said to be, and nowhere else.
 */
export function createDocumentReader(
  document: string | URL | object,
  options: OpenApiOptions,
): (url: URL, maxBytes: number) => Promise<string> {
  const origin = isAddress(document) ? new URL(document).origin : undefined;
  return async (url, maxBytes) => {
    const limits = { ...options.limits, responseBytes: maxBytes };
    const transport = createTransport({
      ...options,
      limits,
      trusted: origin === undefined ? [] : [namedPlace(origin)],
    });
    try {
      return await fetchText(transport, url, url.origin === origin ? ownHeaders(options) : {});
    } finally {
      await transport.close();
    }
  };
}

/** Tells whether a document is named by its address on the network. */
export function isAddress(document: unknown): document is string | URL {
  return (typeof document === "string" || document instanceof URL) && /^https?:/i.test(String(document));
}

const GIVE_CREDENTIALS =
  "Give headers, or auth.bearer or auth.basic, or fetch it yourself and pass it with baseUrl.";

async function fetchText(
  transport: HttpTransport,
  url: URL,
  headers: Readonly<Record<string, string>>,
): Promise<string> {
  const request: OutgoingRequest = {
    method: "GET",
    origin: url.origin,
    path: `${url.pathname}${url.search}`,
    headers: { accept: ACCEPT, ...headers },
    body: undefined,
  };
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const { status, body } = await send(transport, request, signal);
  if (status >= 200 && status < 300) return new TextDecoder("utf-8", { fatal: true }).decode(body);
  const shown = `${url.origin}${url.pathname}`;
  const isRefused = status === 401 || status === 403;
  const message = `The document cannot be read: ${shown} answered ${status}.${isRefused ? ` ${GIVE_CREDENTIALS}` : ""}`;
  const reason = isRefused ? "document-credentials" : "status";
  throw new CallError(codeOfStatus(status), message, {
    details: { status, url: shown },
    failure: { reason, value: status, ...(isRefused && { advice: GIVE_CREDENTIALS }) },
  });
}

async function send(
  transport: HttpTransport,
  request: OutgoingRequest,
  signal: AbortSignal,
): Promise<WholeResponse> {
  try {
    return await transport.send(request, { signal, repeatable: true });
  } catch (thrown) {
    if (!(thrown instanceof CallError)) throw thrown;
    const shown = `${request.origin}${request.path.split("?", 1)[0]}`;
    const message = `The document ${shown} cannot be read: ${thrown.message}`;
    const { code, details, retryable, failure } = thrown;
    throw new CallError(code, message, { cause: thrown, details, retryable, failure });
  }
}

/** The headers of every request, and credentials that need no document to say where they go. */
function ownHeaders({ headers, auth = {} }: OpenApiOptions): Record<string, string> {
  const { bearer, basic } = auth;
  const sent = checkOptionHeaders(headers);
  if (Object.hasOwn(auth, "bearer") && typeof bearer === "string")
    return { authorization: `Bearer ${bearer}`, ...sent };
  if (!Object.hasOwn(auth, "basic") || typeof basic !== "object" || !("password" in basic)) return sent;
  const encoded = Buffer.from(`${basic.username}:${basic.password}`).toString("base64");
  return { authorization: `Basic ${encoded}`, ...sent };
}
