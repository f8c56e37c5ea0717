import type { GatewayConfig } from "../src/gateway/config/gateway-config.ts";
import { createGateway, type Gateway } from "../src/gateway/gateway.ts";
import { Metrics } from "../src/gateway/serve/observe/metrics.ts";
import { serveGateway } from "../src/gateway/serve/serve-gateway.ts";
import type { AnyOperation, Hooks } from "../src/index.ts";
import { modern } from "./mcp-requests.ts";
import { loadedConfig } from "./served-gateway.ts";

/** The callers of replicas that tests start, by their tokens. */
const REPLICA_TOKENS = { ada: "0123456789abcdef-ada", bob: "0123456789abcdef-bob" } as const;

type Caller = keyof typeof REPLICA_TOKENS;

/** A gateway that shares its state with others of its name at the same broker. */
export interface Replica {
  readonly gateway: Gateway;
  readonly warnings: readonly string[];
  /** Calls that have come and are not answered. */
  readonly running: number;
  /** Calls an operation over HTTP. */
  call(
    name: string,
    input?: object,
    by?: Caller,
  ): Promise<{ readonly status: number; readonly body: unknown }>;
  /** Makes a request of a 2026-07-28 client; its result or error. */
  ask(method: string, params: Record<string, unknown>, by?: Caller): Promise<Record<string, unknown>>;
  /** What `/ready` says. */
  ready(): Promise<unknown>;
  metrics(): string;
  close(): Promise<void>;
}

/** Starts a gateway over HTTP and MCP, on a port of its own. */
export async function startReplica(
  operations: readonly AnyOperation[],
  config: GatewayConfig & Required<Pick<GatewayConfig, "name">>,
): Promise<Replica> {
  const warnings: string[] = [];
  const auth = {
    tokens: { ada: { token: REPLICA_TOKENS.ada }, bob: { token: REPLICA_TOKENS.bob } },
    ...config.serve?.auth,
  };
  const loaded = {
    ...loadedConfig({ ...config, serve: { ...config.serve, auth } }),
    localOperations: operations,
  };
  const onWarning = (message: string): void => void warnings.push(message);
  let running = 0;
  const observer: Hooks = {
    execute(_, next) {
      running++;
      return next().finally(() => running--);
    },
  };
  const gateway = await createGateway(loaded, { onWarning, observers: [observer] });
  // A busy machine takes longer than a gateway waits before each replica is on its own.
  await gateway.state.replicas();
  const metrics = new Metrics({ state: () => gateway.state.report() });
  const server = await serveGateway(gateway, loaded, { metrics, onWarning });
  return {
    gateway,
    warnings,
    get running() {
      return running;
    },
    async call(name, input = {}, by = "ada") {
      const headers = { "content-type": "application/json", authorization: `Bearer ${REPLICA_TOKENS[by]}` };
      const body = JSON.stringify(input);
      const answer = await fetch(`${server.url}/api/${name}`, { method: "POST", headers, body });
      return { status: answer.status, body: await answer.json() };
    },
    async ask(method, params, by = "ada") {
      const named = typeof params["uri"] === "string" ? { "mcp-name": params["uri"] } : {};
      const request = modern(method, params, { ...named, authorization: `Bearer ${REPLICA_TOKENS[by]}` });
      const { headers } = request;
      headers.delete("content-length");
      const answer = await fetch(`${server.url}/mcp`, {
        method: "POST",
        headers,
        body: await request.text(),
      });
      const { result, error } = (await answer.json()) as { result?: object; error?: object };
      return { ...result, ...error };
    },
    ready: async () => (await fetch(`${server.url}/ready`)).json(),
    metrics: () => metrics.text(),
    async close() {
      await server.close({ timeoutMs: 0 });
      await gateway.close();
      metrics.close();
    },
  };
}
