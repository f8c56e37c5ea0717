import type { LoadedConfig } from "../../gateway/config/loaded-config.ts";
import type { Gateway } from "../../gateway/gateway.ts";
import type { CallTelemetry } from "../../gateway/serve/observe/call-telemetry.ts";
import type { Observer } from "../../gateway/serve/observe/observer.ts";
import type { Hello } from "../protocol.ts";

/** What an inspector looks at. */
export interface InspectorOptions {
  readonly gateway: Gateway;
  /** Tells of calls. */
  readonly observer: Observer;
  /** The config in use, whichever that is by then. */
  readonly loaded: () => LoadedConfig;
  /** How Waybill is started in a shell. */
  readonly command: Hello["command"];
  readonly telemetry?: CallTelemetry | undefined;
  /** Milliseconds that a page may take to read the rest of an answer. @default 30_000 */
  readonly writeTimeoutMs?: number | undefined;
  /** Hears what is odd. @default nobody does */
  readonly onWarning?: ((message: string, cause?: unknown) => void) | undefined;
}
