import { assertNamespace } from "../names.ts";
import { guardCallback } from "./guard-callback.ts";
import { type ImportOptions, toImportLimits } from "./import-options.ts";
import { ImportedProvider } from "./imported-provider.ts";
import { ToolPin } from "./lock/tool-pin.ts";
import type { McpConnection } from "./mcp-connection.ts";
import { McpSource } from "./mcp-source.ts";
import { toPlainLine } from "./plain-line.ts";
import { ToolSet } from "./tool-set.ts";

/** Imports the tools of a server that is connected already; the connection is the source's from then on. */
export async function importServer(
  connection: McpConnection,
  options: ImportOptions & { readonly timeoutMs?: number | undefined },
): Promise<McpSource> {
  checkImportOptions(options);
  const { namespace = "" } = options;
  const limits = toImportLimits(options.limits);
  const warn = guardCallback("onWarning", warningOf(options));
  const pin = options.pin === undefined ? undefined : await ToolPin.open(namespace, options.pin);
  const tools = new ToolSet({ connection, options, limits, pin, warn });
  const provider = new ImportedProvider(connection, { namespace, limits, warn });
  if (options.onLog !== undefined) {
    const onLog = guardCallback("onLog", options.onLog);
    provider.onEvent((event) => event.type === "log" && onLog(event));
  }
  const source = new McpSource({ connection, tools, provider, pin, warn });
  await source.refresh();
  return source;
}

/** Refuses options that cannot work with a `TypeError`. */
export function checkImportOptions(options: ImportOptions): void {
  const { namespace, keepIds, pin } = options;
  if (namespace !== undefined || keepIds !== true) assertNamespace(namespace);
  if (pin !== undefined && namespace === undefined) {
    throw new TypeError("A pin needs a namespace, under which the lock keeps the tools of this server.");
  }
  toImportLimits(options.limits);
}

function warningOf({ namespace, onWarning }: ImportOptions): (message: string, cause?: unknown) => void {
  return (message, cause) => {
    const text = toPlainLine(message, 2_000);
    if (onWarning !== undefined) return onWarning(text, cause);
    console.warn(`[waybill] ${namespace === undefined ? "" : `${namespace}: `}${text}`);
  };
}
