import type { Identity } from "../../core/access/identity.ts";
import type { CallError } from "../../core/errors/errors.ts";
import { checkOptionsObject, describeValue } from "../../core/options/check-options.ts";
import type { ResultFormat } from "../../core/result/result-format.ts";
import type { McpProviderOptions } from "../provider.ts";
import type { ToolTableOptions } from "./describe-tool.ts";
import type { McpServerLimits, McpServerOptions } from "./mcp-server-options.ts";
import type { PeerRequest } from "./peer-request.ts";
import { plainFormat } from "./plain-format.ts";
import { invalidParams, quoted } from "./protocol-errors.ts";
import { RunningCalls } from "./running-calls.ts";
import type { GivenResults, StoredResults } from "./stored-results.ts";
import { type ServedExecutor, ToolTable } from "./tool-table.ts";

/** The key of a request's `_meta` under which a client names the format it wants. */
export const FORMAT_META_KEY = "dev.waybill/format";

/** Bounds with their defaults filled in. */
export type ServerLimits = { readonly [K in keyof McpServerLimits]-?: number };

const DEFAULT_LIMITS: ServerLimits = {
  pageSize: 1_000,
  inlineCharacters: 200_000,
  streamItems: 1_000,
  waitingCalls: 1_000,
  waitingMs: 600_000,
};

/** The longest a timer can wait. */
const MAX_MS = 2 ** 31 - 1;

/** What all peers of one server share of its tools. */
export interface ServedTools {
  readonly executor: ServedExecutor;
  readonly table: ToolTable;
  readonly limits: ServerLimits;
  readonly running: RunningCalls;
  readonly stored: StoredResults | undefined;
  /** Who was given which results that imported servers keep. */
  readonly given: GivenResults;
  /** The blocks of an imported tool's result, with links that lead back to its server. */
  ownLinks<T>(namespace: string, content: readonly T[], options: McpProviderOptions): Promise<readonly T[]>;
  /** The `_meta` of such a result, with addresses of user interfaces that lead back to its server. */
  ownMeta<T>(namespace: string, meta: T): T;
  /** The format a request asks for, or the usual one of its client; throws -32602 for one nobody offers. */
  formatFor(request: PeerRequest): ResultFormat;
  /** How many characters of a result of this operation are sent whole. */
  inlineCharactersOf(operationId: string): number;
  /** Why there is no tool of that name, where that is known. */
  explainMissing(toolName: string, identity: Identity | undefined): CallError | undefined;
}

/** What else tools are served with. */
interface ServedParts
  extends Pick<ServedTools, "stored" | "given" | "ownLinks" | "ownMeta">,
    ToolTableOptions {}

/** Prepares the tools of an executor. */
export function serveTools(
  executor: ServedExecutor,
  options: McpServerOptions,
  { warn, isProvided, ...parts }: ServedParts,
): ServedTools {
  const { format: usual = plainFormat, formats = [], formatOf } = options;
  const limits = readLimits(options.limits);
  const namedFormats = nameFormats(usual, typeof formats === "function" ? formats : () => formats);
  return {
    executor,
    table: new ToolTable(executor, options.names ?? {}, { warn, isProvided }),
    limits,
    running: new RunningCalls(),
    ...parts,
    inlineCharactersOf: (id) => options.inlineCharactersOf?.(id) ?? limits.inlineCharacters,
    explainMissing: (name, identity) => options.explainMissing?.(name, identity),
    formatFor(request) {
      const byName = namedFormats();
      const wanted: unknown = request.meta?.[FORMAT_META_KEY];
      if (wanted === undefined) return byName.get(formatOf?.(request.client) ?? usual.name) ?? usual;
      const format = typeof wanted === "string" ? byName.get(wanted) : undefined;
      if (format !== undefined) return format;
      const known = [...byName.keys()].join(", ");
      const none =
        typeof wanted === "string" ? `There is no format ${quoted(wanted)}` : "A format has a name";
      throw invalidParams(`${none}; ask for one of these in _meta["${FORMAT_META_KEY}"]: ${known}.`);
    },
  };
}

/** The formats there are by name, put together again only when there are others. */
function nameFormats(
  usual: ResultFormat,
  read: () => readonly ResultFormat[],
): () => ReadonlyMap<string, ResultFormat> {
  let known: readonly ResultFormat[] | undefined;
  let byName: ReadonlyMap<string, ResultFormat> = new Map();
  return () => {
    const formats = read();
    if (formats !== known) {
      known = formats;
      byName = new Map([...formats, usual].map((format) => [format.name, format]));
    }
    return byName;
  };
}

/** Fills in defaults; throws a `TypeError` for a bound that is none. */
export function readLimits(given: McpServerLimits = {}): ServerLimits {
  checkOptionsObject(given, Object.keys(DEFAULT_LIMITS), "limits.");
  const limits: Record<string, number> = { ...DEFAULT_LIMITS };
  for (const name of Object.keys(DEFAULT_LIMITS) as (keyof McpServerLimits)[]) {
    const value = given[name];
    if (value === undefined) continue;
    const least = name === "pageSize" ? 1 : 0;
    if (!Number.isSafeInteger(value) || value < least || (name === "waitingMs" && value > MAX_MS)) {
      throw new TypeError(`limits.${name} must be an integer from ${least}, and is ${showBound(value)}.`);
    }
    limits[name] = value;
  }
  return limits as ServerLimits;
}

/** Shows what was given for a bound, texts in quotes. */
export function showBound(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value.slice(0, 80)) : describeValue(value);
}
