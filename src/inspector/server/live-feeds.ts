import type { ServerResponse } from "node:http";
import { CallError } from "../../core/errors/errors.ts";
import type { LoadedConfig } from "../../gateway/config/loaded-config.ts";
import type { Gateway } from "../../gateway/gateway.ts";
import { callerKey } from "../../gateway/serve/caller-key.ts";
import type { LiveEvent } from "../protocol.ts";
import { LINES_HEADERS } from "./answer-headers.ts";
import type { CallLog } from "./call-log.ts";
import {
  FEED_INTERVAL_MS,
  KEPT_CALLS,
  LONGEST_FEED_MS,
  MOST_PAGES,
  MOST_PAGES_EACH,
} from "./inspector-limits.ts";
import { LiveFeed } from "./live-feed.ts";
import type { LoggedCall } from "./logged-call.ts";
import type { Viewer } from "./viewer.ts";

/** What feeds tell of. */
export interface LiveFeedsOptions {
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
    // Whoever left while it was found out who they are will not say so a second time.
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
