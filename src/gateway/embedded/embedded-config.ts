import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { ParcelBook, type ParcelBookOptions } from "../../../examples/parcel-office/parcel-book.ts";
import { parcelOperations } from "../../../examples/parcel-office/parcel-operations.ts";
import { SecretMask } from "../../core/secrets/secret-mask.ts";
import { createPlainServer } from "../../http/listen.ts";
import { HoldLost, holdFile } from "../../mcp/client/lock/lock-file.ts";
import type { GatewayConfig, McpServerConfig } from "../config/gateway-config.ts";
import type { LoadedConfig } from "../config/loaded-config.ts";
import { stateFolder } from "./state-folder.ts";

/** How the embedded default is opened. */
export interface EmbeddedOptions {
  /** Says where state is kept. @default process.env */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** The script of the depot's process. @default the one that stands beside this code */
  readonly childEntry?: string | undefined;
  /** Which sources are needed, by name: `tariff` listens only when it is. @default all */
  readonly only?: ((name: string) => boolean) | undefined;
  /** Hears what is odd about the state that was found. @default nobody does */
  readonly onWarning?: ((message: string, cause?: unknown) => void) | undefined;
}

/** The embedded default, opened. */
export interface Embedded {
  readonly loaded: LoadedConfig;
  /** Where the parcels are kept. */
  readonly stateFile: string;
  /** Ends what was started here; the depot's process belongs to the gateway that mounts it. */
  close(): Promise<void>;
}

/**
 * What there is without a config: a parcel office with state of its own, a tariff service with an OpenAPI document, and an MCP
 * server in a process of its own.
 */
export async function openEmbedded(options: EmbeddedOptions = {}): Promise<Embedded> {
  const { env = process.env, only = () => true, onWarning } = options;
  const folder = stateFolder({ env });
  const stateFile = join(folder, "parcels.json");
  const tariff = only("tariff") ? await startTariff() : undefined;
  const config: GatewayConfig = {
    mcpServers: only("depot") ? { depot: depotServer(options.childEntry ?? findDepotEntry()) } : {},
    openapi: tariff === undefined ? {} : { tariff: { document: tariff.documentUrl } },
    serve: { inspect: true },
  };
  const loaded: LoadedConfig = {
    config,
    baseDir: process.cwd(),
    files: new Map(),
    faults: {},
    warnings: [],
    secrets: new SecretMask(),
    localOperations: parcelOperations(openParcelBook(stateFile, { onWarning })),
  };
  return { loaded, stateFile, close: async () => await tariff?.close() };
}

/** How often a change is made that another process interrupts. */
const MOST_CHANGES = 10;

/** Opens the parcels of all processes of a user, in one file that one process at a time changes. */
export function openParcelBook(path: string, options: Omit<ParcelBookOptions, "hold"> = {}): ParcelBook {
  return new ParcelBook(path, {
    ...options,
    async hold(file, run) {
      for (let made = 1; ; made++) {
        try {
          return await holdFile(file, run);
        } catch (error) {
          if (!(error instanceof HoldLost && made < MOST_CHANGES)) throw error;
        }
      }
    },
  });
}

/** Loaded and started only where it is needed. */
async function startTariff() {
  const { startTariffService } = await import("../../../examples/parcel-office/tariff-service.ts");
  return await startTariffService(createPlainServer);
}

/** Some answers of the depot are JSON in text, which is taken for the data it is. */
function depotServer(entry: string): McpServerConfig {
  if (!entry.endsWith(".ts")) return { command: process.execPath, args: [entry], recoverJson: true };
  const env = { JITI_TSCONFIG_PATHS: "true" };
  return { command: process.execPath, args: [typeScriptRunner(), entry], env, recoverJson: true };
}

/** Node runs no TypeScript by itself; only the sources need this, never the package. */
export function typeScriptRunner(): string {
  const main = createRequire(import.meta.url).resolve("jiti/package.json");
  return join(dirname(main), "lib", "jiti-cli.mjs");
}

/** In the package this code is in a chunk, or in an entry; the last is for the sources. */
const ENTRIES = [
  "../embedded/depot-server.js",
  "./embedded/depot-server.js",
  "../../../examples/parcel-office/depot-server.ts",
];

function findDepotEntry(): string {
  const paths = ENTRIES.map((entry) => fileURLToPath(new URL(entry, import.meta.url)));
  const found = paths.find((path) => existsSync(path));
  if (found === undefined) throw new Error("The script of the depot is missing; install Waybill anew.");
  return found;
}
