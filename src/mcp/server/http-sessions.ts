import { type AuthInfo, isInitializeRequest } from "@modelcontextprotocol/server";
import { ownerOf } from "../../core/access/identity.ts";
import { createRefusal, requestIdOf } from "./http-refusal.ts";
import { HttpSession, type SessionBounds } from "./http-session.ts";
import { EventBudget } from "./http-session-events.ts";
import type { McpPeer, McpServer } from "./mcp-server.ts";

/** Bounds of all sessions together. */
export interface SessionsBounds extends SessionBounds {
  readonly sessions: number;
  readonly sessionIdleMs: number;
}

/** One request of a 2025 client. */
export interface SessionRequest {
  readonly request: Request;
  /** What was posted, if anything. */
  readonly body?: unknown;
  readonly identity?: McpPeer["identity"];
  readonly authInfo?: AuthInfo | undefined;
}

interface Kept {
  readonly session: HttpSession;
  /** Of `performance.now()`. */
  usedAt: number;
}

/** The sessions of 2025 clients, each for whoever opened it and nobody else. */
export class HttpSessions {
  readonly #server: McpServer;
  readonly #bounds: SessionsBounds;
  readonly #budget: EventBudget;
  /** Least recently used first. */
  readonly #kept = new Map<string, Kept>();
  #timer: NodeJS.Timeout | undefined;
  #opening = 0;

  constructor(server: McpServer, bounds: SessionsBounds) {
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
  async serve(asked: SessionRequest): Promise<Response> {
    const { request, body, identity, authInfo } = asked;
    if (isInitialize(body)) {
      if (isInitializeRequest(body)) return this.#open(asked);
      const message = "To initialize takes a protocolVersion, capabilities and a clientInfo.";
      return createRefusal(400, message, { code: -32_602, id: requestIdOf(body) });
    }
    const id = request.headers.get("mcp-session-id");
    if (id === null) {
      return createRefusal(400, "The Mcp-Session-Id header is missing; initialize gives one.", {
        id: requestIdOf(body),
      });
    }
    const kept = this.#kept.get(id);
    if (
      kept === undefined ||
      kept.session.owner !== ownerOf(identity === "anonymous" ? undefined : identity)
    ) {
      return createRefusal(404, "There is no such session; initialize again.", {
        code: -32_001,
        id: requestIdOf(body),
      });
    }
    this.#touch(kept);
    return kept.session.serve(request, body, authInfo);
  }

  /** Ends the streams that carry what nobody asked for; requests go on. */
  endStreams(): void {
    for (const { session } of this.#kept.values()) session.endStream();
  }

  /** Ends all sessions and what runs in them. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    const sessions = [...this.#kept.values()];
    this.#kept.clear();
    await Promise.allSettled(sessions.map(({ session }) => session.end()));
  }

  async #open({ request, body, identity, authInfo }: SessionRequest): Promise<Response> {
    const owner = ownerOf(identity === "anonymous" ? undefined : identity);
    if (this.#kept.size + this.#opening >= this.#bounds.sessions && !this.#evict(owner)) {
      return createRefusal(503, "There are too many sessions; try again later.", {
        id: requestIdOf(body),
        headers: { "retry-after": "10" },
      });
    }
    this.#opening += 1;
    let session: HttpSession | undefined;
    let kept = false;
    try {
      const server = this.#server.open({ era: "legacy", identity, stays: true });
      const listeners = {
        opened: (opened: HttpSession) => {
          kept = true;
          this.#opening -= 1;
          this.#keep(opened);
        },
        rested: (rested: HttpSession) => this.#touch(this.#kept.get(rested.id)),
        ended: (ended: HttpSession) => this.#kept.delete(ended.id),
      };
      session = new HttpSession(server, listeners, { owner, bounds: this.#bounds, budget: this.#budget });
      await session.start();
      return await session.serve(request, body, authInfo);
    } finally {
      if (!kept) {
        this.#opening -= 1;
        await session?.end().catch(() => {});
      }
    }
  }

  #keep(session: HttpSession): void {
    this.#kept.set(session.id, { session, usedAt: performance.now() });
    this.#watch();
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
    session.end().catch(() => {});
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
