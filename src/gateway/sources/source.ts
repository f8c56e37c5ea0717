import type { CallCounters, CallObserver } from "../../call/call-observer.ts";
import type { FailedCallsOptions, FailedCallsPage } from "../../call/call-options.ts";
import type { Metadata, OperationContext } from "../../core/operation/operation-context.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { ChangeListener, RegistryChange } from "../../core/registry/executor.ts";
import type { SecretMask } from "../../core/secrets/secret-mask.ts";
import type { OnWire } from "../../mcp/channels/channel.ts";
import type { ReconnectOptions } from "../../mcp/client/connection-options.ts";
import type { ServerLog } from "../../mcp/provider.ts";
import type { CallerLogins } from "../callers/caller-logins.ts";
import type { LoadedConfig } from "../config/loaded-config.ts";
import type { ChangedTool } from "../lock/changed-tools.ts";
import type { DownCause } from "./down-cause.ts";
import type { Wording } from "./shown-text.ts";
import type { SourceProvider } from "./source-provider.ts";

/** What is noted of a pattern of modules that leads to none. */
export const NO_FILE_NOTE = "No file is found by it.";

/** Where operations come from. */
export type SourceKind = "local" | "mcp" | "openapi" | "bus";

/** How a source is doing; times are Unix epoch milliseconds. */
export type SourceState =
  | { readonly status: "connecting" }
  | { readonly status: "up"; readonly since: number }
  /**
   * `reason` is fit to be shown to the operator of the gateway: no secret, nothing a terminal acts on. `cause` is what those who call are
   * told: in our own words, with nothing in it that comes from elsewhere.
   */
  | {
      readonly status: "down";
      readonly since: number;
      readonly reason: string;
      readonly cause?: string;
      /** Why, for programs; absent where that is not known. */
      readonly why?: DownCause;
      readonly retryAt?: number;
      /** What a person has to do first. */
      readonly wants?: "login";
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
  /** How many can be called: what policies left of those that are offered. */
  readonly operations: number;
  /** How many the source offers, before policies. */
  readonly offered: number;
  /** What could not be imported, and why. */
  readonly unusable: readonly { readonly name: string; readonly reason: string }[];
  /** What was taken over less than whole. */
  readonly notes: readonly { readonly name: string; readonly note: string }[];
  /** Milliseconds that the last successful start took. */
  readonly startMs?: number;
  /** That a person has to log in before it can be used. */
  readonly login?: "wanted";
  /** The revision of MCP in use. */
  readonly protocol?: string;
  /** What the server or document calls itself. */
  readonly title?: string;
  readonly version?: string;
  /** The last lines of a process on standard error, oldest first, cleaned and without secrets; absent while the source is up. */
  readonly stderr?: readonly string[];
  /** Tools that are not as they were approved; empty where all are, absent where the source is not locked. */
  readonly changed?: readonly ChangedTool[];
  /** How calls over the bus fare; absent for other sources, and before it is there. */
  readonly bus?: BusReport;
}

/** What one end of a bus has counted, and whom its calls keep away from now. */
export interface BusReport {
  readonly counters: CallCounters;
  readonly membersLeftOut: number;
  readonly openCircuits: number;
}

/** Durable calls that have failed and are not tried again by themselves, of all callers: for operators alone. */
export interface FailedCalls {
  /** The oldest first. */
  list(options?: FailedCallsOptions): Promise<FailedCallsPage>;
  /** Makes one anew, with the input it had, for whom it was of; twice in a short time gives the same call. */
  resend(requestId: string): Promise<{ readonly requestId: string }>;
}

/**
 * Operations from one place, whatever becomes of it: a source that cannot be reached is down, says why, and is tried again with
 * backoff. Nothing here rejects because the server, API or module of a source failed.
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
  /** Durable calls to it that have failed, for an operator; nothing where it keeps none. */
  readonly failedCalls?: FailedCalls | undefined;
  /** Starts it; resolves when the first attempt has ended, whichever way. */
  start(): Promise<void>;
  /** Tries at once what would be tried later; of what is up, an MCP server is connected to anew, and the rest lists again. Resolves when that has ended. */
  retry(): Promise<void>;
  report(): SourceReport;
  /** Hears of changes to `operations`; returns how to stop. */
  onChange(listener: ChangeListener): () => void;
  /** Hears of every change of `state`, and of what is reported while operations stay the same; returns how to stop. */
  onState(listener: (state: SourceState) => void): () => void;
  /** Lets calls under way end, for up to `timeoutMs`, then ends its server, API or module; no process stays behind. */
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

/** A source that cannot work as it is configured: it is not tried again by itself. */
export class SourceFault extends Error {
  override readonly name = "SourceFault";
}

/** Runs what checks or makes something from a config: what cannot work as it is configured is no better the next time. */
export function asFault<T>(make: () => T): T {
  try {
    return make();
  } catch (thrown) {
    if (!(thrown instanceof TypeError)) throw thrown;
    throw new SourceFault(thrown.message, { cause: thrown });
  }
}

/** What a source is made of. */
export interface SourcePlan {
  readonly name: string;
  readonly kind: SourceKind;
  readonly target: string;
  readonly secrets: SecretMask;
  /** Times between attempts. @default 500 ms, doubled up to 30 s */
  readonly reconnect?: ReconnectOptions | undefined;
  readonly provider?: SourceProvider | undefined;
  /** Whether trying again what is up makes it anew, rather than listing it again. @default false */
  readonly isMadeAnew?: boolean | undefined;
  /** What is said of it and of its calls in better words. @default nothing */
  readonly wording?: Wording | undefined;
  /** Hears what a call failed with, and gives what is told of it; must not throw. @default the same */
  readonly review?: ((thrown: unknown, context: OperationContext) => unknown) | undefined;
  /** Whether words of other sources that come with its errors are passed on. @default true */
  readonly said?: boolean | undefined;
  /** Never throws. */
  warn(message: string, cause?: unknown): void;
  /** Connects the source; leaves nothing open where that fails, or soon after the signal. */
  open(signal: AbortSignal, watcher: BackingWatcher): Promise<Backing>;
  /** Hears of every change of the source's state, before anybody else. */
  onState?(state: SourceState): void;
}

/** What is known of the backing of a source. */
export type BackingFacts = Pick<SourceReport, "unusable" | "notes"> &
  Partial<Pick<SourceReport, "protocol" | "title" | "version" | "changed" | "bus" | "login">>;

/** The backing of a source: what its operations call, once it is connected. */
export interface Backing {
  readonly operations: readonly AnyOperation[];
  readonly failedCalls?: FailedCalls | undefined;
  facts(): BackingFacts;
  /** Hears that `operations` or facts may be others now. */
  onChange(listener: () => void): void;
  /** Lists again; rejects where that cannot be, and everything stays as it was. */
  refresh(): Promise<void>;
  /** Ends it; hears and tells nothing more. */
  close(): Promise<void>;
}

/** What a backing tells of itself after it was opened, where it mends itself. */
export interface BackingWatcher {
  /** It is lost, and makes itself again. */
  down(reason: unknown, retryAt?: number): void;
  /** It is back. */
  up(): void;
  /** Resolves once no call runs, or when the time is up. */
  idle(timeoutMs: number): Promise<void>;
}

/**
 * Waits for something that cannot be told to stop, or for the signal, whichever is first; what comes too late is handed to `discard`.
 * Rejects with the signal's reason.
 */
export async function unlessAborted<T>(
  coming: Promise<T>,
  signal: AbortSignal,
  discard: (late: T) => Promise<unknown> | undefined,
): Promise<T> {
  let stop: () => void = () => {};
  const aborted = new Promise<never>((_, reject) => {
    const leave = (): void => reject(signal.reason);
    stop = () => signal.removeEventListener("abort", leave);
    signal.addEventListener("abort", leave, { once: true });
    if (signal.aborted) leave();
  });
  try {
    return await Promise.race([coming, aborted]);
  } catch (thrown) {
    if (signal.aborted) {
      coming.then(discard).catch(() => {
        // Nobody wants it any more.
      });
    }
    throw thrown;
  } finally {
    stop();
  }
}

/** What `createSources` may be told. */
export interface SourcesOptions {
  /** Hears what is odd, one line each, with the name of the source and without secrets. @default nobody does */
  readonly onWarning?: ((message: string, cause?: unknown) => void) | undefined;
  /** Observes calls of operations on the bus. @default nobody does */
  readonly onBusCall?: CallObserver | undefined;
  /** Gives the metadata of calls that go to MCP servers and over the bus, with the trace they belong to. @default the caller's */
  readonly propagate?: ((metadata: Metadata) => Metadata) | undefined;
  /** Hears what MCP servers log, each with the name of its source, as they said it: it may hold secrets. @default nobody does */
  readonly onServerLog?: ((source: string, log: ServerLog) => void) | undefined;
  /** Makes what a connection to a source tells what passes over it with. @default nobody hears of it */
  readonly wireOf?: ((source: string) => OnWire) | undefined;
  /** Times between attempts to reach a source. @default 500 ms, doubled up to 30 s */
  readonly reconnect?: ReconnectOptions | undefined;
  /** What callers have of their own. @default sources that are asked as each caller refuse their calls */
  readonly logins?: CallerLogins | undefined;
}

/** What every kind of source is made with. */
export interface SourceContext {
  readonly loaded: LoadedConfig;
  readonly reconnect: ReconnectOptions | undefined;
  readonly onBusCall: CallObserver | undefined;
  readonly propagate: SourcesOptions["propagate"];
  readonly onServerLog: SourcesOptions["onServerLog"];
  readonly wireOf: SourcesOptions["wireOf"];
  readonly logins: CallerLogins;
  /** Makes a line of a text that is fit to be shown. */
  shown(text: string, most?: number): string;
  /** Tells what is odd about one source; never throws. */
  warnerOf(name: string): (message: string, cause?: unknown) => void;
}
