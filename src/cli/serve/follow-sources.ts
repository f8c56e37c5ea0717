import type { Gateway } from "../../gateway/gateway.ts";
import type { GatewayLogger } from "../../gateway/serve/observe/logger.ts";
import { refusedLine } from "../list/refused-tools.ts";
import type { PastedCommand } from "../pasted-command.ts";

/** What is told of, and how. */
export interface FollowOptions {
  readonly log: Pick<GatewayLogger, "info" | "warn">;
  /** Writes commands that are told. */
  readonly paste: PastedCommand;
}

/** Logs when sources come up, go down, appear and leave, and which of their tools are refused until they are approved. */
export function followSources(gateway: Gateway, { log, paste }: FollowOptions): () => void {
  let told = new Map<string, string>();
  const tellStates = (): void => {
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
  const tellRefused = createRefusedTeller(gateway, { log, paste });
  const look = (): void => {
    tellStates();
    tellRefused();
  };
  look();
  const stops = [gateway.onSources(look), gateway.executor.onChange?.(tellRefused)];
  return () => {
    for (const stop of stops) stop?.();
  };
}

/** Tells of refused tools when they are others than the last time. */
function createRefusedTeller(gateway: Gateway, { log, paste }: FollowOptions): () => void {
  let told = new Map<string, string>();
  return () => {
    const now = new Map<string, string>();
    for (const report of gateway.reports()) {
      const line = report.state.status === "up" ? refusedLine(report, paste) : told.get(report.name);
      if (line === undefined) continue;
      now.set(report.name, line);
      if (told.get(report.name) !== line) log.warn(line, { source: report.name });
    }
    told = now;
  };
}
