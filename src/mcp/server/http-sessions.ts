import { type Identity, ownerOf } from "../../core/access/identity.ts";
import type { HttpAnswer, HttpRequest } from "../../http/exchange.ts";
import { initializeFault } from "../protocol/revisions.ts";
import { refuse, requestIdOf } from "./http-refusal.ts";
import { HttpSession, refuseAccept, type SessionBounds } from "./http-session.ts";
import { EventBudget } from "./http-session-events.ts";
import type { ServedMcp } from "./mcp-server.ts";

/** Bounds of all sessions together. */
export interface SessionsBounds extends SessionBounds {
  readonly sessions: number;
  readonly sessionIdleMs: number;
}

/** One request of a 2025 client. */
export interface SessionRequest {
  readonly request: HttpRequest;
  /** What was posted, if anything. */
  readonly body?: unknown;
  readonly identity: Identity | undefined;
}

interface Kept {
  readonly session: HttpSession;
  /** Of `performance.now()`. */
  usedAt: number;
}

/** The sessions of 2025 clients, each for whoever opened it and nobody else. */
export class HttpSessions {
  readonly #server: ServedMcp;
  readonly #bounds: SessionsBounds;
  readonly #budget: EventBudget;
  /** Least recently used first. */
  readonly #kept = new Map<string, Kept>();
  #timer: NodeJS.Timeout | undefined;

  constructor(server: ServedMcp, bounds: SessionsBounds) {
    this.#server = server;
    this.#bounds = bounds;
    this.#budget = new EventBudget(bounds.allEventBytes);
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
  serve(asked: SessionRequest): Promise<HttpAnswer> | HttpAnswer {
    const { request, body, identity } = asked;
    if (isInitialize(body)) {
      const fault = initializeFault((body as { readonly params?: never }).params);
      if (fault === undefined) return this.#open(asked);
      return refuse(400, fault.message, { code: fault.code, id: requestIdOf(body) });
    }
    const name = request.header("mcp-session-id");
    if (name === undefined) {
      const id = requestIdOf(body);
      return refuse(400, "The Mcp-Session-Id header is missing; initialize gives one.", { id });
    }
    const kept = this.#kept.get(name);
    if (kept === undefined || kept.session.owner !== ownerOf(identity)) {
      const message = "There is no such session; initialize again.";
      return refuse(404, message, { code: -32_001, id: requestIdOf(body) });
    }
    this.#touch(kept);
    return kept.session.serve(request, body, identity);
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

  async #open({ request, body, identity }: SessionRequest): Promise<HttpAnswer> {
    const refusal = refuseAccept(request);
    if (refusal !== undefined) return refusal;
    if (this.#kept.size >= this.#bounds.sessions && !this.#evict(ownerOf(identity))) {
      return refuse(503, "There are too many sessions; try again later.", {
        id: requestIdOf(body),
        headers: { "retry-after": "10" },
      });
    }
    const session = new HttpSession(this.#server, {
      identity,
      bounds: this.#bounds,
      budget: this.#budget,
      onRest: ({ id }) => this.#touch(this.#kept.get(id)),
      onEnd: ({ id }) => this.#kept.delete(id),
    });
    this.#kept.set(session.id, { session, usedAt: performance.now() });
    this.#watch();
    const answer = await session.serve(request, body, identity);
    if (!session.isOpen) session.end();
    return answer;
  }

  #touch(kept: Kept | undefined): void {
    if (kept === undefined || !this.#kept.delete(kept.session.id)) return;
    kept.usedAt = performance.now();
    this.#kept.set(kept.session.id, kept);
  }

  /**
   * Makes room by ending a session, the one that has been idle for longest first: one of the same owner, else, for an owner with less
   * than a fair share, one of whoever has most, a busy one too if that is more than a fair share.
   */
  #evict(owner: string): boolean {
    const sessions = [...this.#kept.values()].map(({ session }) => session);
    const victim =
      sessions.find((session) => session.idle && session.owner === owner) ?? findGreedy(sessions, owner);
    if (victim !== undefined) this.#drop(victim);
    return victim !== undefined;
  }

  #drop(session: HttpSession): void {
    this.#kept.delete(session.id);
    session.end();
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
