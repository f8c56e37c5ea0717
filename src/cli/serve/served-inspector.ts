import type { LoadedConfig } from "../../gateway/config/loaded-config.ts";
import type { Gateway } from "../../gateway/gateway.ts";
import type { GatewayRoute } from "../../gateway/serve/gateway-front.ts";
import type { CallTelemetry } from "../../gateway/serve/observe/call-telemetry.ts";
import type { Observer } from "../../gateway/serve/observe/observer.ts";
import { DRAIN_MS } from "../../gateway/serve/serve-settings.ts";
import type { Inspector } from "../../inspector/server/inspector.ts";
import type { Io } from "../io.ts";
import { sourceWords } from "../list/source-words.ts";
import type { SourceFlags } from "../session.ts";
import { spelledCommand } from "../spelled-command.ts";

/** What an inspector is served with. */
export interface ServedInspectorOptions {
  readonly io: Io;
  /** What the command line says wins over the config, for as long as it runs. */
  readonly flags: SourceFlags & { readonly inspect?: boolean };
  readonly gateway: Gateway;
  readonly observer: Observer;
  readonly telemetry: CallTelemetry | undefined;
  /** The config in use, whichever that is by then. */
  readonly loaded: () => LoadedConfig;
  readonly onWarning: (message: string, cause?: unknown) => void;
}

/** The inspector of a gateway, there for as long as somebody wants it; it is loaded when it is first wanted. */
export class ServedInspector {
  /** Those of the inspector, or none; the same list for as long as the gateway is served. */
  readonly routes: GatewayRoute[] = [];
  readonly #options: ServedInspectorOptions;
  #inspector: Inspector | undefined;
  /** Whether it was wanted last. */
  #isWanted = false;

  constructor(options: ServedInspectorOptions) {
    this.#options = options;
  }

  get isOn(): boolean {
    return this.#inspector !== undefined;
  }

  /** Begins or ends as the command line and a config say. */
  async follow(loaded: LoadedConfig): Promise<void> {
    this.#isWanted = this.#options.flags.inspect ?? loaded.config.serve?.inspect ?? false;
    const { drainMs = DRAIN_MS } = loaded.config.serve ?? {};
    // Nobody waits for calls that go on to their end.
    if (!this.#isWanted) void this.close(drainMs);
    else if (!this.isOn) await this.#begin(loaded);
  }

  /** Ends every feed that is open, and is not there any more; resolves when calls of pages have ended, after that time at the latest. */
  async close(timeoutMs: number): Promise<void> {
    const inspector = this.#inspector;
    this.#isWanted = false;
    this.routes.length = 0;
    this.#inspector = undefined;
    await inspector?.close({ timeoutMs });
  }

  async #begin({ secrets }: LoadedConfig): Promise<void> {
    const { io, flags, gateway, observer, telemetry, loaded, onWarning } = this.#options;
    const { createInspector } = await import("../../inspector/server/inspector.ts");
    // It may have been given up meanwhile.
    if (!this.#isWanted || this.isOn) return;
    const command = { words: spelledCommand(io), flags: secrets.mask(sourceWords(flags)) };
    this.#inspector = createInspector({ gateway, observer, loaded, command, telemetry, onWarning });
    this.routes.push(this.#inspector.route);
  }
}
