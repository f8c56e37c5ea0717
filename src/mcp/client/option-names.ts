import { isPlainObject } from "../../core/json/json-value.ts";
import { checkNames } from "../../core/options/check-options.ts";
import type {
  ConnectionSettings,
  CustomConnectionOptions,
  StdioConnectionOptions,
} from "./connection-options.ts";
import type { HttpConnectionOptions } from "./http-options.ts";
import { type ImportLimits, type ImportOptions, toImportLimits } from "./import-options.ts";
import { MCP_LIMITS } from "./mcp-limits.ts";

type OptionName =
  | keyof StdioConnectionOptions
  | keyof HttpConnectionOptions
  | keyof CustomConnectionOptions
  | keyof ConnectionSettings
  | keyof ImportOptions;

const OPTION_NAMES = {
  command: true,
  args: true,
  env: true,
  cwd: true,
  inheritEnv: true,
  url: true,
  type: true,
  headers: true,
  bearer: true,
  auth: true,
  fetch: true,
  allowHttp: true,
  transport: true,
  protocol: true,
  clientInfo: true,
  roots: true,
  timeoutMs: true,
  connectTimeoutMs: true,
  reconnect: true,
  limits: true,
  logLevel: true,
  said: true,
  maskResults: true,
  secrets: true,
  namespace: true,
  keepIds: true,
  instructions: true,
  reader: true,
  recoverJson: true,
  schemas: true,
  pagers: true,
  unwrapResult: true,
  outputPolicy: true,
  pin: true,
  onDefinitionChange: true,
  filter: true,
  onLog: true,
  onWarning: true,
} as const satisfies Record<OptionName, true>;

/** Refuses options of `fromMcp` that are no object, or have a name that nobody reads, with a `TypeError`. */
export function checkOptionNames(options: unknown): void {
  if (!isPlainObject(options)) {
    throw new TypeError(
      "fromMcp takes an object of options, such as { namespace, command } or { namespace, url }.",
    );
  }
  checkNames(options, Object.keys(OPTION_NAMES));
  const { limits, reconnect } = options;
  const importLimits: ImportLimits = toImportLimits();
  if (isPlainObject(limits)) {
    checkNames(limits, [...Object.keys(MCP_LIMITS), ...Object.keys(importLimits)], "limits.");
  }
  if (isPlainObject(reconnect)) checkNames(reconnect, ["initialMs", "maxMs", "factor"], "reconnect.");
}
