/** What a refusal may carry besides its status and sentence. */
export interface RefusalOptions {
  /** The code of JSON-RPC. @default -32_000 */
  readonly code?: number | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The id of the request that is refused, where it is known. @default null */
  readonly id?: string | number | null | undefined;
}

/** Creates an HTTP response that refuses a request, with a JSON-RPC error as its body. */
export function createRefusal(status: number, message: string, options: RefusalOptions = {}): Response {
  const { code = -32_000, headers = {}, id = null } = options;
  return Response.json({ jsonrpc: "2.0", error: { code, message }, id }, { status, headers });
}

/** Finds the id to answer a body under: that of a single request, `null` for anything else. */
export function requestIdOf(body: unknown): string | number | null {
  if (typeof body !== "object" || body === null || Array.isArray(body)) return null;
  const { method, id } = body as { readonly method?: unknown; readonly id?: unknown };
  if (typeof method !== "string") return null;
  return typeof id === "string" || typeof id === "number" ? id : null;
}
