import type { Identity } from "../../core/access/identity.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { safeLine } from "../../core/text/clean-text.ts";
import type { GatewayConfig } from "../../gateway/config/gateway-config.ts";
import { type LoadedConfig, sourceNames } from "../../gateway/config/loaded-config.ts";
import type { Gateway } from "../../gateway/gateway.ts";
import type { SourceState } from "../../gateway/sources/source.ts";
import { CommandError, EXIT, type Io } from "../io.ts";
import { spelledCommand } from "../pasted-command.ts";
import { withProgress } from "../terminal/progress.ts";
import { ownerFor, ownerOfAll } from "./owner-identity.ts";
import {
  type RemoteAddress,
  RemoteFault,
  type RemoteOptions,
  type SessionGateway,
} from "./remote-gateway.ts";
import { assertSourceNames, gatewayBase, targetConfig, tokenOf, tokenVariable } from "./target-config.ts";

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
  /** Milliseconds that the command may take. @default as each command says */
  readonly timeout?: number | undefined;
  /** Uses none but these sources, by name. @default all */
  readonly source?: readonly string[] | undefined;
  /** False with `--no-gateway`: a gateway that runs for the config is not used. @default true */
  readonly gateway?: boolean | undefined;
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
export interface Session extends Pick<ReadTarget, "kind" | "isGateway"> {
  readonly gateway: SessionGateway;
  /** Whether it is a gateway that runs elsewhere, and goes on. @default false */
  readonly isRunning?: boolean;
  /** What is odd in the config. */
  readonly warnings: readonly string[];
  /** Who calls an operation here; of a gateway that runs elsewhere it is asked there. */
  identityFor(operation: AnyOperation): Identity | undefined;
  /** Hides the secrets of the config in a text. */
  mask(text: string): string;
  /** Ends it; nothing stays behind. */
  close(): Promise<void>;
}

/** How a session is opened. */
export interface SessionOptions {
  /** Only the source this operation belongs to is mounted, which is faster. @default all */
  readonly forOperation?: string | undefined;
  /** Whether all is needed that is known of every operation, schemas included. @default false */
  readonly whole?: boolean | undefined;
  /** Milliseconds after which it goes on with the sources that have come up. @default when all were tried */
  readonly patienceMs?: number | undefined;
}

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
    const { loadConfigObject } = await import("../../gateway/config/read-config.ts");
    const read = await loadConfigObject(target, { baseDir: cwd, env });
    const authHint = tokenHint(io, flags);
    const privateHint = flags.openapi === undefined ? {} : { privateHint: "give --allow-private" };
    const loaded = { ...read, authHint, ...privateHint };
    return { loaded, kind: "target", isGateway: flags.url !== undefined, close: async () => {} };
  }
  const path = await configPath(io, flags);
  if (path === undefined) return readEmbedded(io, only);
  if (isTold && !io.quiet) io.stderr.write(`waybill: using ${safeLine(path, 1_000)}\n`);
  const { loadConfig } = await import("../../gateway/config/read-config.ts");
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
    const { findConfig } = await import("../../gateway/config/config-files.ts");
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
  const { openEmbedded } = await import("../../gateway/embedded/embedded-config.ts");
  const onWarning = (message: string): void => {
    if (!io.quiet) io.stderr.write(`waybill: ${safeLine(message)}\n`);
  };
  const names: GatewayConfig = { mcpServers: { depot: {} }, openapi: { tariff: { document: "" } } };
  const opened = await openEmbedded({ env: io.env, onWarning, ...(only && { only: only(names) }) });
  return { loaded: opened.loaded, kind: "embedded", stateFile: opened.stateFile, close: opened.close };
}

/**
 * Opens what the flags name: a running gateway, or the sources of a config, mounted here with progress on stderr. Throws a `CommandError`
 * for what cannot be used.
 */
export async function openSession(
  io: Io,
  flags: SourceFlags,
  options: SessionOptions = {},
): Promise<Session> {
  const named = flags.url === undefined ? undefined : await openNamedGateway(io, flags, options);
  if (named !== undefined) return named;
  const { forOperation } = options;
  // That one calls operations of the others, which the embedded default starts only where they are needed.
  const isAlone = forOperation !== undefined && forOperation !== "parcel.plan";
  const choose = (config: GatewayConfig): ((name: string) => boolean) | undefined => {
    const wanted = flags.source && chosenSources(config, flags.source);
    const needed = isAlone ? sourcesFor(forOperation, config) : undefined;
    if (wanted === undefined) return needed;
    return (name) => wanted.has(name) && needed?.(name) !== false;
  };
  const isTold = flags.gateway === false;
  const target = await readTarget(io, flags, { only: (config) => choose(config) ?? (() => true), isTold });
  try {
    if (target.kind === "config" && !isTold) {
      const running = await openRunningGateway(io, target.loaded, { ...options, sources: flags.source });
      if (running !== undefined) return running;
      tellConfig(io, target.loaded);
    }
    const { createGateway } = await import("../../gateway/gateway.ts");
    const gateway = await createGateway(target.loaded, {
      // One target is all there is, under whatever name its operations are asked for.
      startNow: target.kind === "target" ? undefined : choose(target.loaded.config),
      onWarning: (message) => {
        if (io.verbose) io.stderr.write(`waybill: ${safeLine(message)}\n`);
      },
    });
    const close = async (): Promise<void> => {
      await gateway.close().finally(() => target.close());
    };
    await untilAttempted(io, gateway, { ...options, kind: target.kind, url: flags.url }).catch(
      async (thrown: unknown) => {
        await close();
        throw thrown;
      },
    );
    return sessionOf(target, gateway, close);
  } catch (thrown) {
    await target.close();
    throw thrown;
  }
}

function sessionOf(target: ReadTarget, gateway: Gateway, close: () => Promise<void>): Session {
  const { loaded, kind, isGateway } = target;
  const identityFor = (operation: AnyOperation): Identity | undefined =>
    ownerFor(operation, { gateway, loaded });
  return {
    kind,
    ...(isGateway !== undefined && { isGateway }),
    gateway: {
      executor: gateway.executor as SessionGateway["executor"],
      get sources() {
        return gateway.sources;
      },
      sourceOf: (id) => gateway.sourceOf(id),
      reports: () => gateway.reports(),
      readLink: (name, uri) => {
        const provider = gateway.sources.find((source) => source.name === name)?.provider;
        const identity = ownerOfAll({ gateway, loaded });
        return Promise.resolve(provider?.readResource(uri, { ...(identity !== undefined && { identity }) }));
      },
    },
    warnings: loaded.warnings,
    identityFor,
    mask: (text) => loaded.secrets.mask(text),
    close,
  };
}

function tellConfig(io: Io, { path }: LoadedConfig): void {
  if (path !== undefined && !io.quiet) io.stderr.write(`waybill: using ${safeLine(path, 1_000)}\n`);
}

/** The names of the sources that are wanted; one that the config has not is a `CommandError`. */
export function chosenSources(config: GatewayConfig, names: readonly string[]): ReadonlySet<string> {
  const bus = config.bus === undefined && !names.includes("bus") ? [] : ["bus"];
  assertSourceNames(names, [...sourceNames(config).values(), "local", ...bus]);
  return new Set(names);
}

/** Speaks to the gateway of `--url` as what it is; nothing where what is there only has a document. */
async function openNamedGateway(
  io: Io,
  flags: SourceFlags,
  options: SessionOptions,
): Promise<Session | undefined> {
  // Says what is wrong with the flags.
  targetConfig(io, flags);
  const base = gatewayBase(flags.url ?? "");
  const address = { base, token: tokenOf(io, flags), signal: io.signal };
  try {
    return await openRemote(io, address, { ...options, sources: flags.source });
  } catch (thrown) {
    if (!(thrown instanceof RemoteFault)) throw thrown;
    if (thrown.status === 0)
      throw new CommandError(
        `No gateway answers at ${base}; "${spelledCommand(io)} serve" starts one.`,
        EXIT.callError,
      );
    if (thrown.status === 401)
      throw new CommandError(`The gateway at ${base} answered 401. ${tokenHint(io, flags)}`, EXIT.callError);
    return undefined;
  }
}

/** Uses a gateway that runs for the config, where there is one that proves it. */
async function openRunningGateway(
  io: Io,
  loaded: LoadedConfig,
  options: RemoteOptions,
): Promise<Session | undefined> {
  const { findRunning } = await import("./running-gateway.ts");
  const found = await findRunning(io.env, loaded);
  if (found === undefined) return undefined;
  const session = await openRemote(io, { ...found, signal: io.signal }, options).catch((thrown: unknown) => {
    if (thrown instanceof RemoteFault) return undefined;
    throw thrown;
  });
  if (session === undefined) return undefined;
  if (!io.quiet)
    io.stderr.write(
      `waybill: using ${safeLine(loaded.path ?? "", 1_000)}, by the gateway that runs for it (process ${found.pid}); --no-gateway starts its sources here\n`,
    );
  return { ...session, warnings: loaded.warnings };
}

async function openRemote(io: Io, address: RemoteAddress, options: RemoteOptions): Promise<Session> {
  const { openRemoteGateway } = await import("./remote-gateway.ts");
  const gateway = await withProgress(io, `asking ${address.base}`, () => openRemoteGateway(address, options));
  return {
    kind: "config",
    isRunning: true,
    gateway,
    warnings: [],
    identityFor: () => undefined,
    mask: (text) => text,
    close: async () => {},
  };
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
  readonly kind: ReadTarget["kind"];
  /** The running gateway that was named. */
  readonly url: string | undefined;
}

/** Waits until every source was tried once; a single target that cannot be reached is the end of the command. */
async function untilAttempted(io: Io, gateway: Gateway, waiting: Waiting): Promise<void> {
  const { patienceMs, url, kind } = waiting;
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<void>((done) => {
    if (patienceMs !== undefined) timer = setTimeout(done, patienceMs);
  });
  const late = () => gateway.sources.filter(({ state }) => state.status === "connecting");
  await withProgress(io, `connecting ${namesOf(late())}`, async (update) => {
    const stop = gateway.onSources(() => update(`connecting ${namesOf(late())}`));
    await untilAborted(io.signal, Promise.race([gateway.ready, patience])).finally(() => {
      clearTimeout(timer);
      stop();
    });
  });
  const [source] = gateway.sources;
  if (kind === "target" && source?.state.status === "down")
    throw new CommandError(safeLine(whyDown(io, source.state, url), 1_000), EXIT.callError);
}

type DownState = Extract<SourceState, { readonly status: "down" }>;

/** Of a gateway it is of no interest which of its documents was asked for. */
function whyDown(io: Io, { reason, why }: DownState, url: string | undefined): string {
  if (url === undefined) return reason;
  const address = gatewayBase(url);
  if (why?.kind === "unreachable" || why?.kind === "host")
    return `No gateway answers at ${address}; "${spelledCommand(io)} serve" starts one.`;
  if (why?.kind === "status" && why.value === 404)
    return `What answers at ${address} is no gateway that serves HTTP.`;
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
