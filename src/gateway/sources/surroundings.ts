import type { CallObserver } from "../../call/call-observer.ts";
import type { ReconnectOptions } from "../../mcp/client/connection-options.ts";
import type { ServerLog } from "../../mcp/provider.ts";
import type { LoadedConfig } from "../config/loaded-config.ts";
import { toShownLine } from "./shown-text.ts";

/** What `createSources` may be told. */
export interface SourcesOptions {
  /** Hears what is odd, one line each, with the name of the source and without secrets. @default nobody does */
  readonly onWarning?: ((message: string, cause?: unknown) => void) | undefined;
  /** Observes calls of operations on the bus. @default nobody does */
  readonly onBusCall?: CallObserver | undefined;
  /** Hears what MCP servers log, each with the name of its source, as they said it: it may hold secrets. @default nobody does */
  readonly onServerLog?: ((source: string, log: ServerLog) => void) | undefined;
  /** Times between attempts to reach a source. @default 500 ms, doubled up to 30 s */
  readonly reconnect?: ReconnectOptions | undefined;
}

/** What every kind of source is made with. */
export interface Surroundings {
  readonly loaded: LoadedConfig;
  readonly reconnect: ReconnectOptions | undefined;
  readonly onBusCall: CallObserver | undefined;
  readonly onServerLog: SourcesOptions["onServerLog"];
  /** Makes a line of a text that is fit to be shown. */
  shown(text: string, most?: number): string;
  /** Tells what is odd about one source; never throws. */
  warnerOf(name: string): (message: string, cause?: unknown) => void;
}

/** Puts together what sources are made with. */
export function toSurroundings(loaded: LoadedConfig, options: SourcesOptions): Surroundings {
  const shown = (text: string, most?: number): string => toShownLine(text, loaded.secrets, most);
  return {
    loaded,
    reconnect: options.reconnect,
    onBusCall: options.onBusCall,
    onServerLog: options.onServerLog,
    shown,
    warnerOf: (name) => (message, cause) => {
      try {
        options.onWarning?.(shown(`${name}: ${message}`, 1_000), cause);
      } catch {
        // There is nobody left to tell.
      }
    },
  };
}
