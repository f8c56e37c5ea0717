import { type Identity, ownerOf } from "../../../core/access/identity.ts";
import type { HttpAnswer, HttpRequest } from "../../../http/exchange.ts";
import type { RpcRequest } from "../../protocol/messages.ts";
import { initializeFault } from "../../protocol/revisions.ts";
import type { ChannelServer } from "../mcp-server.ts";
import {
  HttpSession,
  type HttpSessionOptions,
  refuseAccept,
  refuseUnknown,
  type SessionBounds,
} from "./http-session.ts";
import { EventBudget } from "./http-session-events.ts";
import { answeredIdOf, refuse } from "./mcp-endpoint.ts";
import { type SealedSession, SealedSessions } from "./sealed-sessions.ts";
import type { SessionNote } from "./session-notes.ts";

interface SessionsBounds extends SessionBounds {
  readonly sessions: number;
  readonly sessionIdleMs: number;
  readonly sessionLifetimeMs: number;
}

/** One request of a 2025 client. */
export interface HttpSessionRequest {
  readonly request: HttpRequest;
  /** What was posted, if anything. */
  readonly body?: unknown;
  readonly identity: Identity | undefined;
}

/** A session of a caller; nothing where there is none, "full" where it cannot be kept. */
type FoundSession = HttpSession | "full" | undefined;

/** A session that a caller names, which another replica opened. */
interface WantedSession {
  readonly name: string;
  readonly identity: Identity | undefined;
  readonly sealed: SealedSession;
}

interface Kept {
  readonly session: HttpSession;
  /** Of `performance.now()`. */
  usedAt: number;
}

/** The sessions of 2025 clients, each for its owner and nobody else. */
export class HttpSessions {
  readonly #server: ChannelServer;
  readonly #bounds: SessionsBounds;
  readonly #options: Pick<HttpSessionOptions, "log" | "notes" | "onWarning">;
  readonly #budget: EventBudget;
  /** What replicas share; nothing where this process is alone. */
  readonly #sealed: SealedSessions | undefined;
  /** Least recently used first. */
  readonly #kept = new Map<string, Kept>();
  #timer: NodeJS.Timeout | undefined;

  constructor(
    server: ChannelServer,
    bounds: SessionsBounds,
    options: Pick<HttpSessionOptions, "log" | "notes" | "onWarning">,
  ) {
    this.#options = options;
    this.#server = server;
    this.#bounds = bounds;
    this.#budget = new EventBudget(bounds.allEventBytes);
    const { share } = server;
    if (share !== undefined) this.#sealed = new SealedSessions(share.keys, bounds.sessionLifetimeMs);
  }

  /** How many sessions there are. */
  get size(): number {
    return this.#kept.size;
  }

  /** How many requests of all sessions have no answer yet. */
  get running(): number {
    let running = 0;
    for (const { session } of this.#kept.values()) running += session.running;
    return running;
  }

  /** Serves one request: `initialize` opens a session, everything else names one. */
  serve(asked: HttpSessionRequest): Promise<HttpAnswer> | HttpAnswer {
    const { request, body, identity } = asked;
    if (isInitialize(body)) {
      const fault = initializeFault((body as { readonly params?: never }).params);
      if (fault === undefined) return this.#open(asked);
      return refuse(400, fault.message, { code: fault.code, id: answeredIdOf(body) });
    }
    const name = request.header("mcp-session-id");
    if (name === undefined) {
      const id = answeredIdOf(body);
      return refuse(400, "The Mcp-Session-Id header is missing; initialize gives one.", { id });
    }
    const session = this.#find(name, identity);
    if (session instanceof Promise) return session.then((found) => this.#serveIn(found, asked));
    return this.#serveIn(session, asked);
  }

  #serveIn(
    session: FoundSession,
    { request, body, identity }: HttpSessionRequest,
  ): Promise<HttpAnswer> | HttpAnswer {
    if (session === undefined) return refuseUnknown(answeredIdOf(body));
    if (session === "full") return refuseFull(body);
    const answer = session.serve(request, body, identity);
    if (request.method !== "DELETE" || !session.isEnded) return answer;
    this.#forbid(session);
    const { notes, onWarning } = this.#options;
    if (notes === undefined || session.facts === undefined) return answer;
    const noted = notes.write(session.facts, { kind: "ended" }).catch((cause: unknown) => {
      onWarning("A session was ended at this replica alone.", cause);
    });
    return noted.then(() => answer);
  }

  /** Ends the streams that carry what nobody asked for; requests go on. */
  endStreams(): void {
    for (const { session } of this.#kept.values()) session.endStream();
  }

  /** Ends all sessions and what runs in them. */
  close(): void {
    clearTimeout(this.#timer);
    const sessions = [...this.#kept.values()];
    this.#kept.clear();
    for (const { session } of sessions) session.end();
  }

  async #open({ request, body, identity }: HttpSessionRequest): Promise<HttpAnswer> {
    const refusal = refuseAccept(request);
    if (refusal !== undefined) return refusal;
    const { params = {} } = body as RpcRequest;
    const session = this.#keep(identity, this.#sealed?.create(params, ownerOf(identity)), false);
    if (session === undefined) return refuseFull(body);
    const answer = await session.serve(request, body, identity);
    if (!session.isOpen) session.end();
    return answer;
  }

  /** Finds a session of the caller, be it one that another replica opened; tells where there is no room for that one. */
  #find(name: string, identity: Identity | undefined): Promise<FoundSession> | FoundSession {
    const owner = ownerOf(identity);
    const kept = this.#kept.get(name);
    if (kept !== undefined) {
      const { session } = kept;
      if (session.owner !== owner || (session.facts?.expiresAt ?? Infinity) <= Date.now()) return undefined;
      this.#touch(kept);
      return session;
    }
    const sealed = this.#sealed?.read(name, owner);
    if (sealed === undefined) return undefined;
    const noted = this.#options.notes?.read(sealed.facts);
    if (noted === undefined) return this.#keep(identity, sealed, true) ?? "full";
    const wanted = { name, identity, sealed };
    return noted.then(
      (note) => this.#takeUp(wanted, note),
      (cause: unknown) => {
        this.#options.onWarning(
          "What a client said of its session at another replica cannot be read.",
          cause,
        );
        return this.#takeUp(wanted, undefined);
      },
    );
  }

  /** Keeps a session of which something is noted. */
  async #takeUp(
    { name, identity, sealed }: WantedSession,
    note: SessionNote | undefined,
  ): Promise<FoundSession> {
    if (note?.isEnded === true) {
      this.#sealed?.end(sealed.facts);
      return undefined;
    }
    const session = this.#kept.get(name)?.session ?? this.#keep(identity, sealed, true);
    if (session !== undefined && note !== undefined) await session.apply(note);
    return session ?? "full";
  }

  /** Hears what other replicas note of a session, for as long as it is kept here. */
  #follow(session: HttpSession): () => void {
    const { notes, onWarning } = this.#options;
    const { facts } = session;
    if (notes === undefined || facts === undefined) return () => {};
    const look = async (): Promise<void> => {
      const note = await notes.read(facts);
      if (note === undefined || session.isEnded) return;
      if (!note.isEnded) return await session.apply(note);
      this.#forbid(session);
      session.end();
    };
    return notes.watch(facts, () => {
      look().catch((cause: unknown) => {
        onWarning("What a client said of its session at another replica cannot be read.", cause);
      });
    });
  }

  /** Keeps one session more; gives nothing where there is no room. */
  #keep(
    identity: Identity | undefined,
    sealed: SealedSession | undefined,
    isOpen: boolean,
  ): HttpSession | undefined {
    if (this.#kept.size >= this.#bounds.sessions && !this.#evict(ownerOf(identity))) return undefined;
    const { share } = this.#server;
    const session = new HttpSession(this.#server, {
      identity,
      bounds: this.#bounds,
      budget: this.#budget,
      ...this.#options,
      ...(sealed !== undefined && share !== undefined && { shared: { ...sealed, ...share, isOpen } }),
      onRest: ({ id }) => this.#touch(this.#kept.get(id)),
      onEnd: ({ id }) => {
        stop();
        this.#kept.delete(id);
      },
    });
    const stop = this.#follow(session);
    this.#kept.set(session.id, { session, usedAt: performance.now() });
    this.#watch();
    return session;
  }

  #touch(kept: Kept | undefined): void {
    if (kept === undefined || !this.#kept.delete(kept.session.id)) return;
    kept.usedAt = performance.now();
    this.#kept.set(kept.session.id, kept);
  }

  /**
   * Makes room by ending a session, the one that has been idle for longest first: one of the same owner, else, for an owner with less
   * than a fair share, one of the owner with most, a busy one too if that is more than a fair share.
   */
  #evict(owner: string): boolean {
    const sessions = [...this.#kept.values()].map(({ session }) => session);
    const victim =
      sessions.find((session) => session.idle && session.owner === owner) ?? findGreedy(sessions, owner);
    if (victim !== undefined) this.#drop(victim);
    return victim !== undefined;
  }

  #drop(session: HttpSession): void {
    // A client whose subscriptions are forgotten has to begin anew, or it would wait for ever.
    if (session.hasSubscriptions) this.#forbid(session);
    this.#kept.delete(session.id);
    session.end();
  }

  /** Opens a session that has ended no more. */
  #forbid({ facts }: HttpSession): void {
    if (facts !== undefined) this.#sealed?.end(facts);
  }

  #watch(): void {
    if (this.#timer !== undefined) return;
    const tick = Math.min(Math.max(this.#bounds.sessionIdleMs / 4, 10), 60_000);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      const before = performance.now() - this.#bounds.sessionIdleMs;
      for (const { session, usedAt } of this.#kept.values()) {
        if (usedAt > before) break;
        if (session.idle) this.#drop(session);
      }
      if (this.#kept.size > 0) this.#watch();
    }, tick);
    this.#timer.unref();
  }
}

/** Tells whether this is meant to open a session. */
function isInitialize(body: unknown): boolean {
  const { method } = (body ?? {}) as { readonly method?: unknown };
  return method === "initialize";
}

/** Finds the session of the owner with most that is to go for an owner with less than a fair share; nothing for any other owner. */
function findGreedy(sessions: readonly HttpSession[], owner: string): HttpSession | undefined {
  const counts = new Map([[owner, 0]]);
  for (const session of sessions) counts.set(session.owner, (counts.get(session.owner) ?? 0) + 1);
  const fair = sessions.length / counts.size;
  if ((counts.get(owner) ?? 0) >= fair) return undefined;
  const most = Math.max(...counts.values());
  const greedy = sessions.filter((session) => counts.get(session.owner) === most);
  return (
    greedy.find(({ idle }) => idle) ??
    (most > fair ? greedy[0] : undefined) ??
    sessions.find(({ idle }) => idle)
  );
}

function refuseFull(body: unknown): HttpAnswer {
  return refuse(503, "There are too many sessions; try again later.", {
    id: answeredIdOf(body),
    headers: { "retry-after": "10" },
  });
}
