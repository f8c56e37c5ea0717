import { endsWithin } from "../../core/execution/cancellation.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { backoffMs } from "../../core/limits/backoff.ts";
import type { McpSession, Subscription } from "./mcp-session.ts";

/** What is listened to over one connection of the 2026-07-28 revision. */
interface ListenedTo {
  readonly toolsListChanged?: true;
  readonly promptsListChanged?: true;
  readonly resourcesListChanged?: true;
  readonly resourceSubscriptions?: string[];
}

/** Told that lists may have changed while nobody listened. */
type OnGap = (method: string) => void;

const LISTS = {
  tools: "toolsListChanged",
  prompts: "promptsListChanged",
  resources: "resourcesListChanged",
} as const;

/** Waits between attempts to listen again: doubled each time, and never longer than half a minute. */
const AGAIN_MS = { first: 500, most: 30_000 } as const;

/** How long a server may take to acknowledge a subscription. */
const ACKNOWLEDGE_MS = 30_000;

/** How long a new connection waits for that: most servers are faster, and their lists need no second look. */
const FIRST_WAIT_MS = 1_000;

/** Keeps `subscriptions/listen` open for as long as a session lives, and opens it again when it ends. */
export class ChangeSubscription {
  readonly #session: McpSession;
  readonly #onGap: OnGap;
  #open: Subscription | undefined;
  /** What waits to be acknowledged; what nobody waits for gives way to what somebody does. */
  #opening: { readonly stop: AbortController; readonly isAwaited: boolean } | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #failures = 0;
  #stopped = false;
  /** Whether changes may have been missed that nobody was told of. */
  #isBehind = false;
  #turn: Promise<void> = Promise.resolve();

  constructor(session: McpSession, onGap: OnGap) {
    this.#session = session;
    this.#onGap = onGap;
  }

  /** Starts to listen, and waits no longer than a second or `mostMs` for it: no server holds up its connection with it. */
  async start(uris: readonly string[], mostMs: number, onFailure: (error: unknown) => void): Promise<void> {
    const listening = this.#listen(uris, false).catch((error: unknown) => {
      if (!this.#stopped && !isGivenWay(error)) onFailure(error);
    });
    if (!(await endsWithin(Math.min(mostMs, FIRST_WAIT_MS), listening))) this.#isBehind = true;
  }

  /** Listens to what the server offers and to these resources from now on; rejects where the server does not take it. */
  listen(uris: readonly string[]): Promise<void> {
    if (this.#opening?.isAwaited === false) this.#opening.stop.abort(new GivenWay());
    return this.#listen(uris, true);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#opening?.stop.abort();
    this.#open?.close();
    this.#open = undefined;
  }

  #listen(uris: readonly string[], isAwaited: boolean): Promise<void> {
    const next = this.#turn.catch(() => {}).then(() => this.#replace(uris, isAwaited));
    this.#turn = next;
    return next;
  }

  async #replace(uris: readonly string[], isAwaited: boolean): Promise<void> {
    if (this.#stopped) return;
    clearTimeout(this.#timer);
    const old = this.#open;
    const opened = await this.#subscribe(uris, isAwaited);
    if (this.#stopped) {
      opened?.close();
      return;
    }
    this.#open = opened;
    old?.close();
    void opened?.closed.then(() => this.#again(opened, uris));
    if (this.#isBehind) this.#tellGap();
  }

  async #subscribe(uris: readonly string[], isAwaited: boolean): Promise<Subscription | undefined> {
    const filter = toFilter(this.#session.facts.capabilities, uris);
    if (Object.keys(filter).length === 0) return undefined;
    const stop = new AbortController();
    this.#opening = { stop, isAwaited };
    try {
      return await this.#session.subscribe(filter, ACKNOWLEDGE_MS, stop.signal);
    } finally {
      this.#opening = undefined;
    }
  }

  #again(ended: Subscription | undefined, uris: readonly string[]): void {
    if (this.#stopped || this.#open !== ended) return;
    this.#open = undefined;
    this.#isBehind = true;
    this.#retry(uris);
  }

  #retry(uris: readonly string[]): void {
    this.#failures += 1;
    this.#timer = setTimeout(
      () => {
        this.#listen(uris, false).catch((error: unknown) => {
          if (!this.#stopped && !isGivenWay(error)) this.#retry(uris);
        });
      },
      backoffMs(this.#failures, AGAIN_MS.first, AGAIN_MS.most),
    );
    this.#timer.unref?.();
  }

  #tellGap(): void {
    this.#isBehind = false;
    this.#failures = 0;
    const { capabilities } = this.#session.facts;
    for (const list of Object.keys(LISTS)) {
      if (offersChanges(capabilities, list)) this.#onGap(`notifications/${list}/list_changed`);
    }
  }
}

/** Why an attempt was dropped that nobody waited for: one that somebody waits for takes its place. */
class GivenWay extends Error {}

function isGivenWay(error: unknown): boolean {
  return error instanceof GivenWay;
}

function toFilter(capabilities: Readonly<Record<string, unknown>>, uris: readonly string[]): ListenedTo {
  const filter: Record<string, true | string[]> = {};
  for (const [list, name] of Object.entries(LISTS))
    if (offersChanges(capabilities, list)) filter[name] = true;
  if (uris.length > 0) filter["resourceSubscriptions"] = [...uris];
  return filter;
}

function offersChanges(capabilities: Readonly<Record<string, unknown>>, list: string): boolean {
  const offered = Object.hasOwn(capabilities, list) ? capabilities[list] : undefined;
  return isPlainObject(offered) && offered["listChanged"] === true;
}
