import { createGateway, type Gateway, type GatewayConfig, type LoadedConfig } from "../src/gateway/index.ts";
import { createObserver, type Observer } from "../src/gateway/serve/observe/observer.ts";
import { serveRoutedGateway } from "../src/gateway/serve/serve-gateway.ts";
import type { AnyOperation } from "../src/index.ts";
import type { LiveEvent, RunEvent } from "../src/inspector/protocol.ts";
import { createInspector, type Inspector, type InspectorOptions } from "../src/inspector/server/inspector.ts";
import { until } from "./make-operation.ts";
import { loadedConfig } from "./served-gateway.ts";

export type { Hello, OperationView, RunEvent } from "../src/inspector/protocol.ts";

/** Tokens of somebody who sees all, and of two who see what is theirs. */
export const TOKENS = {
  olga: { token: "operator-token-0001", scopes: ["waybill:inspect", "read"] },
  ann: { token: "ann-token-0000000001", scopes: ["read"] },
  bob: { token: "bob-token-0000000001", scopes: [] },
} as const;

/** Headers of one who holds a token. */
export function as(name: keyof typeof TOKENS): Record<string, string> {
  return { authorization: `Bearer ${TOKENS[name].token}` };
}

/** A gateway that is served and looked at. */
export interface InspectedGateway {
  readonly url: string;
  readonly port: number;
  readonly gateway: Gateway;
  readonly inspector: Inspector;
  readonly observer: Observer;
  loaded: LoadedConfig;
  /** Serves as another config says. */
  reload(config: GatewayConfig): Promise<void>;
  /** Asks the API; a body makes it a POST. */
  ask(path: string, options?: AskOptions): Promise<Response>;
  /** The same, and reads the JSON it answers. */
  get<T>(path: string, options?: AskOptions): Promise<T>;
  /** Reads a stream of events to its end. */
  run(ask: object, options?: AskOptions): Promise<RunEvent[]>;
  /** Follows the live feed into a list that grows. */
  live(headers?: Record<string, string>): Promise<{ readonly events: LiveEvent[]; close(): void }>;
  close(): Promise<void>;
}

interface AskOptions {
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
  readonly method?: string;
}

/** Serves operations with an inspector beside them. */
export async function inspectGateway(
  operations: readonly AnyOperation[],
  config: GatewayConfig = {},
  options: Pick<InspectorOptions, "writeTimeoutMs"> = {},
): Promise<InspectedGateway> {
  return await inspectLoaded({ ...loadedConfig(config), localOperations: operations }, options);
}

/** Serves what a loaded config says with an inspector beside it. */
export async function inspectLoaded(
  first: LoadedConfig,
  options: Pick<InspectorOptions, "writeTimeoutMs"> = {},
): Promise<InspectedGateway> {
  const mounted: { gateway?: Gateway } = {};
  const observer = createObserver({ sourceOf: (id) => mounted.gateway?.sourceOf(id) });
  const gateway = await createGateway(first, { observers: [observer] });
  mounted.gateway = gateway;
  await gateway.ready;
  const state = { loaded: first };
  const command = { words: "npx --no waybill", flags: "--config /srv/depot.json" };
  const inspector = createInspector({ gateway, observer, loaded: () => state.loaded, command, ...options });
  const server = await serveRoutedGateway(gateway, first, { routes: [inspector.route] });
  const ask: InspectedGateway["ask"] = (path, { body, headers, signal, method } = {}) =>
    fetch(`${server.url}/inspect/api/${path}`, {
      method: method ?? (body === undefined ? "GET" : "POST"),
      headers: { ...(body !== undefined && { "content-type": "application/json" }), ...headers },
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
      ...(signal !== undefined && { signal }),
    });
  return Object.assign(state, {
    url: server.url,
    port: server.port,
    gateway,
    inspector,
    observer,
    ask,
    async reload(changed: GatewayConfig) {
      state.loaded = { ...first, config: loadedConfig(changed).config };
      await server.reload(state.loaded);
    },
    async get<T>(path: string, options?: AskOptions) {
      return (await (await ask(path, options)).json()) as T;
    },
    async run(wanted: object, options?: AskOptions) {
      const text = await (await ask("run", { ...options, body: wanted })).text();
      return linesOf<RunEvent>(text);
    },
    live: (headers?: Record<string, string>) => follow(ask, headers),
    async close() {
      await inspector.close();
      await server.close({ timeoutMs: 0 });
      await gateway.close();
    },
  });
}

function linesOf<T>(text: string): T[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as T);
}

async function follow(ask: InspectedGateway["ask"], headers: Record<string, string> = {}) {
  const leaving = new AbortController();
  const response = await ask("live", { headers, signal: leaving.signal });
  const events: LiveEvent[] = [];
  const read = async (): Promise<void> => {
    let rest = "";
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) events.push(JSON.parse(line) as LiveEvent);
    }
  };
  read().catch(() => {});
  await until(() => events.length > 0);
  return { events, close: () => leaving.abort() };
}
