import type { McpSession } from "./mcp-session.ts";

/** Sessions that were lost or replaced, until they are closed. */
export class RetiredSessions {
  readonly #open = new Set<McpSession>();

  /** Closes a session now. */
  end(session: McpSession): void {
    this.#open.add(session);
    void session.close().finally(() => this.#open.delete(session));
  }

  /** Closes a session once nothing runs over it any more, or after so many milliseconds. */
  retire(session: McpSession, patienceMs: number): void {
    this.#open.add(session);
    const timer = setTimeout(() => this.end(session), patienceMs);
    timer.unref();
    void session.idle().then(() => {
      clearTimeout(timer);
      this.end(session);
    });
  }

  /** Closes all that are left; resolves when they are closed. */
  async closeAll(): Promise<void> {
    await Promise.all([...this.#open].map((session) => session.close()));
  }
}
