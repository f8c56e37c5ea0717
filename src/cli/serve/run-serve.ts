import { readFile, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { safeLine } from "../../core/text/clean-text.ts";
import type { DecidedApproval } from "../../gateway/approvals/approvals.ts";
import { type AuditTrail, openAuditTrail } from "../../gateway/audit/audit-trail.ts";
import type { LogConfig } from "../../gateway/config/gateway-config.ts";
import { ConfigError, isMountedByItself, type LoadedConfig } from "../../gateway/config/loaded-config.ts";
import { createGateway, type Gateway } from "../../gateway/gateway.ts";
import { findFiles } from "../../gateway/glob.ts";
import { unusedPatterns } from "../../gateway/policy/unused-patterns.ts";
import type { ReplicaSummaries } from "../../gateway/replicas/replica-summaries.ts";
import { mcpSettings } from "../../gateway/serve/gateway-mcp.ts";
import type { GatewayLogger } from "../../gateway/serve/observe/logger.ts";
import type { Observer, ReadRecord } from "../../gateway/serve/observe/observer.ts";
import type { Telemetry } from "../../gateway/serve/observe/telemetry.ts";
import { DRAIN_MS, LAME_DUCK_MS } from "../../gateway/serve/serve-settings.ts";
import { toolWeight } from "../../gateway/tool-weight.ts";
import { type FileStamps, stampsOf, watchStamps } from "../../gateway/watch-stamps.ts";
import { NEAREST_LEVELS, type ServerLog } from "../../mcp/provider.ts";
import { releaseInterrupts, takeFaults } from "../interrupts.ts";
import { CommandError, EXIT, type Io } from "../io.ts";
import { emptyLines } from "../list/source-troubles.ts";
import { rememberNames } from "../name-cache.ts";
import { createPastedCommand } from "../pasted-command.ts";
import { type ReadTarget, readTarget, type SourceFlags } from "../session/session.ts";
import { announce, followSources, logWeight, servedFacts } from "./announce.ts";
import { type PersonalPlace, ServedPlaces } from "./served-places.ts";

/** Flags of `waybill serve`. */
export interface ServeFlags extends SourceFlags {
  readonly port?: number;
  readonly host?: string;
  readonly stdio?: boolean;
  /** Milliseconds. @default `serve.lameDuckMs` of the config */
  readonly lameDuck?: number;
  /** False with `--no-inspect`. @default `serve.inspect` of the config */
  readonly inspect?: boolean;
  /** False with `--no-watch`. */
  readonly watch?: boolean;
  readonly logLevel?: NonNullable<LogConfig["level"]>;
  readonly logFormat?: NonNullable<LogConfig["format"]>;
}

/** Sources that take longer are shown as connecting. */
const FIRST_LOOK_MS = 10_000;
const NOTICE_AFTER_MS = 500;
/** A changed config counts as taken over then, though sources may still be starting. */
const TAKEN_OVER_MS = 1_000;

/** What serves, and how it was made. */
interface Serving {
  readonly io: Io;
  readonly flags: ServeFlags;
  readonly target: ReadTarget;
  readonly gateway: Gateway;
  readonly log: GatewayLogger;
  readonly telemetry: Telemetry | undefined;
  readonly audit: AuditTrail | undefined;
  readonly places: ServedPlaces;
  readonly summaries: ReplicaSummaries | undefined;
  readonly isPersonal: boolean;
  readonly releaseFaults: () => void;
  loaded: LoadedConfig;
}

/** Runs `waybill serve`, until a signal or the end of stdin; what it says of itself names the config. */
export function runServe(io: Io, flags: ServeFlags): Promise<number> {
  const read = async (): Promise<ReadTarget> => {
    const target = await readTarget(io, flags, { isTold: false });
    if (!flags.stdio || !isMountedByItself(target.loaded)) return target;
    await target.close();
    throw new CommandError(
      `${safeLine(target.loaded.path ?? "", 1_000)} mounts this gateway in itself. Remove the MCP server that starts it from mcpServers.`,
    );
  };
  return serveTarget(io, flags, { read });
}

/** What is served, and for whom. */
interface ServeTargetOptions {
  /** Reads it. */
  read(): Promise<ReadTarget>;
  /** @default it is for all whom the config lets in */
  readonly personal?: PersonalPlace | undefined;
}

/** Serves something, until a signal or the end of stdin. */
export async function serveTarget(io: Io, flags: ServeFlags, options: ServeTargetOptions): Promise<number> {
  const signals = untilStopped((code) => process.exit(code));
  try {
    const target = withWatching(await options.read(), flags);
    // Before anything is loaded: what changes while it is counts.
    const parts = await followedParts(target, flags);
    const serving = await start(io, flags, { target, personal: options.personal }).catch(
      async (thrown: unknown) => {
        await target.close();
        throw thrown;
      },
    );
    const others = [serving.places.ended, aborted(io.signal)];
    const watch = parts && follow(serving, parts);
    const introduced = introduce(serving).catch((thrown: unknown) => serving.log.error(messageOf(thrown)));
    const why = await Promise.race([signals.stopped, ...others]);
    if (why === "SIGTERM") await lameDuck(serving, others);
    if (typeof why === "string") serving.log.info("stopping", { signal: why });
    watch?.close();
    await stop(serving);
    // It may still write the names of operations into the state folder.
    await introduced;
    return EXIT.ok;
  } finally {
    signals.release();
  }
}

function withWatching(target: ReadTarget, { watch }: ServeFlags): ReadTarget {
  return watch === false ? { ...target, loaded: { ...target.loaded, watchDocuments: false } } : target;
}

function aborted(signal: AbortSignal | undefined): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal?.aborted) resolve(undefined);
    signal?.addEventListener("abort", () => resolve(undefined), { once: true });
  });
}

/** What is started, read by now. */
type Started = Omit<ServeTargetOptions, "read"> & { readonly target: ReadTarget };

async function start(io: Io, flags: ServeFlags, { target, personal }: Started): Promise<Serving> {
  const { createLogger, createObserver, Metrics, createTelemetry } = await loadObserving();
  const { loaded } = target;
  const { env } = io;
  const isTerminal = io.stderr.isTTY === true;
  const log = await createLogger({
    config: logConfig(loaded, flags, io),
    secrets: loaded.secrets,
    env,
    isTerminal,
  });
  // Modules of others run in here: what one of them forgot to catch is no reason to end for everybody.
  const releaseFaults = takeFaults((thrown) => log.error("nobody caught a fault", faultFields(thrown)));
  const onWarning = (message: string, cause?: unknown): void => {
    log.warn(message, cause instanceof Error ? { cause: cause.message } : {});
  };
  const telemetry = await createTelemetry({ env, onWarning });
  // Reports are asked for when metrics are looked at, by which time there is a gateway.
  let gateway: Gateway | undefined;
  const audit = await openAuditTrail(loaded, log).catch((thrown: unknown) => {
    releaseFaults();
    throw new CommandError(messageOf(thrown));
  });
  let places: ServedPlaces | undefined;
  let summaries: ReplicaSummaries | undefined;
  const metrics = new Metrics({
    sources: () => gateway?.reports() ?? [],
    served: () => places?.busCounters,
    audit: () => audit?.status,
    state: () => gateway?.state.report(),
    replicas: () => summaries?.size,
  });
  const sourceOf = (id: string): string | undefined => gateway?.sourceOf(id);
  const observer = createObserver({ log, metrics, telemetry, sourceOf });
  const { busCall: onBusCall } = observer;
  if (audit !== undefined) observer.listen(audit);
  const observers = audit === undefined ? [observer] : [observer, audit.hooks];
  const onServerLog = (source: string, { level, logger, data }: ServerLog): void =>
    log[NEAREST_LEVELS[level]]("server log", { source, ...(logger !== undefined && { logger }), data });
  const propagate = telemetry?.propagate;
  const hears = { onBusCall, propagate, onServerLog, onWarning };
  const onDecided = (decided: DecidedApproval): void => {
    log.info("approval", { ...decided });
    audit?.decided(decided);
  };
  gateway = await createGateway(loaded, { observers, ...hears, onDecided });
  const onRead = (record: ReadRecord): void => {
    log.info(record.event, { ...record });
    audit?.read(record);
  };
  const { replay: onReplay } = observer;
  summaries = personal === undefined ? await openSummaries(gateway, observer) : undefined;
  const around = { metrics, observer, telemetry, personal, summaries, onRead, onReplay, onWarning };
  places = new ServedPlaces(gateway, { io, flags, ...around });
  try {
    await places.open(loaded, target.kind);
  } catch (thrown) {
    releaseFaults();
    await places.close(0);
    await summaries?.close();
    await gateway.close();
    await telemetry?.close();
    await audit?.close();
    throw thrown;
  }
  followSources(gateway, { log, paste: createPastedCommand(io, flags) });
  const isPersonal = personal !== undefined;
  const kept = { telemetry, audit, places, summaries };
  return { io, flags, target, gateway, log, ...kept, isPersonal, releaseFaults, loaded };
}

/** Tells other replicas how this one is doing, where there may be others. */
async function openSummaries(gateway: Gateway, observer: Observer): Promise<ReplicaSummaries | undefined> {
  const { state } = gateway;
  if (state.report().store !== "nats") return undefined;
  const { ReplicaSummaries } = await import("../../gateway/replicas/replica-summaries.ts");
  return new ReplicaSummaries({ state, observer, reports: () => gateway.reports() });
}

async function loadObserving() {
  const [{ createLogger }, { createObserver }, { Metrics }, { createTelemetry }] = await Promise.all([
    import("../../gateway/serve/observe/logger.ts"),
    import("../../gateway/serve/observe/observer.ts"),
    import("../../gateway/serve/observe/metrics.ts"),
    import("../../gateway/serve/observe/telemetry.ts"),
  ]);
  return { createLogger, createObserver, Metrics, createTelemetry };
}

function faultFields(thrown: unknown): Readonly<Record<string, string>> {
  const stack = thrown instanceof Error ? (thrown.stack ?? "") : "";
  const [at] = /^\s+at (?!node:|.*\(node:).*$/m.exec(stack) ?? [];
  return { cause: messageOf(thrown), ...(at !== undefined && { at: at.trim().slice("at ".length) }) };
}

function logConfig({ config }: LoadedConfig, flags: ServeFlags, { quiet }: Pick<Io, "quiet">): LogConfig {
  const { logLevel, logFormat } = flags;
  const { level = "info" } = config.log ?? {};
  const isSaidLess = quiet === true && (level === "debug" || level === "info");
  return {
    ...config.log,
    ...(isSaidLess && { level: "warn" }),
    ...(logLevel !== undefined && { level: logLevel }),
    ...(logFormat !== undefined && { format: logFormat }),
  };
}

/** Says what is served once every source was tried, or after a while. */
async function introduce(serving: Serving): Promise<void> {
  const { io, gateway, target, places, flags, log } = serving;
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, FIRST_LOOK_MS);
    timer.unref();
  });
  const ready = Promise.race([gateway.ready, places.stopping, patience]).finally(() => clearTimeout(timer));
  // No moving line here: the log writes meanwhile.
  const isShown = io.stderr.isTTY === true && !io.quiet && !flags.stdio;
  const notice = setTimeout(() => isShown && io.stderr.write("Starting sources…\n"), NOTICE_AFTER_MS);
  await ready.finally(() => clearTimeout(notice));
  if (places.isStopping) return;
  const { url, isInspected } = places;
  const isTold = isForPeople(serving);
  if (!isTold) {
    for (const warning of serving.loaded.warnings) log.warn(warning);
    const facts = servedFacts({ target, gateway, url, isInspected });
    log.info(url === undefined ? "serving over stdio" : "listening", facts);
  } else if (url !== undefined) log.info("listening", { url });
  const weight = mcpSettings(serving.loaded) && (await toolWeight(gateway, serving.loaded));
  if (places.isStopping) return;
  if (!isTold && weight !== undefined) logWeight(log, weight);
  if (isTold && !io.quiet)
    io.stderr.write(await announce({ io, flags, target, gateway, url, isInspected, weight }));
  await finishMounting(serving);
}

/** Says which patterns fit nothing, and keeps the names for completion; a person may look at a part of the config, which proves neither. */
async function finishMounting(serving: Serving): Promise<void> {
  const { io, flags, gateway, isPersonal } = serving;
  if (isPersonal) return;
  warnUnused(serving);
  await rememberNames(io, flags, { gateway });
}

/** A pattern that matches nothing leaves open what it was to close. */
function warnUnused({ gateway, loaded, log }: Serving): void {
  for (const warning of unusedPatterns(gateway, loaded)) log.warn(warning);
  for (const warning of gateway.reports().flatMap(emptyLines)) log.warn(warning);
}

/** A log in JSON has nothing else between its lines. Where nothing is logged, there is nothing to spoil. */
function isForPeople({ loaded, flags, io }: Serving): boolean {
  const { format, level } = logConfig(loaded, flags, io);
  return format !== "json" || level === "silent";
}

/** What is followed; where it came from no file, or nobody wants it, nothing is. */
async function followedParts(target: ReadTarget, { watch }: ServeFlags): Promise<ConfigParts | undefined> {
  if (target.reload === undefined || watch === false) return undefined;
  return findParts(target.loaded);
}

/** Follows changes of the config. */
function follow(serving: Serving, parts: ConfigParts): ConfigWatch {
  const onFault = (cause: unknown): void => {
    serving.log.error("the config cannot be followed for now", { cause: messageOf(cause) });
  };
  const watch = watchConfig(parts, { onChange: () => reload(serving, watch), onFault });
  return watch;
}

/** Takes over a changed config; one that cannot be used changes nothing. */
async function reload(serving: Serving, watch: ConfigWatch): Promise<void> {
  const { target, gateway, log, places, flags } = serving;
  if (places.isStopping) return;
  try {
    const loaded = await target.reload?.();
    if (loaded === undefined || places.isStopping) return;
    watch.expect(await findParts(loaded));
    log.addSecrets(loaded.secrets);
    // Who may call holds from now on, however long sources take.
    await places.reload(loaded);
    log.setLevel(logConfig(loaded, flags, serving.io).level);
    serving.loaded = loaded;
    // Not waited for: the next change comes when it comes.
    finishReload(serving, gateway.reload(loaded)).catch((thrown) => tellUnusable(serving, thrown));
  } catch (thrown) {
    if (thrown instanceof ConfigError) watch.expectAlso(thrown.files);
    tellUnusable(serving, thrown);
  }
}

async function finishReload(serving: Serving, mounting: Promise<void>): Promise<void> {
  const { gateway, log, places, loaded } = serving;
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, TAKEN_OVER_MS);
  });
  await Promise.race([mounting, patience]).finally(() => clearTimeout(timer));
  if (places.isStopping || serving.loaded !== loaded) return;
  for (const warning of loaded.warnings) log.warn(warning);
  log.info("config taken over", { operations: [...gateway.executor.operations].length, url: places.url });
  await mounting;
  if (!places.isStopping) await finishMounting(serving);
}

function tellUnusable({ log }: Serving, thrown: unknown): void {
  if (!(thrown instanceof ConfigError)) {
    // Callers who lost access stay out, even where the rest of the change could not be taken over.
    log.error(`the changed config is not taken over whole: ${messageOf(thrown)}`);
    return;
  }
  for (const issue of thrown.issues) {
    log.error(`the changed config cannot be used, the old one stays: ${issue}`);
  }
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** Goes on for a while and says that it will not: senders of requests have time to send them elsewhere. */
async function lameDuck(serving: Serving, ends: readonly Promise<undefined>[]): Promise<void> {
  const { flags, loaded, places, isPersonal, log } = serving;
  const ms = flags.lameDuck ?? loaded.config.serve?.lameDuckMs ?? LAME_DUCK_MS;
  if (ms === 0 || flags.stdio || isPersonal) return;
  log.info("leaving", { signal: "SIGTERM", lameDuckMs: ms });
  places.announceClose();
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms);
  });
  await Promise.race([over, ...ends]).finally(() => clearTimeout(timer));
}

/** Lets calls under way end, and then everything else. */
async function stop(serving: Serving): Promise<void> {
  const { places, summaries, gateway, telemetry, audit, target, loaded, log, releaseFaults } = serving;
  const { drainMs = DRAIN_MS } = loaded.config.serve ?? {};
  const until = performance.now() + drainMs;
  await places.close(drainMs);
  await summaries?.close();
  await gateway.close({ timeoutMs: Math.max(0, until - performance.now()) });
  await telemetry?.close();
  await audit?.close();
  await target.close();
  releaseFaults();
  log.info("stopped");
}

const CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

type StopSignal = keyof typeof CODES;

/** Waits for the first signal to stop; a second one exits at once. */
function untilStopped(onSecond: (code: number) => void): {
  readonly stopped: Promise<StopSignal>;
  /** Stops listening. */
  release(): void;
} {
  releaseInterrupts();
  const names = Object.keys(CODES) as StopSignal[];
  let resolve: (name: StopSignal) => void = () => {};
  const stopped = new Promise<StopSignal>((done) => {
    resolve = done;
  });
  let isStopping = false;
  const listener = (name: NodeJS.Signals): void => {
    if (isStopping) onSecond(CODES[name as StopSignal]);
    isStopping = true;
    resolve(name as StopSignal);
  };
  for (const name of names) process.on(name, listener);
  return {
    stopped,
    release: () => {
      for (const name of names) process.off(name, listener);
    },
  };
}

/** What a config is made of. */
export interface ConfigParts {
  /** As it was before any of it was loaded. */
  readonly stamps: FileStamps;
  /** Looks at it as it is now, modules that have come included. */
  look(): Promise<FileStamps>;
}

/** Who hears what. */
interface ConfigListeners {
  /** Hears that something has changed; not told again before it has ended. */
  onChange(): Promise<void>;
  /** Hears why nothing can be followed for now. */
  onFault(cause: unknown): void;
}

/** Watches what a config is made of. */
export interface ConfigWatch {
  /** Watches what this config is made of from now on. */
  expect(parts: ConfigParts): void;
  /** Watches files besides: a config that cannot be used may wait for them. */
  expectAlso(files: FileStamps): void;
  close(): void;
}

/**
 * Finds what a config is made of: its files, modules of operations, and what modules in TypeScript import. Nothing else that lies beside
 * them counts: modules may write files of their own. Called before modules are loaded, so that a change while they are is one.
 * Documents are watched by their sources.
 */
export async function findParts({ config, path, files, baseDir }: LoadedConfig): Promise<ConfigParts> {
  const { operations = [] } = config;
  const patterns = typeof operations === "string" ? [operations] : operations;
  const find = (): Promise<string[]> => findFiles(patterns, baseDir);
  // Where they cannot be found, the source says why, and so does every look.
  const found = await find().catch(() => []);
  const imported = await importedFiles(path === undefined ? found : [path, ...found]);
  const stamps = new Map([...(await stampsOf([...imported, ...found])), ...files]);
  const look = async (): Promise<FileStamps> => {
    const own = await stampsOf([...files.keys(), ...imported]);
    try {
      return new Map([...(await stampsOf(await find())), ...own]);
    } catch (cause) {
      // The config itself may have mended what keeps its modules from being found.
      if (Array.from(own).every(([file, stamp]) => stamps.get(file) === stamp)) throw cause;
      return new Map([...stamps, ...own]);
    }
  };
  return { stamps, look };
}

/** Tells of changes to what a config is made of, one at a time. */
export function watchConfig(parts: ConfigParts, { onChange, onFault }: ConfigListeners): ConfigWatch {
  let current = parts;
  let others: FileStamps = new Map();
  const look = async (): Promise<FileStamps> =>
    new Map([...(await stampsOf(others.keys())), ...(await current.look())]);
  const watch = watchStamps({ known: parts.stamps, look, onChange, onFault });
  return {
    expect(next) {
      current = next;
      others = new Map();
      watch.expect(next.stamps);
    },
    expectAlso(files) {
      // Those of an earlier attempt are still among what is known.
      others = new Map([...others, ...files]);
      watch.expectAlso(files);
    },
    close: () => watch.close(),
  };
}

/** Files beyond this number are not looked for. */
const MOST_FILES = 500;
/** Larger files are not read. */
const MOST_BYTES = 1024 * 1024;

const SPECIFIER = /\b(?:from|import|require)\s*\(?\s*["'](\.{1,2}\/[^"'\n]{1,500})["']/g;
const ENDINGS = ["", ".ts", ".mts", ".js", ".mjs", ".json", "/index.ts", "/index.js"];

/** Finds the files that TypeScript modules import by relative paths, and what those import: they are loaded anew with them. */
async function importedFiles(modules: readonly string[]): Promise<readonly string[]> {
  const found = new Set<string>();
  const open = modules.filter(isTypeScript);
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    for (const specifier of await specifiersIn(file)) {
      const path = await resolveFile(resolve(dirname(file), specifier));
      if (path === undefined || found.has(path) || modules.includes(path)) continue;
      if (found.size >= MOST_FILES) return [...found];
      found.add(path);
      if (/\.[cm]?[jt]sx?$/.test(path)) open.push(path);
    }
  }
  return [...found];
}

function isTypeScript(file: string): boolean {
  return /\.[cm]?tsx?$/.test(file);
}

async function specifiersIn(file: string): Promise<readonly string[]> {
  try {
    if ((await stat(file)).size > MOST_BYTES) return [];
    const text = await readFile(file, "utf8");
    return Array.from(text.matchAll(SPECIFIER), ([, specifier]) => specifier as string);
  } catch {
    // It is gone; the module that imports it says so when it is loaded.
    return [];
  }
}

async function resolveFile(path: string): Promise<string | undefined> {
  // TypeScript imports itself under the endings that its output has.
  const written = path.replace(/\.([cm]?)js$/, ".$1ts");
  for (const candidate of [...ENDINGS.map((ending) => `${path}${ending}`), written]) {
    const facts = await stat(candidate).catch(() => undefined);
    if (facts?.isFile()) return candidate;
  }
  return undefined;
}
