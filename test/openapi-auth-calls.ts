import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { request as sendWithUndici } from "undici";
import { SourceSecrets } from "../src/core/secrets/secret-mask.ts";
import { CallError, type ExecuteOptions, type OperationContext, OperationRegistry } from "../src/index.ts";
import { type Authorizer, createAuthorizer } from "../src/openapi/client/auth/authorizer.ts";
import { type Send, TokenSources } from "../src/openapi/client/auth/token-source.ts";
import type { RequestDraft } from "../src/openapi/client/http-message.ts";
import type { OperationPlan, SecurityPlan, SecuritySchemePlan } from "../src/openapi/client/plan.ts";
import type { AuthOptions } from "../src/openapi/index.ts";
import { query } from "./make-operation.ts";

export type { Send };

/** A request as a server saw it. */
export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** A real HTTP server that writes down what it is sent. */
export interface RecordingServer {
  readonly origin: string;
  readonly seen: Seen[];
  close(): Promise<void>;
}

/** Starts a server that answers as it is told, or with 200. */
export async function record(
  answer: (seen: Seen, response: ServerResponse) => unknown = () => {},
): Promise<RecordingServer> {
  const seen: Seen[] = [];
  const server = createServer(async (incoming, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const url = new URL(incoming.url ?? "/", "http://x");
    const one = {
      method: incoming.method ?? "",
      path: url.pathname,
      query: url.searchParams,
      headers: incoming.headers,
      body: Buffer.concat(chunks).toString(),
    };
    seen.push(one);
    await answer(one, response);
    if (!response.writableEnded) response.end("{}");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    close: async () => {
      const ended = once(server, "close");
      server.close();
      server.closeAllConnections();
      await ended;
    },
  };
}

/** Sends as a transport does, without its guard. */
export const send: Send = async ({ method, origin, path, headers, body }, { signal }) => {
  try {
    const options = { method: method as "GET", headers, signal, ...(body === undefined ? {} : { body }) };
    const response = await sendWithUndici(origin + path, options);
    const bytes = new Uint8Array(await response.body.arrayBuffer());
    const received = response.headers as Record<string, string | string[]>;
    return {
      status: response.statusCode,
      headers: received,
      attempts: 1,
      url: origin + path,
      body: bytes,
      delimited: true,
    };
  } catch (cause) {
    throw new CallError("UNAVAILABLE", "The host cannot be reached.", { cause });
  }
};

/** A document reduced to its security. */
export interface Secured {
  readonly schemes: Readonly<Record<string, SecuritySchemePlan>>;
  readonly security: readonly SecurityPlan[];
}

/** Makes the plan of an operation that asks for this. */
function toPlan({ schemes, security }: Secured): OperationPlan {
  return {
    method: "GET",
    path: "/things",
    servers: [{ url: "/", variables: {} }],
    parameters: [],
    body: undefined,
    responses: [],
    security,
    schemes,
    definitions: {},
    waybill: undefined,
    notes: [],
  };
}

/** Makes a request without credentials. */
export function toDraft(origin: string): RequestDraft {
  return { method: "GET", origin, path: "/things", query: [], headers: {}, cookies: [], body: undefined };
}

/** A document with its credentials, called in real calls against a real server. */
export interface Caller {
  readonly authorizer: Authorizer | undefined;
  readonly plan: OperationPlan;
  readonly warnings: string[];
  /** Calls, once more after a 401 where that may help; gives the last status. */
  call(options?: ExecuteOptions): Promise<number>;
  /** Gives a request its credentials, in a real call. */
  authorize(draft: RequestDraft, options?: ExecuteOptions & { refused?: boolean }): Promise<void>;
}

/** Puts a document, credentials and a server together. */
export function createCaller(
  api: RecordingServer,
  secured: Secured,
  auth: AuthOptions | undefined,
  settings: { readonly send?: Send; readonly origins?: (origin: string) => boolean } = {},
): Caller {
  const warnings: string[] = [];
  const plan = toPlan(secured);
  const warn = (message: string) => void warnings.push(message);
  const authorizer =
    auth &&
    createAuthorizer(secured, {
      auth,
      origins: settings.origins ?? ((origin) => origin === api.origin),
      tokens: new TokenSources(settings.send ?? send, warn),
      secrets: new SourceSecrets(),
      warn,
    });
  const registry = new OperationRegistry([
    query("test.run", (input, context) => (input as (context: OperationContext) => unknown)(context)),
  ]);
  const run = async <T>(
    work: (context: OperationContext) => T,
    options?: ExecuteOptions,
  ): Promise<Awaited<T>> => (await registry.execute("test.run", work, options)).data as Awaited<T>;
  const attempt = async (context: OperationContext, refused: boolean): Promise<number> => {
    const draft = toDraft(api.origin);
    await authorizer?.authorize(plan, draft, { operationId: "api.things", context, refused });
    const { query: pairs, cookies, headers } = draft;
    const path = pairs.length === 0 ? draft.path : `${draft.path}?${pairs.join("&")}`;
    const all = cookies.length === 0 ? headers : { ...headers, cookie: cookies.join("; ") };
    const request = { method: "GET", origin: draft.origin, path, headers: all, body: undefined };
    return (await send(request, { signal: context.signal, repeatable: true })).status;
  };
  return {
    authorizer,
    plan,
    warnings,
    call: (options) =>
      run(async (context) => {
        const status = await attempt(context, false);
        return status === 401 && authorizer?.mayRetry(plan) ? attempt(context, true) : status;
      }, options),
    authorize: (draft, { refused = false, ...options } = {}) =>
      run(
        async (context) =>
          authorizer?.authorize(plan, draft, { operationId: "api.things", context, refused }),
        options,
      ),
  };
}
