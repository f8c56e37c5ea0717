import type { Identity } from "../../core/access/identity.ts";
import type { CallError } from "../../core/errors/errors.ts";
import type { OperationContext } from "../../core/operation/operation-context.ts";
import { checkOption, checkOptionsObject } from "../../core/options/check-options.ts";
import { splitLimits } from "../../core/options/shared-options.ts";
import type { ResultFormat } from "../../core/result/result-reader.ts";
import type { ResultStore } from "../../core/result/result-store.ts";
import { isObject } from "../../core/schema/json-schema.ts";
import type { Tasks } from "../../core/tasks/tasks.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import type { McpPromptMessages, McpProvider, McpResourceContents } from "../provider.ts";
import type { ChannelServer } from "./mcp-server.ts";
import { keyFault } from "./sealing-keys.ts";
import type { TaskSupport } from "./tasks/task-calls.ts";
import type { ServedExecutor } from "./tools/served-tools.ts";

/** What reading a resource or filling in a prompt may know and do. */
export type McpRequestContext = Pick<
  OperationContext,
  "identity" | "signal" | "log" | "progress" | "elicit" | "sample" | "roots"
>;

/** What people see of a resource, template or prompt. */
interface Described {
  readonly name: string;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly icons?: readonly Readonly<Record<string, unknown>>[] | undefined;
  readonly _meta?: Readonly<Record<string, unknown>> | undefined;
}

/** Contents as `resources/read` answers them; text alone, or bytes alone, become one of the resource's URI and media type. */
export type ResourceValue = string | Uint8Array | McpResourceContents;

/** A resource of this process. */
export interface LocalResource extends Described {
  readonly uri: string;
  readonly mimeType?: string | undefined;
  /** Bytes. */
  readonly size?: number | undefined;
  readonly annotations?: Readonly<Record<string, unknown>> | undefined;
  read(uri: string, context: McpRequestContext): ResourceValue | Promise<ResourceValue>;
  /** Calls the listener whenever the contents have changed, until what it returns is called; asked while anybody wants to know. */
  onUpdate?(listener: () => void): () => void;
}

/** Suggests values that begin with what was typed; at most 100 are sent. */
export type Completer = (
  value: string,
  context: { readonly arguments: Readonly<Record<string, string>> },
) => readonly string[] | Promise<readonly string[]>;

/** A family of resources of this process, under a URI template (RFC 6570, level 1 and `{+path}`). */
export interface LocalResourceTemplate extends Described {
  readonly uriTemplate: string;
  readonly mimeType?: string | undefined;
  readonly annotations?: Readonly<Record<string, unknown>> | undefined;
  /** By variable. */
  readonly complete?: Readonly<Record<string, Completer>> | undefined;
  read(
    uri: string,
    variables: Readonly<Record<string, string>>,
    context: McpRequestContext,
  ): ResourceValue | undefined | Promise<ResourceValue | undefined>;
}

/** An argument of a prompt. */
export interface PromptArgument {
  readonly name: string;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly required?: boolean | undefined;
  readonly complete?: Completer | undefined;
}

/** A prompt of this process. */
export interface LocalPrompt extends Described {
  readonly arguments?: readonly PromptArgument[] | undefined;
  /** Text alone becomes one message of the user. */
  get(
    args: Readonly<Record<string, string>>,
    context: McpRequestContext,
  ): string | McpPromptMessages | Promise<string | McpPromptMessages>;
}

/** How the names of tools are made from ids of operations. */
export interface ToolNaming {
  /** Puts the namespace before the name; without it, only names that would clash keep theirs. @default true */
  readonly prefix?: boolean | undefined;
  /** Keeps the dots of ids, which newer clients take. @default false */
  readonly dots?: boolean | undefined;
}

/** Bounds of one served MCP endpoint. */
export interface McpServerLimits {
  /** Tools, resources or prompts in one page of a list. @default 1_000 */
  readonly pageSize?: number | undefined;
  /** Characters of a result written as JSON that are sent whole; longer ones become a preview and a link. @default 200_000 */
  readonly inlineCharacters?: number | undefined;
  /** Values of a subscription that the final result repeats. @default 1_000 */
  readonly streamItems?: number | undefined;
  /** Handlers of 2026-07-28 clients that wait for an answer of the person behind them. @default 1_000 */
  readonly waitingCalls?: number | undefined;
  /** How long each of them waits, in milliseconds. @default 600_000 */
  readonly waitingMs?: number | undefined;
}

/** Providers that come and go while they are served. */
export interface LiveMcpProviders {
  /** Those there are now, each with a namespace of its own. */
  readonly current: readonly McpProvider[];
  /** Calls the listener after `current`, or what one of them can do, has changed; returns how to stop. */
  onChange(listener: () => void): () => void;
}

/** Who makes a request, for the function that chooses the format of its answer. */
export interface McpClient {
  /** What the client calls itself; nobody has checked it. */
  readonly name?: string | undefined;
  /** Nothing for an anonymous caller. */
  readonly identity?: Identity | undefined;
}

/** One read of a result in the store, or of an address where nothing is kept for the reader. */
export interface StoredRead {
  readonly uri: string;
  /** Whose results it holds; nothing where there is none, or it is the catalogue's own. */
  readonly operations: readonly string[];
  readonly identity: Identity | undefined;
  /** Whether it was read: it may also have expired, or be another caller's. */
  readonly isFound: boolean;
  readonly durationMs: number;
}

/** How operations are served to MCP clients. */
export interface McpServerOptions {
  /** @default "waybill" */
  readonly name?: string | undefined;
  readonly title?: string | undefined;
  /** @default the version of this package */
  readonly version?: string | undefined;
  /** Told to models about the server as a whole. */
  readonly instructions?: string | undefined;
  readonly names?: ToolNaming | undefined;
  /** How results are written. @default plain: data as structured content, and as text */
  readonly format?: ResultFormat | undefined;
  /** Formats a client may ask for instead, by name, in `_meta["dev.waybill/format"]` of `tools/list` and `tools/call`. */
  readonly formats?: readonly ResultFormat[] | (() => readonly ResultFormat[]) | undefined;
  /**
   * Names the format for a client that asks for none: one of `formats`, or `format`. Anything else, or nothing, means `format`.
   * @default `format` for everybody
   */
  readonly formatOf?: ((client: McpClient) => string | undefined) | undefined;
  /** Keeps results that are too long to send whole, each for its caller; without one they are sent whole. */
  readonly store?: ResultStore | undefined;
  /** Hears of every read of a result in the store, and of every address that was refused; must not throw. @default nobody does */
  readonly onStoredRead?: ((read: StoredRead) => void) | undefined;
  /** `limits.inlineCharacters` of one operation, by id; nothing means the usual bound. @default the usual bound for all */
  readonly inlineCharactersOf?: ((operationId: string) => number | undefined) | undefined;
  /** Says why there is no tool of that name, where that is known; else it is an unknown one. @default nothing is known */
  readonly explainMissing?:
    | ((toolName: string, identity: Identity | undefined) => CallError | undefined)
    | undefined;
  /** What imported servers offer besides tools is passed on. */
  readonly providers?: readonly McpProvider[] | LiveMcpProviders | undefined;
  readonly resources?: readonly LocalResource[] | undefined;
  readonly resourceTemplates?: readonly LocalResourceTemplate[] | undefined;
  readonly prompts?: readonly LocalPrompt[] | undefined;
  /** Serves `search`, `describe`, `call` and `batch` instead of a tool per operation. @default false */
  readonly catalogue?: boolean | undefined;
  /** Lets calls be tasks, for clients that take them: those of durable operations, and those that take long. @default no call is one */
  readonly tasks?: Tasks | undefined;
  /** Whether calls of an operation may be tasks, or have to be, by its id. @default "optional" */
  readonly taskSupportOf?: ((operationId: string) => TaskSupport | undefined) | undefined;
  /** Who is asking where a transport does not say: stdio, and HTTP without authentication. @default an anonymous caller */
  readonly identity?: Identity | undefined;
  readonly limits?: McpServerLimits | undefined;
  /**
   * Shared by all replicas that serve the same clients over HTTP, at least 32 characters: each of them serves the sessions of all. Of several
   * keys the first one seals, and each opens. @default every process knows its own sessions alone
   */
  readonly sessionKey?: string | readonly string[] | undefined;
  /** Hears of what could not be told to any client, such as what a handler threw. @default console.warn, once for each kind */
  readonly onWarning?: ((message: string, cause?: unknown) => void) | undefined;
}

const NAMES = Object.keys({
  name: true,
  title: true,
  version: true,
  instructions: true,
  names: true,
  format: true,
  formats: true,
  formatOf: true,
  store: true,
  onStoredRead: true,
  inlineCharactersOf: true,
  explainMissing: true,
  providers: true,
  resources: true,
  resourceTemplates: true,
  prompts: true,
  catalogue: true,
  tasks: true,
  taskSupportOf: true,
  identity: true,
  limits: true,
  sessionKey: true,
  onWarning: true,
} satisfies Record<keyof McpServerOptions, true>);

const SERVER_LIMITS = Object.keys({
  pageSize: true,
  inlineCharacters: true,
  streamItems: true,
  waitingCalls: true,
  waitingMs: true,
} satisfies Record<keyof McpServerLimits, true>);

const NAMING = Object.keys({ prefix: true, dots: true } satisfies Record<keyof ToolNaming, true>);
const EXECUTOR = ["execute", "subscribe", "list", "get", "onChange"] satisfies (keyof ServedExecutor)[];
const SERVER = ["answer", "follow", "close"] satisfies (keyof ChannelServer)[];
const PROVIDER = ["listResources", "readResource", "listPrompts", "getPrompt", "complete", "onEvent"];

/** Throws a `TypeError` unless operations can be run on this. */
export function checkServedExecutor(executor: unknown): void {
  if (isExecutor(executor)) return;
  const hint = isPromise(executor) ? "await the promise first" : "such as new OperationRegistry([operation])";
  throw new TypeError(`toMcpServer takes a registry or another executor, ${hint}.`);
}

/** What a function that serves was given: a server, or an executor and the options of the server to make of it. */
export type GivenToServe<Own> =
  | { readonly server: ChannelServer; readonly own: Own }
  | { readonly executor: ServedExecutor; readonly options: McpServerOptions; readonly own: Own };

/** A function that serves, and the names of its own options. */
export interface ServeFunction<Own> {
  readonly by: string;
  readonly names: readonly (keyof Own)[];
}

/**
 * Takes apart what a function that serves was given. Throws a `TypeError` for what cannot be served, and
 * for options of a server beside one that is made already.
 */
export function readServeArguments<Own extends { readonly limits?: object | undefined }>(
  served: unknown,
  given: Own,
  { by, names }: ServeFunction<Own>,
): GivenToServe<Own> {
  const isServer = hasFunctions(served, SERVER);
  if (!isServer && !isExecutor(served)) {
    const hint = isPromise(served) ? "; await the promise first" : `: ${by}(registry)`;
    throw new TypeError(`${by} takes a registry, or what toMcpServer returns${hint}.`);
  }
  const isMisplaced = (name: string): boolean => NAMES.includes(name) && !names.includes(name as keyof Own);
  const misplaced = Object.keys(given ?? {}).filter(isMisplaced);
  if (isServer) {
    if (misplaced.length === 0) return { server: served as ChannelServer, own: given };
    throw new TypeError(
      `${misplaced[0]} is an option of the server: give it to toMcpServer, or give ${by} a registry.`,
    );
  }
  if (misplaced.length === 0 && given?.limits === undefined) {
    const { onWarning, identity } = given as McpServerOptions;
    return { executor: served as ServedExecutor, options: { onWarning, identity }, own: given };
  }
  const split = splitLimits<object, object>(given.limits, SERVER_LIMITS);
  const entries = Object.entries(given);
  const options = Object.fromEntries(entries.filter(([name]) => NAMES.includes(name)));
  const own = Object.fromEntries(entries.filter(([name]) => !isMisplaced(name)));
  return {
    executor: served as ServedExecutor,
    options: { ...options, limits: split.own },
    own: { ...own, limits: split.rest } as Own,
  };
}

/** Throws a `TypeError` that names the option and what it takes where options of a server cannot work. */
export function checkServerOptions(options: McpServerOptions): void {
  checkOptionsObject(options, NAMES);
  const { catalogue, identity, names, onWarning, store, sessionKey, tasks } = options;
  for (const name of ["name", "title", "version", "instructions"] as const) {
    checkOption(name, options[name], "a string", typeof options[name] === "string");
  }
  if (names !== undefined) checkOptionsObject(names, NAMING, "names.");
  checkOption("catalogue", catalogue, "true or false", typeof catalogue === "boolean");
  checkOption("identity", identity, "an object with a subject", typeof identity?.subject === "string");
  checkOption("onWarning", onWarning, "a function", typeof onWarning === "function");
  const isKey = typeof sessionKey === "string" || Array.isArray(sessionKey);
  checkOption("sessionKey", sessionKey, "a text, or a list of texts", isKey);
  const fault = sessionKey === undefined ? undefined : keyFault([sessionKey].flat());
  if (fault !== undefined) throw new TypeError(`sessionKey ${fault}.`);
  const awaited = isPromise(store) ? " (await the promise)" : "";
  checkOption("store", store, `an object with put and read${awaited}`, hasFunctions(store, ["put", "read"]));
  checkOption("tasks", tasks, "what `new Tasks()` makes", hasFunctions(tasks, ["start", "get", "result"]));
  for (const name of ["formatOf", "inlineCharactersOf", "explainMissing", "taskSupportOf"] as const) {
    checkOption(name, options[name], "a function", typeof options[name] === "function");
  }
  checkFormat("format", options.format);
  const { formats, providers } = options;
  checkList("formats", typeof formats === "function" ? formats() : formats, checkFormat);
  checkList("providers", isLive(providers) ? providers.current : providers, checkProvider);
  checkList("resources", options.resources, checkResource);
  checkList("resourceTemplates", options.resourceTemplates, checkTemplate);
  checkList("prompts", options.prompts, checkPrompt);
}

/** Tells whether providers come and go. */
export function isLive(providers: McpServerOptions["providers"]): providers is LiveMcpProviders {
  return hasFunctions(providers, ["onChange"]);
}

function checkList(name: string, list: unknown, check: (name: string, item: unknown) => void): void {
  checkOption(name, list, "a list", Array.isArray(list));
  for (const [i, item] of ((list ?? []) as readonly unknown[]).entries()) {
    // Left out is for whole options: in a list, it is a mistake like any other.
    check(`${name}[${i}]`, item ?? null);
  }
}

function checkFormat(name: string, format: unknown): void {
  const maker = typeof format === "string" ? JSON.stringify(format.slice(0, 80)) : "…";
  const wanted = `an object with write and outputSchema, such as createResultFormat(${maker})`;
  checkOption(name, format, wanted, isNamed(format) && hasFunctions(format, ["write", "outputSchema"]));
}

function checkProvider(name: string, provider: unknown): void {
  const awaited = isPromise(provider) ? " (await the promise)" : "";
  const isRight =
    isObject(provider) && isObject(provider["capabilities"]) && hasFunctions(provider, PROVIDER);
  checkOption(name, provider, `an McpProvider, such as what fromMcp resolves with${awaited}`, isRight);
}

function checkResource(name: string, resource: unknown): void {
  const { uri } = isObject(resource) ? resource : {};
  checkOption(name, resource, "an object with a name, a uri and read", isNamed(resource));
  const isUri = typeof uri === "string" && parseUrl(uri) !== undefined;
  checkOption(`${name}.uri`, uri ?? null, 'an absolute URI, such as "docs://intro"', isUri);
  checkMember(name, resource, "read");
}

function checkTemplate(name: string, template: unknown): void {
  const { uriTemplate } = isObject(template) ? template : {};
  checkOption(name, template, "an object with a name, a uriTemplate and read", isNamed(template));
  const isTemplate = typeof uriTemplate === "string" && uriTemplate !== "";
  checkOption(`${name}.uriTemplate`, uriTemplate ?? null, 'such as "docs://{page}"', isTemplate);
  checkMember(name, template, "read");
}

function checkPrompt(name: string, prompt: unknown): void {
  checkOption(name, prompt, "an object with a name and get", isNamed(prompt));
  const { arguments: args } = prompt as { readonly arguments?: unknown };
  const isRight = Array.isArray(args) && args.every(isNamed);
  checkOption(`${name}.arguments`, args, "a list of objects with a name", isRight);
  checkMember(name, prompt, "get");
}

function checkMember(name: string, item: unknown, member: string): void {
  const value = (item as Readonly<Record<string, unknown>>)[member];
  checkOption(`${name}.${member}`, value ?? null, "a function", typeof value === "function");
}

function isNamed(value: unknown): boolean {
  return isObject(value) && typeof value["name"] === "string" && value["name"] !== "";
}

function isExecutor(value: unknown): boolean {
  return hasFunctions(value, EXECUTOR);
}

function isPromise(value: unknown): boolean {
  return hasFunctions(value, ["then"]);
}

function hasFunctions(value: unknown, names: readonly string[]): boolean {
  return isObject(value) && names.every((name) => typeof value[name] === "function");
}
