import type { Client } from "@modelcontextprotocol/client";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { McpSession } from "./mcp-session.ts";

/** What is listened to over one connection of the 2026-07-28 revision. */
export interface ListenedTo {
  readonly toolsListChanged?: true;
  readonly promptsListChanged?: true;
  readonly resourcesListChanged?: true;
  readonly resourceSubscriptions?: string[];
}

/** Told that lists may have changed while nobody listened. */
export type OnGap = (method: string) => void;

type Subscription = Awaited<ReturnType<Client["listen"]>>;

const LISTS = {
  tools: "toolsListChanged",
  prompts: "promptsListChanged",
  resources: "resourcesListChanged",
} as const;

/** Waits between attempts to listen again: doubled each time, and never longer than half a minute. */
const AGAIN_MS = { first: 500, most: 30_000 } as const;

/** Keeps `subscriptions/listen` open for as long as a session lives, and opens it again when it ends. */
export class ChangeListener {
  readonly #session: McpSession;
  readonly #onGap: OnGap;
  #open: Subscription | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #delay: number = AGAIN_MS.first;
  #stopped = false;
  #turn: Promise<void> = Promise.resolve();

  constructor(session: McpSession, onGap: OnGap) {
    this.#session = session;
    this.#onGap = onGap;
  }

  /** Listens to what the server offers and to these resources from now on; rejects where the server does not take it. */
  listen(uris: readonly string[]): Promise<void> {
    const next = this.#turn.catch(() => {}).then(() => this.#replace(uris));
    this.#turn = next;
    return next;
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    void this.#open?.close().catch(() => {});
    this.#open = undefined;
  }

  async #replace(uris: readonly string[]): Promise<void> {
    if (this.#stopped) return;
    clearTimeout(this.#timer);
    const filter = toFilter(this.#session.facts.capabilities, uris);
    const old = this.#open;
    if (Object.keys(filter).length === 0) this.#open = undefined;
    else this.#open = await this.#session.client.listen(filter, { timeout: 30_000 });
    void old?.close().catch(() => {});
    const opened = this.#open;
    void opened?.closed.then(() => this.#again(opened, uris));
  }

  #again(ended: Subscription | undefined, uris: readonly string[]): void {
    if (this.#stopped || this.#open !== ended) return;
    this.#open = undefined;
    this.#retry(uris);
  }

  #retry(uris: readonly string[]): void {
    const delay = this.#delay;
    this.#delay = Math.min(delay * 2, AGAIN_MS.most);
    this.#timer = setTimeout(() => {
      this.listen(uris).then(
        () => this.#tellGap(),
        () => {
          if (!this.#stopped) this.#retry(uris);
        },
      );
    }, delay);
    this.#timer.unref?.();
  }

  #tellGap(): void {
    this.#delay = AGAIN_MS.first;
    const { capabilities } = this.#session.facts;
    for (const list of Object.keys(LISTS)) {
      if (offersChanges(capabilities, list)) this.#onGap(`notifications/${list}/list_changed`);
    }
  }
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
