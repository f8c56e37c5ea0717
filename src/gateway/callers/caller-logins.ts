import { randomUUID } from "node:crypto";
import type { Identity } from "../../core/access/identity.ts";
import { KeyedListeners } from "../../core/collections/listeners.ts";
import { CallError, isCallError } from "../../core/errors/errors.ts";
import { addAbortListener, removeAbortListener } from "../../core/execution/cancellation.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { ElicitAnswer, ElicitRequest } from "../../core/operation/caller-side.ts";
import type { LoginKept, Revocation } from "../../http/oauth/login.ts";
import type { StoredAuthorization } from "../../http/oauth/oauth-store.ts";
import type { LoadedConfig } from "../config/loaded-config.ts";
import { callerKey } from "../serve/gateway-auth.ts";
import type { StateAccess } from "../state/gateway-state.ts";
import { stampOf, watchFile } from "../watch-stamps.ts";
import { type ActingSource, actingSources, keepsGrants } from "./acting-source.ts";
import { type GrantOwner, type LoginTicket, LoginTickets, type TicketFault } from "./login-tickets.ts";
import { createSharedGrants, GrantSeal } from "./shared-grants.ts";
import { SharedLinks } from "./shared-links.ts";

/** Where what one caller has for one source is kept. */
export interface GrantStore extends LoginKept {
  /** Hears that it may have changed, in this process or in another one; returns how to stop. */
  watch(listener: () => void): () => void;
}

/** What a caller has for a source: a login, or a key. */
export interface CallerGrant {
  /** Another one after each login. */
  readonly id: string;
  readonly owner: GrantOwner;
  readonly store: GrantStore;
  readonly stored: StoredAuthorization;
}

/** Who needs a grant, and how they can be asked for it. */
export interface GrantAsk {
  readonly identity: Identity | undefined;
  /** Shows the caller an address. @default they are told in an error */
  readonly elicit?: ((request: ElicitRequest, signal: AbortSignal) => Promise<ElicitAnswer>) | undefined;
  /** Tells the caller's client that what was asked for at an address is done. @default nobody is told */
  readonly elicited?: ((elicitationId: string) => void) | undefined;
  /** Ends the wait; listened to with `addAbortListener` alone. */
  readonly signal?: AbortSignal | undefined;
}

/** The same, and the grant that is not what is asked for. */
type StaleAsk = GrantAsk & { readonly stale: string | undefined };

/** What grants may be kept in besides files. */
export interface GrantPlaces {
  /** The state that replicas share; grants are kept there where `serve.sessions.key` encrypts them. @default there is none */
  shared?(): StateAccess | undefined;
}

/** Calls of one caller that may wait for their login to one source. */
const MOST_WAITING = 100;
/** Callers who may have something of their own for one source, where it is kept in files. */
export const MOST_GRANTS = 10_000;
/** Open stores; those not used for longest are closed, and opened again when they are needed. */
const MOST_OPEN = 10_000;

/** What every caller has of their own for the sources of a gateway, and how they are asked for what they lack. */
export class CallerLogins {
  readonly tickets = new LoginTickets();
  readonly #places: GrantPlaces;
  readonly #open = new Map<string, GrantStore>();
  readonly #changed = new KeyedListeners();
  /** Whom is being asked for what, and how many wait for that. */
  readonly #asking = new Map<string, { waiting: number; readonly ended: Promise<boolean> }>();
  /** The ids of grants as they were last seen, for what has to know at once. */
  readonly #seen = new Map<string, string>();
  /** How often grants were made or ended here: what was read before may be of one that is gone. */
  #changes = 0;
  #sources: ReadonlyMap<string, ActingSource> = new Map();
  #publicUrl: string | undefined;
  #origin: string | undefined;
  #links: SharedLinks | undefined;
  /** Links that were used up here. */
  readonly #used = new Map<string, true>();
  #seal: { readonly written: string; readonly seal: GrantSeal } | undefined;

  constructor(loaded: LoadedConfig, places: GrantPlaces = {}) {
    this.#places = places;
    this.use(loaded);
  }

  /** Takes another config. */
  use(loaded: LoadedConfig): void {
    this.#sources = new Map(actingSources(loaded).map((source) => [source.name, source]));
    const { publicUrl, sessions } = loaded.config.serve ?? {};
    this.#publicUrl = publicUrl?.replace(/\/+$/, "");
    const written = JSON.stringify(sessions?.key ?? null);
    if (written === this.#seal?.written) return;
    this.#seal = sessions?.key === undefined ? undefined : { written, seal: new GrantSeal(sessions.key) };
    // What is kept elsewhere from now on is looked for there.
    this.#open.clear();
    this.#links = undefined;
  }

  /** Says where the gateway listens, for links where the config names no address. */
  listensAt(origin: string): void {
    this.#origin = origin;
  }

  /** The address of the gateway as browsers reach it; nothing where it does not listen. */
  get baseUrl(): string | undefined {
    return this.#publicUrl ?? this.#origin;
  }

  /** Whether any source keeps something of each caller. */
  get isOn(): boolean {
    for (const source of this.#sources.values()) if (keepsGrants(source)) return true;
    return false;
  }

  /** The sources that are asked as each caller, by name. */
  get sources(): ReadonlyMap<string, ActingSource> {
    return this.#sources;
  }

  /** What a caller has for a source; nothing where that is nothing. */
  async held(source: ActingSource, identity: Identity | undefined): Promise<CallerGrant | undefined> {
    const owner = grantOwner(source, identity);
    return await this.heldBy(source, owner);
  }

  /** The same by who the caller is. */
  async heldBy(source: ActingSource, owner: GrantOwner): Promise<CallerGrant | undefined> {
    const store = this.storeOf(source, owner.key);
    const changes = this.#changes;
    const stored = await store.load();
    const id = stored?.["grant"];
    const place = placeOf(source, owner.key);
    if (stored === undefined || typeof id !== "string" || !isOf(stored, owner.key)) {
      this.#seen.delete(place);
      return undefined;
    }
    if (changes === this.#changes) this.#see(place, id);
    return { id, owner, store, stored };
  }

  /**
   * What a caller has for a source; asks them for it where they have nothing, or nothing but what `stale` names. Rejects with
   * `UNAUTHENTICATED` where they do not give it.
   */
  async need(source: ActingSource, ask: GrantAsk, stale?: string): Promise<CallerGrant> {
    const owner = grantOwner(source, ask.identity);
    for (;;) {
      const held = await this.heldBy(source, owner);
      if (held !== undefined && held.id !== stale) return held;
      await this.#ask(source, owner, { ...ask, stale });
    }
  }

  /** What a caller is told whose login is not enough for a call. */
  tooNarrow(source: ActingSource, identity: Identity | undefined): CallError | undefined {
    const { baseUrl } = this;
    if (identity === undefined || baseUrl === undefined) return undefined;
    return this.#wanted(source, grantOwner(source, identity), { baseUrl, isAgain: true });
  }

  /** Forgets a grant that its source takes no more, unless the caller has another one by now. */
  async drop(
    source: ActingSource,
    { id, owner, store }: Pick<CallerGrant, "id" | "owner" | "store">,
  ): Promise<void> {
    await store.exclusive(async () => {
      if ((await store.load())?.["grant"] === id) await store.remove();
    });
    this.#change(placeOf(source, owner.key), undefined);
  }

  /**
   * Names as whom a source would be asked for a caller, and by which grant, as far as that is known without looking: results of calls may be
   * used again under the same name. Nothing for a source that is asked as one for all; null where it is not known.
   */
  nameOf(source: string | undefined, identity: Identity | undefined): string | null | undefined {
    const acting = source === undefined ? undefined : this.#sources.get(source);
    if (acting === undefined) return undefined;
    const key = callerKey(identity);
    if (key === undefined) return null;
    const grant = keepsGrants(acting) ? this.#seen.get(placeOf(acting, key)) : acting.identity.mode;
    return grant === undefined ? null : JSON.stringify([key, grant]);
  }

  /** Keeps what a caller gave; it is another grant from now on. */
  async keep(source: ActingSource, owner: GrantOwner, given: StoredAuthorization): Promise<void> {
    const store = this.storeOf(source, owner.key);
    const isNew = (await store.load()) === undefined;
    if (isNew && (await source.login.ofCallers.count()) >= MOST_GRANTS) throw full(source);
    const { key, subject } = owner;
    const stored = {
      ...given,
      grant: randomUUID(),
      caller: { key, subject },
      source: source.login.ofCallers.id,
    };
    await store.exclusive(() => store.save(stored));
    this.#change(placeOf(source, key), stored.grant);
    this.#changed.tell(placeOf(source, key));
  }

  /** Removes what a caller has, and has it revoked; nothing where they have nothing. */
  async end(source: ActingSource, owner: GrantOwner): Promise<Revocation | undefined> {
    const held = await this.heldBy(source, owner);
    if (held === undefined) return undefined;
    const place = placeOf(source, owner.key);
    this.#change(place, undefined);
    try {
      return await endGrant(held.store, source.login.client.issuer);
    } finally {
      this.#change(place, undefined);
      this.#changed.tell(place);
    }
  }

  /** Where what a caller has for a source is kept. */
  storeOf(source: ActingSource, key: string): GrantStore {
    const place = placeOf(source, key);
    const known = this.#open.get(place);
    const store = known ?? this.#sharedStore(source, key) ?? this.#fileStore(source, key);
    this.#open.delete(place);
    this.#open.set(place, store);
    const [oldest] = this.#open.keys();
    if (this.#open.size > MOST_OPEN && oldest !== undefined) this.#open.delete(oldest);
    return store;
  }

  /** The link behind the last part of its address; nothing for one that works no more. */
  findLink(text: string): LoginTicket | undefined {
    const { links } = this;
    const written = links?.read(text);
    if (links !== undefined && written === undefined) return undefined;
    // One that was used here is not taken up once more.
    if (written !== undefined && !this.#used.has(written.id)) this.tickets.adopt(written);
    return this.tickets.find(written?.id ?? text);
  }

  /** Uses a link up by its code, over all replicas. */
  async redeemLink(text: string, code: string): Promise<LoginTicket | TicketFault> {
    const found = this.findLink(text);
    if (found === undefined) return "unknown";
    const redeemed = this.tickets.redeem(found.id, code);
    if (redeemed === "wrong-code") return redeemed;
    this.#used.set(found.id, true);
    const [oldest] = this.#used.keys();
    if (this.#used.size > MOST_OPEN && oldest !== undefined) this.#used.delete(oldest);
    const { links } = this;
    if (typeof redeemed === "string" || links === undefined) return redeemed;
    return (await links.use(redeemed)) ? redeemed : "unknown";
  }

  /** What lets every replica read links and take browsers back; nothing where there is one. */
  get links(): SharedLinks | undefined {
    const access = this.#places.shared?.();
    if (access === undefined || this.#seal === undefined) return undefined;
    this.#links ??= new SharedLinks(access, this.#seal.seal);
    return this.#links;
  }

  /** Hears that what a caller has for a source may have changed; returns how to stop. */
  watch(source: ActingSource, key: string, listener: () => void): () => void {
    const stop = this.storeOf(source, key).watch(listener);
    const forget = this.#changed.add(placeOf(source, key), listener);
    return () => {
      stop();
      forget();
    };
  }

  #sharedStore(source: ActingSource, owner: string): GrantStore | undefined {
    const access = this.#places.shared?.();
    if (access === undefined || this.#seal === undefined) return undefined;
    const { seal } = this.#seal;
    const { id } = source.login.ofCallers;
    return createSharedGrants({ access, seal, id, owner, alone: this.#fileStore(source, owner) });
  }

  #fileStore({ login }: ActingSource, key: string): GrantStore {
    const kept = login.ofCallers.of(key);
    return {
      load: () => kept.load().catch(toUnavailable),
      save: (stored) => kept.save(stored),
      exclusive: (run) => kept.exclusive(run),
      remove: () => kept.remove(),
      watch: (listener) => watchFile({ path: kept.path, stamp: stampOf(kept.path), listener }),
    };
  }

  /** Takes note of a grant that was made or ended here; what others were reading meanwhile does not count. */
  #change(place: string, id: string | undefined): void {
    this.#changes += 1;
    if (id === undefined) this.#seen.delete(place);
    else this.#see(place, id);
  }

  #see(place: string, id: string): void {
    this.#seen.delete(place);
    this.#seen.set(place, id);
    const [oldest] = this.#seen.keys();
    if (this.#seen.size > MOST_OPEN && oldest !== undefined) this.#seen.delete(oldest);
  }

  /** Asks the caller once, however many of their calls need it; resolves when it is worth another look. */
  async #ask(source: ActingSource, owner: GrantOwner, ask: StaleAsk): Promise<void> {
    const place = placeOf(source, owner.key);
    const { baseUrl } = this;
    const isAgain = ask.stale !== undefined;
    if (baseUrl === undefined) throw unreachable(source);
    const asking = this.#asking.get(place);
    if (asking !== undefined) {
      if (asking.waiting >= MOST_WAITING) throw tooMany(source);
      asking.waiting += 1;
      const isDeclined = await until(asking.ended, ask.signal).finally(() => {
        asking.waiting -= 1;
      });
      if (isDeclined) throw this.#wanted(source, owner, { baseUrl, isAgain });
      return;
    }
    if (ask.elicit === undefined) throw this.#wanted(source, owner, { baseUrl, isAgain });
    const running = this.#showLink(source, owner, { ...ask, elicit: ask.elicit, baseUrl });
    const ended = running.then(
      (isGiven) => !isGiven,
      () => false,
    );
    const mine = { waiting: 0, ended };
    this.#asking.set(place, mine);
    try {
      if (!(await running)) throw this.#wanted(source, owner, { baseUrl, isAgain });
    } finally {
      this.#asking.delete(place);
    }
  }

  /** Shows the caller the link, and waits until they have been there; false where they will not, or cannot be shown one. */
  async #showLink(
    source: ActingSource,
    owner: GrantOwner,
    ask: Omit<StaleAsk, "elicit"> & {
      readonly elicit: NonNullable<GrantAsk["elicit"]>;
      readonly baseUrl: string;
    },
  ): Promise<boolean> {
    const ticket = this.tickets.issue(source.name, owner);
    const ending = new AbortController();
    let stop = (): void => {};
    const arrived = new Promise<true>((resolve, reject) => {
      const look = (): void => {
        const isNew = (held: CallerGrant | undefined): boolean => held !== undefined && held.id !== ask.stale;
        this.heldBy(source, owner).then((held) => isNew(held) && resolve(true), reject);
      };
      const stopWatching = this.watch(source, owner.key, look);
      const late = setTimeout(() => reject(expired(source)), Math.max(ticket.expiresAt - Date.now(), 0));
      const listener = { onAbort: ({ reason }: AbortSignal) => reject(reason) };
      if (ask.signal !== undefined) addAbortListener(ask.signal, listener);
      if (ask.signal?.aborted === true) reject(ask.signal.reason);
      stop = () => {
        clearTimeout(late);
        stopWatching();
        if (ask.signal !== undefined) removeAbortListener(ask.signal, listener);
      };
      look();
    });
    arrived.catch(() => {});
    try {
      const { message, url } = linkOf(ticket, {
        baseUrl: ask.baseUrl,
        links: this.links,
        isAgain: ask.stale !== undefined,
      });
      const request: ElicitRequest = { mode: "url", message, url, elicitationId: ticket.id };
      const answered = ask.elicit(request, ending.signal).then(
        ({ action }) => action === "accept",
        (thrown: unknown) => {
          if (isCallError(thrown) && thrown.code === "NOT_IMPLEMENTED") return false;
          throw thrown;
        },
      );
      answered.catch(() => {});
      const isOpened = await Promise.race([arrived, answered]);
      if (!isOpened) return false;
      await arrived;
      ask.elicited?.(ticket.id);
      return true;
    } finally {
      stop();
      ending.abort();
    }
  }

  #wanted(
    source: ActingSource,
    owner: GrantOwner,
    { baseUrl, isAgain }: { readonly baseUrl: string; readonly isAgain: boolean },
  ): CallError {
    const ticket = this.tickets.issue(source.name, owner);
    const { message, url } = linkOf(ticket, { baseUrl, links: this.links, isAgain });
    const { code, expiresAt } = ticket;
    return new CallError("UNAUTHENTICATED", `${message} Open ${url}`, {
      details: { source: source.name, login: { url, code, expiresAt } },
      stack: false,
    });
  }
}

/** Removes what is kept of a grant, and has its tokens revoked where it has any. */
export async function endGrant(
  store: LoginKept,
  issuer: string | undefined,
): Promise<Revocation | undefined> {
  const server = (await store.load())?.["server"];
  if (typeof server !== "string") {
    await store.exclusive(() => store.remove());
    return undefined;
  }
  const [{ logOut }, { createGuardedFetch }] = await Promise.all([
    import("../../http/oauth/login.ts"),
    import("../../http/oauth/guarded-fetch.ts"),
  ]);
  const serverUrl = new URL(server);
  return await logOut(store, { serverUrl, fetch: createGuardedFetch(serverUrl, [issuer]) });
}

/** The link and what is said with it; a reader of the message has the code. */
function linkOf(
  ticket: LoginTicket,
  {
    baseUrl,
    links,
    isAgain,
  }: { readonly baseUrl: string; readonly links: SharedLinks | undefined; readonly isAgain: boolean },
) {
  const { id, source, code } = ticket;
  const why = isAgain ? "your login to it has ended or lacks a scope" : "you are not logged in to it";
  return {
    url: `${baseUrl}/login/${links?.write(ticket) ?? id}`,
    message: `The source "${source}" is asked as you, and ${why}. Your code is ${code}.`,
  };
}

/** Says whose what is kept is; rejects for a caller who cannot have anything. */
export function grantOwner(source: ActingSource, identity: Identity | undefined): GrantOwner {
  if (identity !== undefined) return { key: callerKey(identity) ?? "", subject: identity.subject };
  throw new CallError(
    "UNAUTHENTICATED",
    `The source "${source.name}" is asked as each caller, and this call is nobody's; say who you are to the gateway.`,
    { details: { source: source.name }, stack: false },
  );
}

function placeOf({ login }: ActingSource, key: string): string {
  return JSON.stringify([login.ofCallers.id, key]);
}

/** What is kept says whose it is. */
function isOf(stored: StoredAuthorization, key: string): boolean {
  const { caller } = stored as { readonly caller?: unknown };
  return isPlainObject(caller) && caller["key"] === key;
}

function unreachable({ name }: ActingSource): CallError {
  const message = `The source "${name}" is asked as each caller, and callers log in to it where the gateway is served over HTTP.`;
  return new CallError("UNAUTHENTICATED", message, { details: { source: name }, stack: false });
}

function expired({ name }: ActingSource): CallError {
  const message = `Nobody logged in to the source "${name}" in time; call again for a new link.`;
  return new CallError("UNAUTHENTICATED", message, { details: { source: name }, stack: false });
}

function full({ name }: ActingSource): CallError {
  const message = `There is no room for another caller's login to the source "${name}".`;
  return new CallError("RESOURCE_EXHAUSTED", message, { stack: false });
}

/** Why files cannot be read is for the operator of the gateway. */
function toUnavailable(cause: unknown): never {
  const message = "What callers have of their own cannot be read now; try again later.";
  throw new CallError("UNAVAILABLE", message, { cause, retryable: true, stack: false });
}

function tooMany({ name }: ActingSource): CallError {
  const message = `More than ${MOST_WAITING} of your calls wait for your login to the source "${name}".`;
  return new CallError("RESOURCE_EXHAUSTED", message, { stack: false });
}

/** Waits for something that goes on, no longer than a signal allows. */
function until<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const listener = { onAbort: ({ reason }: AbortSignal) => reject(reason) };
    addAbortListener(signal, listener);
    if (signal.aborted) reject(signal.reason);
    work.then(resolve, reject).finally(() => removeAbortListener(signal, listener));
  });
}
