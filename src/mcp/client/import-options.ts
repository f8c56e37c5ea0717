import type { Metadata } from "../../core/operation/operation-context.ts";
import type { AnyOperation, OutputPolicy, Pager } from "../../core/operation/operation-types.ts";
import { completeLimits } from "../../core/options/check-options.ts";
import type { ResultReader } from "../../core/result/result-reader.ts";
import type { AnySchema } from "../../core/schema/any-schema.ts";
import type { ServerLog } from "../provider.ts";
import { notPositive } from "./connection-options.ts";
import type { DefinitionChange, ToolLock } from "./lock/tool-lock.ts";

/** Bounds on what a server may list. */
export interface ImportLimits {
  /** Tools, resources or prompts in one list, over all pages. @default 10_000 */
  readonly tools: number;
  /** Pages of one list. @default 1_000 */
  readonly pages: number;
  /** UTF-8 bytes of one tool, resource or prompt, written as JSON. @default 1_048_576 */
  readonly definitionBytes: number;
  /** UTF-8 bytes of one list, over all pages, written as JSON. @default 67_108_864 */
  readonly listBytes: number;
  /** Objects and lists in the definitions of all tools; those that do not fit any more are unusable. @default 1_000_000 */
  readonly listObjects: number;
  /** Values of a subscription that wait for a slow reader. @default 10_000 */
  readonly waitingValues: number;
}

/** The limits in force where none are given. */
const IMPORT_LIMITS: ImportLimits = {
  tools: 10_000,
  pages: 1_000,
  definitionBytes: 1_048_576,
  listBytes: 67_108_864,
  listObjects: 1_000_000,
  waitingValues: 10_000,
};

/**
 * Where the approved definitions of tools are kept: a file that is read now and written by `approveTools` (`true` for
 * `waybill.lock.json` in the working folder), or a lock at hand.
 */
export type PinOptions = true | { readonly lockFile: string } | { readonly lock: ToolLock };

/** How the tools of a server become operations. */
export interface ImportOptions {
  /** What the operations stand under; may be left out with `keepIds`, for servers that name an id for every tool. @default none */
  readonly namespace?: string | undefined;
  /** Tools that Waybill serves keep their ids and types, and errors their own messages: only for servers you trust to name them. @default false */
  readonly keepIds?: boolean | undefined;
  /** Passes on, where the source is served as a provider, what the server tells models about itself. @default true */
  readonly instructions?: boolean | undefined;
  /** Finds data in published envelopes; see `createResultReader`. @default none */
  readonly reader?: ResultReader | undefined;
  /** Takes a single text block that is a JSON object or array for the data. @default false */
  readonly recoverJson?: boolean | undefined;
  /** Output schemas by name of tool, which win over what the server advertises. @default none */
  readonly schemas?: Readonly<Record<string, AnySchema>> | undefined;
  /** How the next page of a result is found, by name of tool; those of Waybill need none. @default the cursor a result carries */
  readonly pagers?: Readonly<Record<string, Pager>> | undefined;
  /** Takes the value out of `{ result: … }` where the advertised schema is exactly that. @default true */
  readonly unwrapResult?: boolean | undefined;
  /** Which tools of a 2025-11-25 server are called as tasks: those that must be, or all that may be. @default "required" */
  readonly tasks?: "required" | "optional" | undefined;
  /** What happens to data that misses its schema. @default what the registry does */
  readonly outputPolicy?: OutputPolicy | undefined;
  /** Refuses calls of tools that are not as they were when they were approved. @default no tool is refused */
  readonly pin?: PinOptions | undefined;
  /** Hears, whenever tools were listed, of those that a pin refuses. @default nobody does */
  readonly onDefinitionChange?: ((change: DefinitionChange) => void) | undefined;
  /** Tells which tools to import, by exact name. @default all */
  readonly filter?: ((toolName: string, operation: AnyOperation) => boolean) | undefined;
  /** Hears what the server logs. @default nobody does */
  readonly onLog?: ((log: ServerLog) => void) | undefined;
  /** Gives the metadata of a call that goes to the server; `traceparent` and `tracestate` in it are sent. @default the caller's */
  readonly propagate?: ((metadata: Metadata) => Metadata) | undefined;
  /** Hears of what could not be used as it is. @default console.warn */
  readonly onWarning?: ((message: string, cause?: unknown) => void) | undefined;
  /** Bounds on what the server may list. @default IMPORT_LIMITS */
  readonly limits?: Partial<ImportLimits> | undefined;
}

/** Completes the limits given; one that is no positive integer is a `TypeError`. */
export function toImportLimits(given?: Partial<ImportLimits>): ImportLimits {
  return completeLimits(IMPORT_LIMITS, given, notPositive);
}
