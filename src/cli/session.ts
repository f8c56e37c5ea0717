import { safeLine } from "../core/text/safe-text.ts";
import type { GatewayConfig } from "../gateway/config/gateway-config.ts";
import type { LoadedConfig } from "../gateway/config/loaded-config.ts";
import { sourceNames } from "../gateway/config/source-names.ts";
import type { Gateway } from "../gateway/gateway.ts";
import { CommandError, EXIT, type Io } from "./io.ts";
import { spelledCommand } from "./spelled-command.ts";
import { gatewayBase, targetConfig, tokenVariable } from "./target-config.ts";
import { withProgress } from "./terminal/progress.ts";

/** Where the operations of a command come from; the flags that most commands share. */
export interface SourceFlags {
  /** A config file. @default the nearest `waybill.config.*`, and without one the embedded default */
  readonly config?: string | undefined;
  /** One MCP server instead: an address, or a command line. */
  readonly mcp?: string | undefined;
  /** One OpenAPI document instead: a path or an address. */
  readonly openapi?: string | undefined;
  /** Where the API of `--openapi` is. @default where the document says */
  readonly baseUrl?: string | undefined;
  /** Lets the API of `--openapi` be at a private address that the document names. @default false */
  readonly allowPrivate?: boolean | undefined;
  /** A running gateway instead. */
  readonly url?: string | undefined;
  /** The environment variable that holds the token for `--url`, `--mcp` or `--openapi`. @default WAYBILL_TOKEN for `--url` */
  readonly tokenEnv?: string | undefined;
  /** The token itself, for programs, or `""` for none: no flag gives it, because others can see command lines. */
  readonly token?: string | undefined;
}

/** What a config was made of. */
export interface ReadTarget {
  readonly loaded: LoadedConfig;
  readonly kind: "config" | "target" | "embedded";
  /** Whether the one target is a running gateway. @default false */
  readonly isGateway?: boolean;
  /** Where the embedded default keeps its state. */
  readonly stateFile?: string;
  /** Reads it again; nothing for what came from no file. */
  reload?(): Promise<LoadedConfig>;
  close(): Promise<void>;
}

/** What a command works on. */
export interface Session extends Omit<ReadTarget, "reload"> {
  readonly gateway: Gateway;
  /** Ends it; nothing stays behind. */
  close(): Promise<void>;
}

/** How a session is opened. */
export interface SessionOptions {
  /** Only the source this operation belongs to is mounted, which is faster. @default all */
  readonly forOperation?: string | undefined;
  /** Milliseconds after which it goes on with the sources that have come up. @default when all were tried */
  readonly patienceMs?: number | undefined;
}

/** How a target is read. */
interface ReadTargetOptions {
  /** Which sources of the embedded default are started. @default all */
  readonly only?: ((config: GatewayConfig) => (name: string) => boolean) | undefined;
  /** Whether stderr is told which config is used, before it is; `--quiet` silences it. @default true */
  readonly isTold?: boolean | undefined;
}

/** Reads what the flags name: a config file, one target, or the embedded default. */
export async function readTarget(
  io: Io,
  flags: SourceFlags,
  { only, isTold = true }: ReadTargetOptions = {},
): Promise<ReadTarget> {
  const target = targetConfig(io, flags);
  const { env, cwd } = io;
  if (target !== undefined) {
    const { loadConfigObject } = await import("../gateway/config/read-config.ts");
    const read = await loadConfigObject(target, { baseDir: cwd, env });
    const authHint = tokenHint(io, flags);
    const privateHint = flags.openapi === undefined ? {} : { privateHint: "give --allow-private" };
    const loaded = { ...read, authHint, ...privateHint };
    return { loaded, kind: "target", isGateway: flags.url !== undefined, close: async () => {} };
  }
  const path = await configPath(io, flags);
  if (path === undefined) return readEmbedded(io, only);
  if (isTold && !io.quiet) io.stderr.write(`waybill: using ${safeLine(path, 1_000)}\n`);
  const { loadConfig } = await import("../gateway/config/read-config.ts");
  const reload = () => loadConfig(path, { env });
  return { loaded: await reload(), kind: "config", reload, close: async () => {} };
}

/** What to do where nobody is let in: without a token, and with one that is not taken. */
function tokenHint(io: Io, flags: SourceFlags): string {
  const other = "Name the variable that holds a token with --token-env NAME.";
  if (flags.token !== undefined) return flags.token === "" ? other : "The token was refused.";
  const name = tokenVariable(flags);
  if (name === undefined || (io.env[name] ?? "") === "") return other;
  return `The token in ${safeLine(name, 80)} was refused: it is wrong, expired, or of another gateway or API.`;
}

async function configPath(io: Io, flags: SourceFlags): Promise<string | undefined> {
  if (flags.config === undefined) {
    const { findConfig } = await import("../gateway/config/find-config.ts");
    return findConfig(io.cwd);
  }
  const [{ resolve }, { stat }] = await Promise.all([import("node:path"), import("node:fs/promises")]);
  const path = resolve(io.cwd, flags.config);
  const facts = await stat(path).catch(() => undefined);
  if (facts === undefined)
    throw new CommandError(`The config "${safeLine(flags.config, 200)}" does not exist.`);
  if (!facts.isFile()) throw new CommandError(`The config "${safeLine(flags.config, 200)}" is no file.`);
  return path;
}

async function readEmbedded(
  io: Io,
  only: ((config: GatewayConfig) => (name: string) => boolean) | undefined,
): Promise<ReadTarget> {
  const { openEmbedded } = await import("../gateway/embedded/embedded-config.ts");
  const onWarning = (message: string): void => {
    if (!io.quiet) io.stderr.write(`waybill: ${safeLine(message)}\n`);
  };
  const names: GatewayConfig = { mcpServers: { depot: {} }, openapi: { tariff: { document: "" } } };
  const opened = await openEmbedded({ env: io.env, onWarning, ...(only && { only: only(names) }) });
  return { loaded: opened.loaded, kind: "embedded", stateFile: opened.stateFile, close: opened.close };
}

/** Reads the config and mounts its sources, with progress on stderr; throws a `CommandError` for what cannot be used. */
export async function openSession(
  io: Io,
  flags: SourceFlags,
  options: SessionOptions = {},
): Promise<Session> {
  const { forOperation } = options;
  // That one calls operations of the others, which the embedded default starts only where they are needed.
  const isAlone = forOperation !== undefined && forOperation !== "parcel.plan";
  const choose = isAlone ? (config: GatewayConfig) => sourcesFor(forOperation, config) : undefined;
  const target = await readTarget(io, flags, { only: choose });
  try {
    const { createGateway } = await import("../gateway/gateway.ts");
    const gateway = await createGateway(target.loaded, {
      // One target is all there is, under whatever name its operations are asked for.
      startNow: target.kind === "target" ? undefined : choose?.(target.loaded.config),
      onWarning: (message) => {
        if (io.verbose) io.stderr.write(`waybill: ${safeLine(message)}\n`);
      },
    });
    const session: Session = {
      ...target,
      gateway,
      close: async () => {
        await gateway.close().finally(() => target.close());
      },
    };
    await untilAttempted(io, session, { ...options, url: flags.url }).catch(async (thrown: unknown) => {
      await session.close();
      throw thrown;
    });
    return session;
  } catch (thrown) {
    await target.close();
    throw thrown;
  }
}

/**
 * The sources an operation may come from: the one named like its namespace, else local modules and the bus, which hold several
 * namespaces. A source that keeps the ids of others holds any.
 */
export function sourcesFor(operationId: string, config: GatewayConfig): (name: string) => boolean {
  const dot = operationId.indexOf(".");
  if (dot === -1) return () => true;
  const namespace = operationId.slice(0, dot);
  const keepIds = new Map<string, boolean>();
  for (const [place, name] of sourceNames(config)) {
    const [kind, key] = [place.slice(0, place.indexOf(".")), place.slice(place.indexOf(".") + 1)];
    const entry = kind === "openapi" ? config.openapi?.[key] : config.mcpServers?.[key];
    keepIds.set(name, entry?.keepIds === true);
  }
  const isNamed = keepIds.has(namespace);
  return (name) => name === namespace || (keepIds.get(name) ?? !isNamed);
}

/** How long is waited, and for whom. */
interface Waiting extends SessionOptions {
  /** The running gateway that was named. */
  readonly url: string | undefined;
}

/** Waits until every source was tried once; a single target that cannot be reached is the end of the command. */
async function untilAttempted(io: Io, { gateway, kind }: Session, waiting: Waiting): Promise<void> {
  const { patienceMs, url } = waiting;
  const patience = new Promise<void>((done) => {
    if (patienceMs !== undefined) setTimeout(done, patienceMs);
  });
  const late = () => gateway.sources.filter(({ state }) => state.status === "connecting");
  await withProgress(io, `connecting ${namesOf(late())}`, async (update) => {
    const stop = gateway.onSources(() => update(`connecting ${namesOf(late())}`));
    await untilAborted(io.signal, Promise.race([gateway.ready, patience])).finally(stop);
  });
  const [source] = gateway.sources;
  if (kind === "target" && source?.state.status === "down")
    throw new CommandError(safeLine(whyDown(io, source.state.reason, url), 1_000), EXIT.callError);
}

/** Of a gateway it is of no interest which of its documents was asked for. */
function whyDown(io: Io, reason: string, url: string | undefined): string {
  if (url === undefined) return reason;
  const address = gatewayBase(url);
  if (/ cannot be reached\.?$/.test(reason))
    return `No gateway answers at ${address}; "${spelledCommand(io)} serve" starts one.`;
  if (/ answered 404\.?$/.test(reason)) return `What answers at ${address} is no gateway that serves HTTP.`;
  return reason;
}

/** Waits for work, but no longer than until the signal. */
async function untilAborted<T>(signal: AbortSignal | undefined, work: Promise<T>): Promise<T> {
  if (signal === undefined) return work;
  let onAbort = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
  return Promise.race([work, aborted]).finally(() => signal.removeEventListener("abort", onAbort));
}

function namesOf(sources: readonly { readonly name: string }[]): string {
  const names = sources.map(({ name }) => name);
  return names.length > 4 ? `${names.slice(0, 4).join(", ")} and ${names.length - 4} more` : names.join(", ");
}
