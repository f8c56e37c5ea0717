import type { Gateway } from "../../gateway/gateway.ts";
import type { GatewayLogger } from "../../gateway/serve/observe/logger.ts";

/** Logs when sources come up, go down, appear and leave. */
export function followSources(gateway: Gateway, log: Pick<GatewayLogger, "info" | "warn">): () => void {
  let told = new Map<string, string>();
  const look = (): void => {
    const now = new Map<string, string>();
    for (const source of gateway.sources) {
      const { name, state } = source;
      now.set(name, state.status);
      if (told.get(name) === state.status) continue;
      if (state.status === "up")
        log.info("source up", { source: name, operations: source.operations.length });
      if (state.status === "down") log.warn("source down", { source: name, reason: state.reason });
    }
    for (const name of told.keys()) if (!now.has(name)) log.info("source gone", { source: name });
    told = now;
  };
  look();
  return gateway.onSources(look);
}
