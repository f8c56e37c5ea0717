import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { ChangeListener, RegistryChange } from "../../core/registry/executor.ts";
import type { ChangedTool } from "../lock/changed-tools.ts";
import type { SourceProvider } from "./source-provider.ts";

/** Where operations come from. */
export type SourceKind = "local" | "mcp" | "openapi" | "bus";

/** How a source is doing; times are Unix epoch milliseconds. */
export type SourceState =
  | { readonly status: "connecting" }
  | { readonly status: "up"; readonly since: number }
  /**
   * `reason` is fit to be shown to whoever runs the gateway: no secret, nothing a terminal acts on. `cause` is what those who call are
   * told: in our own words, with nothing in it that comes from elsewhere.
   */
  | {
      readonly status: "down";
      readonly since: number;
      readonly reason: string;
      readonly cause?: string;
      readonly retryAt?: number;
    }
  | { readonly status: "disabled" }
  | { readonly status: "closed" };

/** What is told about a source: plain data, fit to be shown. */
export interface SourceReport {
  readonly name: string;
  readonly kind: SourceKind;
  /** The command, the address or the files, without secrets. */
  readonly target: string;
  readonly state: SourceState;
  readonly operations: number;
  /** What could not be imported, and why. */
  readonly unusable: readonly { readonly name: string; readonly reason: string }[];
  /** What was taken over less than whole. */
  readonly notes: readonly { readonly name: string; readonly note: string }[];
  /** Milliseconds that the last successful start took. */
  readonly startMs?: number;
  /** The revision of MCP in use. */
  readonly protocol?: string;
  /** What the server or document calls itself. */
  readonly title?: string;
  readonly version?: string;
  /** Tools that are not as they were approved; empty where all are, absent where the source is not locked. */
  readonly changed?: readonly ChangedTool[];
}

/**
 * Operations from one place, whatever becomes of it: a source that cannot be reached is down, says why, and is tried again with
 * backoff. Nothing here rejects because of what stands behind a source.
 */
export interface Source {
  /** The namespace of its operations; local and bus sources hold several, and have a name of their own. */
  readonly name: string;
  readonly kind: SourceKind;
  readonly state: SourceState;
  /** Those known now; the last known ones while the source is down. */
  readonly operations: readonly AnyOperation[];
  /** What an MCP server offers besides tools: the same object for as long as the source lives, with nothing in it while down. */
  readonly provider?: SourceProvider;
  /** Starts it; resolves when the first attempt has ended, whichever way. */
  start(): Promise<void>;
  /** Tries at once what would be tried later; of what is up, an MCP server is connected to anew, and the rest lists again. Resolves when that has ended. */
  retry(): Promise<void>;
  report(): SourceReport;
  /** Hears of changes to `operations`; returns how to stop. */
  onChange(listener: ChangeListener): () => void;
  /** Hears of every change of `state`, and of what is reported while operations stay the same; returns how to stop. */
  onState(listener: (state: SourceState) => void): () => void;
  /** Lets calls under way end, for up to `timeoutMs`, then ends what stands behind it; no process stays behind. */
  close(options?: { /** @default 0 */ readonly timeoutMs?: number }): Promise<void>;
}

/** What has become other between two sets of operations, by id; the same object is the same operation. */
export function operationChanges(
  before: ReadonlyMap<string, AnyOperation>,
  now: ReadonlyMap<string, AnyOperation>,
): readonly RegistryChange[] {
  const changes: RegistryChange[] = [];
  for (const [id, operation] of before) if (!now.has(id)) changes.push({ type: "removed", operation });
  for (const [id, operation] of now) {
    const known = before.get(id);
    if (known !== operation) changes.push({ type: known === undefined ? "added" : "replaced", operation });
  }
  return changes;
}
