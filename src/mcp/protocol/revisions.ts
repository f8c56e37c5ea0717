import { isPlainObject } from "../../core/json/json-value.ts";
import { decodeBase64 } from "../../core/wire/base64.ts";
import { MCP_LOG_LEVELS } from "../provider.ts";
import { isRpcId, metaOf, type Params, ProtocolError, RPC_CODES, type RpcRequest } from "./messages.ts";

/**
 * How a client and a server agree: "legacy" is `initialize` and a session, up to 2025-11-25; "modern" is what each request says of
 * itself, since 2026-07-28.
 */
export type Era = "legacy" | "modern";

/** The revisions that begin with `initialize`, newest first. */
export const LEGACY_REVISIONS: readonly string[] = [
  "2025-11-25",
  "2025-06-18",
  "2025-03-26",
  "2024-11-05",
  "2024-10-07",
];

/** The revisions in which each request says which one it is written in, newest first. */
export const MODERN_REVISIONS: readonly string[] = ["2026-07-28"];

const FIRST_MODERN = "2026-07-28";

/** Tells whether a revision is one of those without `initialize`, known here or not. */
export function isModernRevision(revision: string): boolean {
  return revision >= FIRST_MODERN;
}

/** The keys of `_meta` that the protocol has given a meaning. */
export const META_KEYS = {
  revision: "io.modelcontextprotocol/protocolVersion",
  clientInfo: "io.modelcontextprotocol/clientInfo",
  clientCapabilities: "io.modelcontextprotocol/clientCapabilities",
  logLevel: "io.modelcontextprotocol/logLevel",
  serverInfo: "io.modelcontextprotocol/serverInfo",
  subscriptionId: "io.modelcontextprotocol/subscriptionId",
} as const;

/** The extension for calls that are answered later, since 2026-07-28. */
export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";

interface MethodTraits {
  readonly eras: readonly Era[];
  /** The member of the parameters that the header `Mcp-Name` repeats, since 2026-07-28. */
  readonly named?: string;
  /** Whether a result says how long it may be kept, since 2026-07-28. */
  readonly isCacheable?: boolean;
}

const BOTH: readonly Era[] = ["legacy", "modern"];
const LEGACY: readonly Era[] = ["legacy"];
const MODERN: readonly Era[] = ["modern"];

/** Every method of a server, by the name all revisions give it. A new revision begins with a look at this table. */
const METHODS: Readonly<Record<string, MethodTraits>> = {
  initialize: { eras: LEGACY },
  ping: { eras: LEGACY },
  "logging/setLevel": { eras: LEGACY },
  "resources/subscribe": { eras: LEGACY },
  "resources/unsubscribe": { eras: LEGACY },
  "server/discover": { eras: MODERN, isCacheable: true },
  "subscriptions/listen": { eras: MODERN },
  "tools/list": { eras: BOTH, isCacheable: true },
  "tools/call": { eras: BOTH, named: "name" },
  "prompts/list": { eras: BOTH, isCacheable: true },
  "prompts/get": { eras: BOTH, named: "name" },
  "resources/list": { eras: BOTH, isCacheable: true },
  "resources/templates/list": { eras: BOTH, isCacheable: true },
  "resources/read": { eras: BOTH, named: "uri", isCacheable: true },
  "completion/complete": { eras: BOTH },
  "tasks/list": { eras: LEGACY },
  "tasks/result": { eras: LEGACY },
  "tasks/get": { eras: BOTH, named: "taskId" },
  "tasks/cancel": { eras: BOTH, named: "taskId" },
  "tasks/update": { eras: MODERN, named: "taskId" },
};

/** What the protocol says of a method; nothing for one it does not know. */
export function methodTraits(method: string): MethodTraits | undefined {
  return Object.hasOwn(METHODS, method) ? METHODS[method] : undefined;
}

/** Says that there is no such method. */
export function methodNotFound(): ProtocolError {
  return new ProtocolError(RPC_CODES.methodNotFound, "Method not found");
}

/** Says which revisions can be spoken instead of one that cannot. */
export function unsupportedRevision(requested: string | undefined): ProtocolError {
  const named = requested === undefined ? "the request names none" : requested;
  return new ProtocolError(RPC_CODES.unsupportedVersion, `Unsupported protocol version: ${named}`, {
    supported: MODERN_REVISIONS,
    ...(requested !== undefined && { requested }),
  });
}

/** What is wrong with an `initialize`; nothing where it can be answered. */
export function initializeFault(params: Params = {}): ProtocolError | undefined {
  const { protocolVersion, capabilities, clientInfo } = params;
  const isNamed =
    isPlainObject(clientInfo) &&
    typeof clientInfo["name"] === "string" &&
    typeof clientInfo["version"] === "string";
  if (typeof protocolVersion === "string" && isPlainObject(capabilities) && isNamed) return undefined;
  const message = "To initialize takes a protocolVersion, capabilities and a clientInfo.";
  return new ProtocolError(RPC_CODES.invalidParams, message);
}

/** The revision that a session speaks: the one the client asks for, or the newest there is. */
export function negotiateRevision(requested: unknown): string {
  const [newest = ""] = LEGACY_REVISIONS;
  return typeof requested === "string" && LEGACY_REVISIONS.includes(requested) ? requested : newest;
}

/** Tells whether a request says which revision it is written in. */
export function claimsRevision(params: unknown): boolean {
  const meta = metaOf(params);
  return meta !== undefined && META_KEYS.revision in meta;
}

/** The revision a request says it is written in; nothing where it says none, or no text. */
export function claimedRevision(params: unknown): string | undefined {
  const revision = metaOf(params)?.[META_KEYS.revision];
  return typeof revision === "string" ? revision : undefined;
}

/** What a request of 2026-07-28 must say about itself and does not. */
export function envelopeFault(params: unknown): ProtocolError | undefined {
  const meta = metaOf(params);
  const fault = meta === undefined ? { key: "_meta", problem: "missing" } : metaFault(meta);
  if (fault === undefined) return undefined;
  const message = `Invalid _meta for protocol revision 2026-07-28: ${fault.key}: ${fault.problem}`;
  return new ProtocolError(RPC_CODES.invalidParams, message, { envelope: fault });
}

/** The keys that a request of 2026-07-28 lacks. */
export function missingKeys(params: unknown): readonly string[] {
  const meta = metaOf(params);
  if (meta === undefined) return ["_meta"];
  return [META_KEYS.revision, META_KEYS.clientCapabilities].filter((key) => !(key in meta));
}

function metaFault(meta: Params): { readonly key: string; readonly problem: string } | undefined {
  const wrong = (key: string, problem: string) => ({ key, problem });
  for (const key of [META_KEYS.revision, META_KEYS.clientCapabilities])
    if (!(key in meta)) return wrong(key, "missing");
  if (typeof meta[META_KEYS.revision] !== "string") return wrong(META_KEYS.revision, "must be a string");
  const { [META_KEYS.clientCapabilities]: capabilities, [META_KEYS.clientInfo]: info } = meta;
  if (!isPlainObject(capabilities)) return wrong(META_KEYS.clientCapabilities, "must be an object");
  for (const name of ["elicitation", "sampling", "roots", "experimental", "extensions"]) {
    const value = capabilities[name];
    if (value !== undefined && !isPlainObject(value)) {
      return wrong(`${META_KEYS.clientCapabilities}.${name}`, "must be an object");
    }
  }
  const isNamed =
    isPlainObject(info) && typeof info["name"] === "string" && typeof info["version"] === "string";
  if (info !== undefined && !isNamed) return wrong(META_KEYS.clientInfo, "must have a name and a version");
  const { [META_KEYS.logLevel]: level, progressToken } = meta;
  if (level !== undefined && !MCP_LOG_LEVELS.some((known) => known === level)) {
    return wrong(META_KEYS.logLevel, "must be a log level");
  }
  if (progressToken !== undefined && !isRpcId(progressToken)) {
    return wrong("progressToken", "must be a string or an integer");
  }
  return undefined;
}

/** Tells whether a request is one of 2026-07-28 beyond doubt, so that not even `initialize` makes it an older one. */
export function isModernRequest({ params }: Pick<RpcRequest, "params">): boolean {
  const revision = claimedRevision(params);
  return revision !== undefined && isModernRevision(revision) && envelopeFault(params) === undefined;
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
const ENCODED = /^=\?base64\?(.*)\?=$/;
/** Visible ASCII, with spaces and tabs between. */
const PLAIN = /^[!-~](?:[\t -~]*[!-~])?$/;
const DEPTH = 32;

/** A member of the arguments of a tool that a header repeats over HTTP, since 2026-07-28. */
export interface MirroredParam {
  readonly path: readonly string[];
  readonly header: string;
}

const known = new WeakMap<object, readonly MirroredParam[]>();

/** Finds the members of an input schema that have an `x-mcp-header`; they are looked for once for each schema. */
export function mirroredParams(inputSchema: object): readonly MirroredParam[] {
  let found = known.get(inputSchema);
  if (found === undefined) {
    found = find(inputSchema, [], []);
    known.set(inputSchema, found);
  }
  return found;
}

function find(schema: unknown, path: readonly string[], found: MirroredParam[]): readonly MirroredParam[] {
  if (!isPlainObject(schema) || path.length > DEPTH) return found;
  const name = schema["x-mcp-header"];
  if (path.length > 0 && typeof name === "string" && TOKEN.test(name)) {
    found.push({ path, header: `Mcp-Param-${name}` });
  }
  const { properties } = schema;
  if (!isPlainObject(properties)) return found;
  for (const key of Object.keys(properties)) find(properties[key], [...path, key], found);
  return found;
}

/** The argument that a header repeats; nothing where there is none that a header can hold. */
export function mirroredValue(args: unknown, path: readonly string[]): string | number | boolean | undefined {
  let value = args;
  for (const key of path) {
    if (!isPlainObject(value) || !Object.hasOwn(value, key)) return undefined;
    value = value[key];
  }
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean"
    ? value
    : undefined;
}

/** Tells whether a number is too large to be written in a header so that everybody reads the same one. */
export function isInexact(value: unknown): boolean {
  return typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value);
}

/** Writes a text so that a header can hold it: in base64 where it is more than visible ASCII. */
export function encodeHeader(text: string): string {
  if (PLAIN.test(text) && !ENCODED.test(text)) return text;
  return `=?base64?${Buffer.from(text, "utf8").toString("base64")}?=`;
}

/** Reads a header whose text may be written in base64; nothing where that is broken. */
export function decodeHeader(text: string): string | undefined {
  const encoded = ENCODED.exec(text)?.[1];
  if (encoded === undefined) return text;
  const bytes = decodeBase64(encoded);
  if (bytes === undefined) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** The revision that brought links and structured content; audio was there before. */
const LINKS_SINCE = "2025-06-18";

/** Whether clients of a revision know every kind of block, and structured content. */
export function knowsAllBlocks(revision: string | undefined): boolean {
  return revision === undefined || revision >= LINKS_SINCE;
}
