import { isCallError } from "../../core/errors/errors.ts";
import { namedPlace } from "../../http/address-guard.ts";
import type { OpenApiOptions } from "../../openapi/client/openapi-options.ts";
import type { IndexedApi } from "../../openapi/client/plan.ts";
import { resolveServer, type ServerAddress } from "../../openapi/client/request/server-address.ts";
import { createTransport } from "../../openapi/client/transport/create-transport.ts";

/** Whether somebody answers where an API is said to be; messages are ours. */
export type ApiProbe =
  | { readonly kind: "up"; readonly origin: string }
  | { readonly kind: "down"; readonly origin: string; readonly message: string }
  /** At an address to which a document may not lead unless that is allowed; `place` is its host and port. */
  | { readonly kind: "private"; readonly origin: string; readonly place: string }
  /** It is not said where the API is. */
  | { readonly kind: "nowhere"; readonly message: string };

/** What is asked, and how. */
export interface ProbeOptions {
  /** Where the document was read from: a path or an address. */
  readonly document: string;
  readonly api: Omit<OpenApiOptions, "namespace" | "onWarning">;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** Asks the server of an API for nothing in particular, with the same guard as every call; any answer will do. */
export async function probeApi(
  { servers, location }: Pick<IndexedApi, "servers" | "location">,
  { document, api, timeoutMs, signal }: ProbeOptions,
): Promise<ApiProbe> {
  const { baseUrl, server, serverVariables } = api;
  const address = tryResolve(() => resolveServer(servers, { baseUrl, server, serverVariables, location }));
  if (typeof address === "string") return { kind: "nowhere", message: address };
  const { origin, basePath } = address;
  const named = [baseUrl, /^https?:/i.test(document) ? document : undefined].filter(
    (url) => url !== undefined,
  );
  const trusted = named.map(namedPlace);
  const transport = createTransport({ ...api, timeoutMs, retry: false, redirects: 0, trusted });
  const within = AbortSignal.any([AbortSignal.timeout(timeoutMs), ...(signal === undefined ? [] : [signal])]);
  const request = { method: "HEAD", origin, path: basePath || "/", headers: {}, body: undefined };
  try {
    await transport.send(request, { signal: within, repeatable: true });
  } catch (thrown) {
    signal?.throwIfAborted();
    if (!isCallError(thrown)) throw thrown;
    const { status, host } = (thrown.details ?? {}) as { status?: unknown; host?: unknown };
    if (thrown.code === "ACCESS_DENIED" && typeof host === "string")
      return { kind: "private", origin, place: namedPlace(origin) };
    // An answer that is no good is an answer.
    if (typeof status !== "number") return { kind: "down", origin, message: thrown.message };
  } finally {
    await transport.close();
  }
  return { kind: "up", origin };
}

type Address = Extract<ServerAddress, { readonly origin: string }>;

function tryResolve(resolve: () => ServerAddress): Address | string {
  try {
    const address = resolve();
    if (address.refusal === undefined) return address;
    const { message, failure } = address.refusal();
    return message.replace(failure?.advice ?? "", "").trimEnd();
  } catch (thrown) {
    if (thrown instanceof TypeError) return thrown.message;
    throw thrown;
  }
}
