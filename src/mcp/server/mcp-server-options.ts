import type { Identity } from "../../core/access/identity.ts";
import type { CallError } from "../../core/errors/errors.ts";
import type { OperationContext } from "../../core/operation/operation-context.ts";
import type { ResultFormat } from "../../core/result/result-format.ts";
import type { ResultStore } from "../../core/result/result-store.ts";
import type { McpPromptMessages, McpProvider, McpResourceContents } from "../provider.ts";

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

/** Who makes a request, for whoever chooses the format of its answer. */
export interface McpClient {
  /** What the client calls itself; nobody has checked it. */
  readonly name?: string | undefined;
  /** Nothing for an anonymous caller. */
  readonly identity?: Identity | undefined;
}

/** One read of a result in the store, or of an address where nothing is kept for whoever reads. */
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
  /** Who is asking where a transport does not say: stdio, and HTTP without authentication. @default an anonymous caller */
  readonly identity?: Identity | undefined;
  readonly limits?: McpServerLimits | undefined;
  /** Hears of what could not be told to any client. @default console.warn, once for each kind */
  readonly onWarning?: ((message: string, cause?: unknown) => void) | undefined;
}
