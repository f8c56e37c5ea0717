import { isPlainObject } from "../../core/json/json-value.ts";
import { checkOption } from "../../core/options/check-options.ts";
import { assertNamespace } from "../names.ts";
import { guardCallback } from "./guard-callback.ts";
import { type ImportOptions, toImportLimits } from "./import-options.ts";
import { ImportedProvider } from "./imported-provider.ts";
import { ToolPin } from "./lock/tool-pin.ts";
import type { McpConnection } from "./mcp-connection.ts";
import { McpSource } from "./mcp-source.ts";
import { Oddities } from "./oddities.ts";
import { toPlainLine } from "./plain-line.ts";
import { ToolSet } from "./tool-set.ts";

/** Imports the tools of a server that is connected already, until the signal; the connection is the source's from then on. */
export async function importServer(
  connection: McpConnection,
  options: ImportOptions & { readonly timeoutMs?: number | undefined },
  signal?: AbortSignal,
): Promise<McpSource> {
  checkImportOptions(options);
  const { namespace = "" } = options;
  const limits = toImportLimits(options.limits);
  const tell = guardCallback("onWarning", warningOf(options));
  const warn = (message: string, cause?: unknown): void => tell(connection.secrets.mask(message), cause);
  const pin = options.pin === undefined ? undefined : await ToolPin.open(namespace, options.pin);
  const oddities = new Oddities((message) => warn(message));
  const tools = new ToolSet({ connection, options, limits, pin, oddities, warn });
  const provider = new ImportedProvider(connection, {
    namespace,
    limits,
    passesInstructions: options.instructions ?? true,
    warn,
  });
  if (options.onLog !== undefined) {
    const onLog = guardCallback("onLog", options.onLog);
    provider.onEvent((event) => event.type === "log" && onLog(event));
  }
  const source = new McpSource({ connection, tools, provider, pin, oddities, warn });
  const stop = (): void => tools.stop();
  signal?.addEventListener("abort", stop);
  if (signal?.aborted) stop();
  try {
    await source.refresh();
  } finally {
    signal?.removeEventListener("abort", stop);
  }
  warnOfUnlisted(tools, options, warn);
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
  checkReading(options);
  checkCallbacks(options);
  checkPin(pin);
}

const POLICIES: readonly unknown[] = ["off", "warn", "strict"];

function checkReading({ outputPolicy, schemas, pagers, reader, ...flags }: ImportOptions): void {
  checkOption("outputPolicy", outputPolicy, '"off", "warn" or "strict"', POLICIES.includes(outputPolicy));
  checkOption("schemas", schemas, "an object of schemas by name of tool", isPlainObject(schemas));
  checkOption("pagers", pagers, "an object of pagers by name of tool", isPlainObject(pagers));
  checkOption("reader", reader, "made by createResultReader()", typeof reader?.read === "function");
  for (const name of ["keepIds", "instructions", "recoverJson", "unwrapResult"] as const) {
    checkOption(name, flags[name], "true or false", typeof flags[name] === "boolean");
  }
}

function checkCallbacks(options: ImportOptions): void {
  for (const name of ["filter", "onWarning", "onLog", "onDefinitionChange"] as const) {
    checkOption(name, options[name], "a function", typeof options[name] === "function");
  }
}

function checkPin(pin: unknown): void {
  const { lockFile, lock }: Record<string, unknown> = isPlainObject(pin) ? pin : {};
  const isFile = typeof lockFile === "string" && lockFile !== "" && lock === undefined;
  const isLock = isPlainObject(lock) && lockFile === undefined;
  checkOption("pin", pin, "true, { lockFile } or { lock }", pin === true || isFile || isLock);
}

/** A misspelt name would leave a tool without its schema or pager, and nobody the wiser. */
function warnOfUnlisted({ now }: ToolSet, options: ImportOptions, warn: (message: string) => void): void {
  const { tools, unapproved, filtered, unusable } = now;
  const names = unusable.map(({ tool }) => tool);
  const listed = new Set([...tools.keys(), ...unapproved.keys(), ...filtered, ...names]);
  for (const option of ["schemas", "pagers"] as const) {
    for (const name of Object.keys(options[option] ?? {})) {
      if (!listed.has(name)) warn(`${option} names the tool "${name}", which the server does not list.`);
    }
  }
}

function warningOf({ namespace, onWarning }: ImportOptions): (message: string, cause?: unknown) => void {
  return (message, cause) => {
    const text = toPlainLine(message, 2_000);
    if (onWarning !== undefined) return onWarning(text, cause);
    console.warn(`[waybill] ${namespace === undefined ? "" : `${namespace}: `}${text}`);
  };
}
