import type { LogConfig } from "../../gateway/config/gateway-config.ts";
import { ConfigError, type LoadedConfig } from "../../gateway/config/loaded-config.ts";
import { createGateway, type Gateway } from "../../gateway/gateway.ts";
import { unusedPatterns } from "../../gateway/policy/unused-patterns.ts";
import type { GatewayLogger } from "../../gateway/serve/observe/logger.ts";
import type { ReadRecord } from "../../gateway/serve/observe/read-record.ts";
import type { Telemetry } from "../../gateway/serve/observe/telemetry.ts";
import { DRAIN_MS, LAME_DUCK_MS } from "../../gateway/serve/serve-settings.ts";
import { NEAREST_LEVELS, type ServerLog } from "../../mcp/provider.ts";
import { takeFaults } from "../faults.ts";
import { EXIT, type Io } from "../io.ts";
import { emptyLines } from "../list/source-troubles.ts";
import { rememberNames } from "../name-cache.ts";
import { createPastedCommand } from "../pasted-command.ts";
import { type ReadTarget, readTarget, type SourceFlags } from "../session.ts";
import { announce, servedFacts } from "./announce.ts";
import { followSources } from "./follow-sources.ts";
import { type PersonalPlace, ServedPlaces } from "./served-places.ts";
import { untilStopped } from "./stop-on-signals.ts";
import type { ConfigParts, ConfigWatch } from "./watch-config.ts";

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
  readonly places: ServedPlaces;
  readonly isPersonal: boolean;
  readonly releaseFaults: () => void;
  loaded: LoadedConfig;
}

/** Runs `waybill serve`, until a signal or the end of stdin; what it says of itself names the config. */
export function runServe(io: Io, flags: ServeFlags): Promise<number> {
  return serveTarget(io, flags, { read: () => readTarget(io, flags, { isTold: false }) });
}

/** What is served, and for whom. */
export interface ServeTargetOptions {
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
    const watch = parts && (await follow(serving, parts));
    const introduced = introduce(serving);
    introduced.catch((thrown: unknown) => serving.log.error(messageOf(thrown)));
    const why = await Promise.race([signals.stopped, ...others]);
    if (why === "SIGTERM") await lameDuck(serving, others);
    if (typeof why === "string") serving.log.info("stopping", { signal: why });
    watch?.close();
    await stop(serving);
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
  const metrics = new Metrics({ sources: () => gateway?.reports() ?? [] });
  const sourceOf = (id: string): string | undefined => gateway?.sourceOf(id);
  const observer = createObserver({ log, metrics, telemetry, sourceOf });
  const { busCall: onBusCall } = observer;
  const onServerLog = (source: string, { level, logger, data }: ServerLog): void =>
    log[NEAREST_LEVELS[level]]("server log", { source, ...(logger !== undefined && { logger }), data });
  gateway = await createGateway(loaded, { observers: [observer], onBusCall, onServerLog, onWarning });
  const onRead = (record: ReadRecord): void => log.info(record.event, { ...record });
  const { replay: onReplay } = observer;
  const around = { metrics, observer, telemetry, personal, onRead, onReplay, onWarning };
  const places = new ServedPlaces(gateway, { io, flags, ...around });
  try {
    await places.open(loaded, target.kind);
  } catch (thrown) {
    releaseFaults();
    await places.close(0);
    await gateway.close();
    await telemetry?.close();
    throw thrown;
  }
  followSources(gateway, { log, paste: createPastedCommand(io, flags) });
  const isPersonal = personal !== undefined;
  return { io, flags, target, gateway, log, telemetry, places, isPersonal, releaseFaults, loaded };
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
  if (isForPeople(serving)) {
    if (url !== undefined) log.info("listening", { url });
    if (!io.quiet) io.stderr.write(await announce({ io, flags, target, gateway, url, isInspected }));
  } else {
    for (const warning of serving.loaded.warnings) log.warn(warning);
    const facts = servedFacts({ target, gateway, url, isInspected });
    log.info(url === undefined ? "serving over stdio" : "listening", facts);
  }
  await finishMounting(serving);
}

/** Says which patterns fit nothing, and keeps the names for completion; a person may look at a part of the config, which proves neither. */
async function finishMounting(serving: Serving): Promise<void> {
  const { io, flags, target, gateway, loaded, isPersonal } = serving;
  if (isPersonal) return;
  warnUnused(serving);
  await rememberNames(io, flags, { ...target, loaded, gateway });
}

/** A pattern that matches nothing leaves open what it was to close. */
function warnUnused({ gateway, loaded, log }: Serving): void {
  for (const warning of unusedPatterns(gateway, loaded)) log.warn(warning);
  for (const warning of gateway.reports().flatMap(emptyLines)) log.warn(warning);
}

/** Whoever asks for JSON gets nothing else. Where nothing is logged, there is nothing to spoil. */
function isForPeople({ loaded, flags, io }: Serving): boolean {
  const { format, level } = logConfig(loaded, flags, io);
  return format !== "json" || level === "silent";
}

/** What is followed; where it came from no file, or nobody wants it, nothing is. */
async function followedParts(target: ReadTarget, { watch }: ServeFlags): Promise<ConfigParts | undefined> {
  if (target.reload === undefined || watch === false) return undefined;
  const { findParts } = await import("./watch-config.ts");
  return findParts(target.loaded);
}

/** Follows changes of the config. */
async function follow(serving: Serving, parts: ConfigParts): Promise<ConfigWatch> {
  const { watchConfig } = await import("./watch-config.ts");
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
    const { findParts } = await import("./watch-config.ts");
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
    // Whoever may not call any more does not, whatever else could not be.
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

/** Goes on for a while and says that it will not: whoever sends requests here has time to send them elsewhere. */
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
  const { places, gateway, telemetry, target, loaded, log, releaseFaults } = serving;
  const { drainMs = DRAIN_MS } = loaded.config.serve ?? {};
  const until = performance.now() + drainMs;
  await places.close(drainMs);
  await gateway.close({ timeoutMs: Math.max(0, until - performance.now()) });
  await telemetry?.close();
  await target.close();
  releaseFaults();
  log.info("stopped");
}
