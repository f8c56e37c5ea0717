import type { McpLogLevel } from "../provider.ts";
import type { McpSession } from "./mcp-session.ts";

type Params = Readonly<Record<string, unknown>>;

/** What was asked for over one session and holds for the next ones too. */
export class StandingWishes {
  readonly #subscribed = new Set<string>();
  #logLevel: McpLogLevel | undefined;

  constructor(logLevel: McpLogLevel | undefined) {
    this.#logLevel = logLevel;
  }

  get logLevel(): McpLogLevel | undefined {
    return this.#logLevel;
  }

  /** The resources that are watched. */
  get uris(): string[] {
    return [...this.#subscribed];
  }

  /** Remembers what a request asked for, if it holds beyond the session; returns how to forget it again. */
  note(method: string, params: Params | undefined): () => void {
    const [uris, level] = [this.uris, this.#logLevel];
    const uri = params?.["uri"];
    if (method === "logging/setLevel") this.#logLevel = params?.["level"] as McpLogLevel;
    if (method === "resources/subscribe" && typeof uri === "string") this.#subscribed.add(uri);
    if (method === "resources/unsubscribe" && typeof uri === "string") this.#subscribed.delete(uri);
    return () => {
      this.#logLevel = level;
      this.#subscribed.clear();
      for (const each of uris) this.#subscribed.add(each);
    };
  }

  /** Asks a server of the 2025 revisions for everything again; gives the failures, which are no reason to have no connection. */
  async restore(session: McpSession, timeoutMs: number): Promise<unknown[]> {
    const requests: [string, Params][] = this.uris.map((uri) => ["resources/subscribe", { uri }]);
    if (this.#logLevel !== undefined && Object.hasOwn(session.facts.capabilities, "logging")) {
      requests.push(["logging/setLevel", { level: this.#logLevel }]);
    }
    const sent = requests.map(([method, params]) =>
      session.request({ method, params, timeoutMs, logLevel: undefined }),
    );
    const ends = await Promise.allSettled(sent);
    return ends.flatMap((end) => (end.status === "rejected" ? [end.reason] : []));
  }
}
