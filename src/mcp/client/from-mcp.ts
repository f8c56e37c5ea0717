import { isPlainObject } from "../../core/json/json-value.ts";
import { checkNames, checkOption } from "../../core/options/check-options.ts";
import { assertNamespace } from "../names.ts";
import {
  type ConnectionSettings,
  checkConnectionOptions,
  type HttpSettings,
  type HttpTarget,
  MCP_LIMITS,
  type McpConnectionOptions,
  type McpTarget,
  type StdioTarget,
  type TransportTarget,
} from "./connection-options.ts";
import { type ImportLimits, type ImportOptions, toImportLimits } from "./import-options.ts";
import type { ToolLock } from "./lock/tool-lock.ts";
import { ToolPin } from "./lock/tool-pin.ts";
import { type McpLink, openMcpConnection } from "./mcp-connection.ts";
import { McpSource } from "./mcp-source.ts";
import { toPlainLine } from "./plain-line.ts";
import { guardCallback, ToolSet } from "./tool-set.ts";

export { McpSource };

/** How an MCP server is reached, and how its tools become operations. */
export type FromMcpOptions = ConnectionSettings & HttpSettings & ImportOptions;

/**
 * Connects to an MCP server and imports its tools. Rejects with a `CallError` when it cannot be reached or its tools cannot be
 * listed, and leaves nothing running then.
 */
export async function fromMcp(target: McpTarget, options: FromMcpOptions = {}): Promise<McpSource> {
  return await openMcpSource(withTarget(target, options));
}

/** The same, with the server among the options. */
export type McpSourceOptions = McpConnectionOptions & ImportOptions;

/** Does what `fromMcp` does, for those who have everything in one object. */
export async function openMcpSource(options: McpSourceOptions): Promise<McpSource> {
  checkOptionNames(options);
  checkConnectionOptions(options);
  checkImportOptions(options);
  const connection = await openMcpConnection(options);
  try {
    return await importServer(connection, options);
  } catch (thrown) {
    await connection.close();
    throw thrown;
  }
}

/** Approves the tools of a pinned source as they are listed now, all or those named, and writes its lock file if it has one. */
export async function approveTools(source: McpSource, toolNames?: Iterable<string>): Promise<ToolLock> {
  if (!(source instanceof McpSource)) {
    const hint = (source as unknown) instanceof Promise ? "; await fromMcp() first" : "";
    throw new TypeError(`approveTools takes a source made by fromMcp()${hint}.`);
  }
  return await source.approve(toolNames);
}

const TARGET_NAMES = Object.keys({
  command: true,
  args: true,
  env: true,
  cwd: true,
  inheritEnv: true,
  url: true,
  type: true,
  transport: true,
} satisfies Record<keyof StdioTarget | keyof HttpTarget | keyof TransportTarget, true>);

const HTTP_NAMES = ["auth", "headers", "fetch", "allowHttp"] as const satisfies (keyof HttpSettings)[];

const OPTION_NAMES = Object.keys({
  headers: true,
  auth: true,
  fetch: true,
  allowHttp: true,
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
  tasks: true,
  outputPolicy: true,
  pin: true,
  onDefinitionChange: true,
  filter: true,
  propagate: true,
  onLog: true,
  onWarning: true,
} satisfies Record<keyof FromMcpOptions, true>);

/** Puts the server among the options; throws a `TypeError` where one of the two says what belongs to the other. */
function withTarget(target: McpTarget, options: FromMcpOptions): McpSourceOptions {
  const isAddress = typeof target === "string" || target instanceof URL;
  if (!(isAddress || isPlainObject(target)) || !isPlainObject(options)) {
    throw new TypeError(
      'fromMcp takes a server and options: fromMcp("https://…/mcp", { namespace }), or { command }, { url } or { transport } first.',
    );
  }
  const server = isAddress ? { url: target } : target;
  const early = Object.keys(server).find((name) => OPTION_NAMES.includes(name));
  if (early !== undefined) {
    throw new TypeError(`${early} belongs into the second argument: fromMcp(server, { ${early} }).`);
  }
  checkNames(server, TARGET_NAMES);
  const late = Object.keys(options).find((name) => TARGET_NAMES.includes(name));
  if (late !== undefined) {
    throw new TypeError(`${late} belongs to the server: fromMcp({ ${late} }, options).`);
  }
  return { ...options, ...server } as McpSourceOptions;
}

/** Refuses options that have a name that nobody reads, or that are for another kind of server, with a `TypeError`. */
function checkOptionNames(options: McpSourceOptions): void {
  checkNames(options, [...TARGET_NAMES, ...OPTION_NAMES]);
  const misplaced = "url" in options ? undefined : HTTP_NAMES.find((name) => Object.hasOwn(options, name));
  if (misplaced !== undefined) throw new TypeError(`${misplaced} is for servers with a url.`);
  const { limits, reconnect } = options;
  const importLimits: ImportLimits = toImportLimits();
  if (isPlainObject(limits)) {
    checkNames(limits, [...Object.keys(MCP_LIMITS), ...Object.keys(importLimits)], "limits.");
  }
  if (isPlainObject(reconnect)) checkNames(reconnect, ["delayMs", "maxDelayMs"], "reconnect.");
}

/** Imports the tools of a server that is connected already, until the signal; the connection is the source's from then on. */
export async function importServer(
  connection: McpLink,
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
  const source = new McpSource({
    connection,
    tools,
    pin,
    oddities,
    namespace,
    limits,
    passesInstructions: options.instructions ?? true,
    warn,
  });
  if (options.onLog !== undefined) {
    const onLog = guardCallback("onLog", options.onLog);
    source.onEvent((event) => event.type === "log" && onLog(event));
  }
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

function checkReading({ outputPolicy, schemas, pagers, reader, tasks, ...flags }: ImportOptions): void {
  checkOption("tasks", tasks, '"required" or "optional"', tasks === "required" || tasks === "optional");
  checkOption("outputPolicy", outputPolicy, '"off", "warn" or "strict"', POLICIES.includes(outputPolicy));
  checkOption("schemas", schemas, "an object of schemas by name of tool", isPlainObject(schemas));
  checkOption("pagers", pagers, "an object of pagers by name of tool", isPlainObject(pagers));
  checkOption("reader", reader, "made by createResultReader()", typeof reader?.read === "function");
  for (const name of ["keepIds", "instructions", "recoverJson", "unwrapResult"] as const) {
    checkOption(name, flags[name], "true or false", typeof flags[name] === "boolean");
  }
}

function checkCallbacks(options: ImportOptions): void {
  for (const name of ["filter", "propagate", "onWarning", "onLog", "onDefinitionChange"] as const) {
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

/** How many kinds of oddities are told of; more of them are only counted. */
const MAX_KINDS = 32;

/** Counts what a server does that nobody understands, and tells of each kind once. */
export class Oddities {
  readonly #warn: (message: string) => void;
  readonly #kinds = new Set<string>();
  #count = 0;

  constructor(warn: (message: string) => void) {
    this.#warn = warn;
  }

  get count(): number {
    return this.#count;
  }

  add(message: string): void {
    this.#count += 1;
    const kind = kindOf(message);
    if (this.#kinds.size >= MAX_KINDS || this.#kinds.has(kind)) return;
    this.#kinds.add(kind);
    this.#warn(message);
  }
}

/** What is ours of a message: the words before the colon after which the server is quoted, whatever the numbers. */
function kindOf(message: string): string {
  const [front = ""] = message.slice(0, 300).split(/[:.]/, 1);
  return front.replace(/\d+/g, "0");
}
