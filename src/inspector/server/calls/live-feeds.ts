import type { ServerResponse } from "node:http";
import { CallError } from "../../../core/errors/errors.ts";
import type { LoadedConfig } from "../../../gateway/config/loaded-config.ts";
import type { Gateway } from "../../../gateway/gateway.ts";
import { callerKey } from "../../../gateway/serve/gateway-auth.ts";
import type { CallRow, LiveEvent } from "../../protocol.ts";
import { LINES_HEADERS, limitTime } from "../answers.ts";
import {
  FEED_INTERVAL_MS,
  KEPT_CALLS,
  LONGEST_FEED_MS,
  MOST_PAGES,
  MOST_PAGES_EACH,
  MOST_WAITING_ROWS,
  PING_MS,
  ROWS_PER_EVENT,
  WRITE_TIMEOUT_MS,
} from "../inspector-limits.ts";
import { maySee, type Viewer } from "../viewer.ts";
import { type CallLog, isRunning, type LoggedCall, rowOf } from "./call-log.ts";

/** What feeds tell of. */
interface LiveFeedsOptions {
  readonly log: CallLog;
  readonly gateway: Pick<Gateway, "onSources">;
  readonly loaded: () => LoadedConfig;
  /** Writes an event as a line. */
  readonly write: (event: LiveEvent) => string;
  /** Milliseconds after which a page has to ask again. @default 600_000 */
  readonly longestMs?: number | undefined;
}

/** What a page may see depends on who was let in, under which config, and on a token that ends some time. */
interface Following {
  readonly viewer: Viewer;
  readonly loaded: LoadedConfig;
  readonly until: number;
}

/** Every page that follows what happens, on one timer; without a page there is none, and nothing is collected. */
export class LiveFeeds {
  readonly #options: LiveFeedsOptions;
  readonly #feeds = new Map<LiveFeed, Following>();
  readonly #stop: () => void;
  readonly #changed = new Set<LoggedCall>();
  #hasNewSources = false;
  #newRevision: number | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: LiveFeedsOptions) {
    this.#options = options;
    this.#stop = options.gateway.onSources(() => {
      this.#hasNewSources = true;
    });
  }

  /** Takes a call that changed; changes until the next event are told as one. */
  take(call: LoggedCall): void {
    if (this.#feeds.size === 0) return;
    this.#changed.add(call);
    if (this.#changed.size >= KEPT_CALLS) this.#tick();
  }

  /** Says that operations changed; sources then have other numbers of them. */
  takeOperations(revision: number): void {
    this.#newRevision = revision;
    this.#hasNewSources = true;
  }

  /** Tells a page what happens until it leaves, or has to ask again. */
  open(response: ServerResponse, viewer: Viewer): void {
    // A reader who left while it was found out who they are will not say so a second time.
    if (response.destroyed) return;
    this.#assertRoom(viewer);
    const { log, loaded, write, longestMs = LONGEST_FEED_MS } = this.#options;
    const until = performance.now() + longestMs;
    response.writeHead(200, LINES_HEADERS);
    // What is remembered includes all that changed so far.
    this.#tick();
    const feed = new LiveFeed({ log, viewer, response, write });
    this.#feeds.set(feed, { viewer, loaded: loaded(), until });
    response.on("close", () => this.#leave(feed));
    this.#timer ??= setInterval(() => this.#tick(), FEED_INTERVAL_MS).unref();
  }

  /** Ends all of them. */
  close(): void {
    this.#stop();
    for (const feed of [...this.#feeds.keys()]) this.#leave(feed);
  }

  #assertRoom({ isAuthOn, identity }: Viewer): void {
    if (this.#feeds.size >= MOST_PAGES)
      throw tooMany(`${MOST_PAGES} pages follow this gateway already; close one of them.`);
    if (!isAuthOn) return;
    const own = callerKey(identity);
    const isOwn = ({ viewer }: Following): boolean => callerKey(viewer.identity) === own;
    if ([...this.#feeds.values()].filter(isOwn).length >= MOST_PAGES_EACH)
      throw tooMany(`${MOST_PAGES_EACH} pages of yours follow this gateway already; close one of them.`);
  }

  #tick(): void {
    const changed = [...this.#changed];
    this.#changed.clear();
    const now = performance.now();
    const current = this.#options.loaded();
    for (const [feed, { viewer, loaded, until }] of this.#feeds) {
      if (loaded === current && viewer.isCurrent() && now < until) this.#tell(feed, changed, now);
      else this.#leave(feed);
    }
    this.#hasNewSources = false;
    this.#newRevision = undefined;
  }

  #tell(feed: LiveFeed, changed: readonly LoggedCall[], now: number): void {
    for (const call of changed) feed.take(call);
    if (this.#hasNewSources) feed.takeSources();
    if (this.#newRevision !== undefined) feed.takeOperations(this.#newRevision);
    feed.flush(now);
  }

  #leave(feed: LiveFeed): void {
    feed.end();
    this.#feeds.delete(feed);
    if (this.#feeds.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#changed.clear();
  }
}

function tooMany(message: string): CallError {
  return new CallError("RESOURCE_EXHAUSTED", message, { stack: false });
}

/** What a feed is made of. */
interface LiveFeedOptions {
  readonly log: CallLog;
  readonly viewer: Viewer;
  readonly response: ServerResponse;
  /** Writes an event as a line. */
  readonly write: (event: LiveEvent) => string;
}

/** One page that follows what happens: first what is remembered, then what changes, as fast as the page takes it. */
class LiveFeed {
  readonly #options: LiveFeedOptions;
  readonly #undelivered: UndeliveredCalls;
  #isFull = false;
  #isOver = false;
  #lastWrite = 0;
  #hasNewSources = false;
  #newRevision: number | undefined;
  #lastRunning: number;
  #lastDropped = 0;

  constructor(options: LiveFeedOptions) {
    const { log, viewer, response } = options;
    this.#options = options;
    this.#undelivered = new UndeliveredCalls(log, viewer);
    response.on("drain", () => {
      this.#isFull = false;
      this.flush();
    });
    this.#lastRunning = this.#running();
    this.#write({ type: "begin", running: this.#lastRunning });
    this.flush();
  }

  /** Takes a call that changed. */
  take(call: LoggedCall): void {
    this.#undelivered.take(call);
  }

  /** Takes that sources changed. */
  takeSources(): void {
    this.#hasNewSources = true;
  }

  /** Takes that operations changed. */
  takeOperations(revision: number): void {
    this.#newRevision = revision;
  }

  /** Tells what is known, for as long as the page takes it. */
  flush(now = performance.now()): void {
    if (this.#isOver) return;
    if (!this.#isFull && this.#hasNewSources) {
      this.#hasNewSources = false;
      this.#write({ type: "sources" });
    }
    if (!this.#isFull && this.#newRevision !== undefined) {
      const revision = this.#newRevision;
      this.#newRevision = undefined;
      this.#write({ type: "operations", revision });
    }
    this.#flushCalls();
    if (!this.#isFull && now - this.#lastWrite >= PING_MS) this.#write({ type: "ping" });
  }

  /** Ends the stream. */
  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#options.response.end();
    limitTime(this.#options.response, WRITE_TIMEOUT_MS);
  }

  #flushCalls(): void {
    while (!this.#isFull) {
      const calls = this.#undelivered.next();
      const isNews = this.#lastRunning !== this.#running() || this.#lastDropped !== this.#undelivered.dropped;
      if (calls.length === 0 && !isNews) return;
      this.#tell(calls.map(rowOf));
      if (calls.length === 0) return;
    }
  }

  #tell(rows: readonly CallRow[]): void {
    this.#lastRunning = this.#running();
    this.#lastDropped = this.#undelivered.dropped;
    this.#write({ type: "calls", rows, running: this.#lastRunning, dropped: this.#lastDropped });
  }

  #running(): number {
    const { log, viewer } = this.#options;
    return viewer.isOperator ? log.runningOf() : log.runningOf(callerKey(viewer.identity) ?? "");
  }

  #write(event: LiveEvent): void {
    const { response, write } = this.#options;
    if (response.destroyed || response.writableEnded) return;
    this.#lastWrite = performance.now();
    if (!response.write(write(event))) this.#isFull = true;
  }
}

type Calls = Map<number, LoggedCall>;

/**
 * Calls that a page was not told yet, within bounds. What is left out for a page that does not keep up are calls it never heard of; one
 * that it shows as running is always told to have ended.
 */
export class UndeliveredCalls {
  readonly #log: CallLog;
  readonly #viewer: Viewer;
  /** What is still to be told of what was remembered at the start, latest first. */
  readonly #remembered: number[];
  readonly #lastRemembered: number;
  /** Calls that the page shows as running, as many as it can hold. */
  readonly #shown = new Set<number>();
  /** Those of them that changed. */
  readonly #owed: Calls = new Map();
  /** Calls that the page never heard of and that run, or have ended. */
  readonly #begun: Calls = new Map();
  readonly #ended: Calls = new Map();
  /** Whether a running call was left out: it is looked for again once there is room. */
  #hasMissed = false;
  #dropped = 0;

  constructor(log: CallLog, viewer: Viewer) {
    this.#log = log;
    this.#viewer = viewer;
    this.#lastRemembered = log.lastSeq;
    this.#remembered = Array.from(log.calls())
      .filter(({ caller }) => maySee(viewer, caller))
      .map(({ seq }) => seq)
      .reverse();
  }

  /** Calls that the page will not hear of. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Takes a call that changed. */
  take(call: LoggedCall): void {
    const { seq, caller } = call;
    if (!maySee(this.#viewer, caller)) return;
    if (this.#shown.has(seq)) this.#owed.set(seq, call);
    // It is told with what is remembered, in whatever state it is by then, or was counted when it was not there any more.
    else if (seq <= this.#lastRemembered) return;
    else if (isRunning(call)) this.#takeBegun(call);
    else this.#takeEnded(call);
  }

  /** Gives the next calls to tell, in the order they began; none when all is told. */
  next(): readonly LoggedCall[] {
    const calls = this.#nextOwed() ?? this.#nextRemembered() ?? this.#nextNew() ?? [];
    for (const call of calls) this.#show(call);
    return calls;
  }

  #takeBegun(call: LoggedCall): void {
    if (this.#begun.has(call.seq)) return;
    if (this.#hasRoom()) this.#begun.set(call.seq, call);
    else this.#hasMissed = true;
  }

  /** An end says all that a beginning does, so it may take the place of one. */
  #takeEnded(call: LoggedCall): void {
    this.#begun.delete(call.seq);
    if (!this.#hasRoom()) {
      const [replaced] = this.#begun.keys();
      if (replaced === undefined) {
        this.#dropped += 1;
        return;
      }
      this.#begun.delete(replaced);
      this.#hasMissed = true;
    }
    this.#ended.set(call.seq, call);
  }

  #hasRoom(): boolean {
    return this.#begun.size + this.#ended.size < MOST_WAITING_ROWS;
  }

  #nextOwed(): readonly LoggedCall[] | undefined {
    return this.#owed.size === 0 ? undefined : inOrder(takeFrom(this.#owed, ROWS_PER_EVENT));
  }

  #nextRemembered(): readonly LoggedCall[] | undefined {
    const calls: LoggedCall[] = [];
    while (calls.length < ROWS_PER_EVENT) {
      const seq = this.#remembered.pop();
      if (seq === undefined) break;
      const call = this.#log.get(seq);
      if (call === undefined) this.#dropped += 1;
      else calls.push(call);
    }
    return calls.length === 0 ? undefined : calls;
  }

  #nextNew(): readonly LoggedCall[] | undefined {
    if (this.#ended.size + this.#begun.size === 0) this.#findMissed();
    const ended = takeFrom(this.#ended, ROWS_PER_EVENT);
    const calls = [...ended, ...takeFrom(this.#begun, ROWS_PER_EVENT - ended.length)];
    return calls.length === 0 ? undefined : inOrder(calls);
  }

  #findMissed(): void {
    if (!this.#hasMissed) return;
    this.#hasMissed = false;
    for (const call of this.#log.calls()) if (isRunning(call)) this.take(call);
    // Those that are shown already did not change.
    this.#owed.clear();
  }

  /** The page lets go of its oldest calls too. */
  #show(call: LoggedCall): void {
    const { seq } = call;
    if (!isRunning(call)) {
      this.#shown.delete(seq);
      return;
    }
    this.#shown.add(seq);
    if (this.#shown.size <= KEPT_CALLS) return;
    const [oldest] = this.#shown;
    if (oldest !== undefined) this.#shown.delete(oldest);
  }
}

function takeFrom(calls: Calls, most: number): LoggedCall[] {
  const taken: LoggedCall[] = [];
  for (const [seq, call] of calls) {
    if (taken.length >= most) break;
    calls.delete(seq);
    taken.push(call);
  }
  return taken;
}

function inOrder(calls: LoggedCall[]): readonly LoggedCall[] {
  return calls.sort((a, b) => a.seq - b.seq);
}
