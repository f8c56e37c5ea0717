import type { Identity } from "../../core/access/identity.ts";
import { CallError } from "../../core/errors/errors.ts";
import { monotonicNow } from "../../core/execution/cancellation.ts";
import type {
  McpConnection,
  McpConnectionEvent,
  McpLink,
  McpRequestOptions,
} from "../../mcp/client/mcp-connection.ts";
import type { GrantOwner } from "./login-tickets.ts";

/** Callers of one server that are connected at a time, where the config says nothing. */
const MOST_CONNECTIONS = 100;
/** Milliseconds after which the connection of a caller who does nothing is closed, where the config says nothing. */
const IDLE_MS = 300_000;

/** As whom requests to a server are made. */
export interface ActingCaller {
  /** Whose connection it is; with another one it is another connection. */
  readonly owner: GrantOwner;
  /** Of the grant that the connection is made with; with another one it is made anew. */
  readonly grant: string;
  /** Makes the connection; it is opened here. */
  create(): McpConnection | Promise<McpConnection>;
}

/** How a server is asked as each caller. */
export interface CallerConnectionsOptions {
  /** The gateway's own connection, which lists the tools. */
  readonly own: McpConnection;
  readonly connections?: number | undefined;
  readonly idleMs?: number | undefined;
  /** Says as whom a request is made; asks the caller for what is missing, also where they have what was `lost`. */
  actAs(
    identity: Identity | undefined,
    options: McpRequestOptions,
    lost: ActingCaller | undefined,
  ): Promise<ActingCaller>;
  /** The same for what is not worth a question: nothing for a caller who has nothing. */
  known(identity: Identity | undefined): Promise<ActingCaller | undefined>;
  /** Tells whether a request failed for want of a grant, so that the caller is asked again; takes what is good for nothing away. */
  isLost(thrown: unknown, caller: ActingCaller): Promise<boolean>;
}

/** What the gateway asks for itself. */
const OWN: ReadonlySet<string> = new Set(["tools/list", "logging/setLevel", "ping"]);
/** What is empty for callers who have nothing to ask as. */
const LISTS: Readonly<Record<string, string>> = {
  "resources/list": "resources",
  "resources/templates/list": "resourceTemplates",
  "prompts/list": "prompts",
};
/** What outlasts a request, and would be told to everybody. */
const LASTING: ReadonlySet<string> = new Set(["resources/subscribe", "resources/unsubscribe"]);

interface Held {
  readonly owner: string;
  readonly grant: string;
  readonly opened: Promise<McpConnection>;
  running: number;
  /** On the monotonic clock. */
  usedAt: number;
  /** Whether it gets no more requests, and is closed when it has none. */
  isLeft: boolean;
}

interface CallerRequest {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>> | undefined;
}

/**
 * One connection for each caller beside the gateway's own. Sessions, questions, restarts and credentials belong to one caller; a connection
 * is made with the first request, made again by itself where it is lost, and closed when it is idle or its grant has changed.
 */
export class CallerConnections implements McpLink {
  readonly listsByCaller = true;
  readonly #options: CallerConnectionsOptions;
  readonly #most: number;
  readonly #idleMs: number;
  /** By caller; the one not used for longest stands first. */
  readonly #held = new Map<string, Held>();
  /** Of earlier grants, until their requests have ended. */
  readonly #leaving = new Set<Held>();
  #sweeper: ReturnType<typeof setInterval> | undefined;
  #isClosed = false;

  constructor(options: CallerConnectionsOptions) {
    this.#options = options;
    this.#most = options.connections ?? MOST_CONNECTIONS;
    this.#idleMs = options.idleMs ?? IDLE_MS;
  }

  get secrets() {
    return this.#options.own.secrets;
  }

  get limits() {
    return this.#options.own.limits;
  }

  get roots() {
    return this.#options.own.roots;
  }

  /** Nobody's subscriptions are told to anybody: a server that offers them is said not to. */
  get server() {
    const { server } = this.#options.own;
    const { resources } = server.capabilities;
    if (typeof resources !== "object" || resources === null) return server;
    const { subscribe: _, ...others } = resources as Readonly<Record<string, unknown>>;
    return { ...server, capabilities: { ...server.capabilities, resources: others } };
  }

  get state() {
    return this.#options.own.state;
  }

  asked(method: string, params?: Readonly<Record<string, unknown>>) {
    return this.#options.own.asked(method, params);
  }

  /** How many callers are connected. */
  get size(): number {
    return this.#held.size + this.#leaving.size;
  }

  onEvent(listener: (event: McpConnectionEvent) => void): () => void {
    return this.#options.own.onEvent(listener);
  }

  async request(
    method: string,
    params: Readonly<Record<string, unknown>> | undefined,
    options: McpRequestOptions = {},
  ): Promise<Readonly<Record<string, unknown>>> {
    if (OWN.has(method)) return await this.#options.own.request(method, params, options);
    if (LASTING.has(method)) throw notOffered();
    const identity = options.call?.identity;
    const list = LISTS[method];
    const request = { method, params };
    if (list !== undefined) {
      const known = await this.#options.known(identity);
      return known === undefined ? { [list]: [] } : await this.#send(known, request, options);
    }
    const caller = await this.#options.actAs(identity, options, undefined);
    try {
      return await this.#send(caller, request, options);
    } catch (thrown) {
      // The server refused it, so that it never ran.
      if (!(await this.#options.isLost(thrown, caller))) throw thrown;
      const again = await this.#options.actAs(identity, options, caller);
      return await this.#send(again, request, options);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#sweeper);
    const all = [...this.#held.values(), ...this.#leaving];
    this.#held.clear();
    this.#leaving.clear();
    await Promise.all([this.#options.own.close(), ...all.map(closeHeld)]);
  }

  async #send(
    caller: ActingCaller,
    { method, params }: CallerRequest,
    options: McpRequestOptions,
  ): Promise<Readonly<Record<string, unknown>>> {
    const held = this.#take(caller);
    held.running += 1;
    try {
      const connection = await held.opened;
      return connection.secrets.maskResult(await connection.request(method, params, options));
    } finally {
      held.running -= 1;
      held.usedAt = monotonicNow();
      if (held.isLeft && held.running === 0) this.#end(held);
    }
  }

  #take(caller: ActingCaller): Held {
    if (this.#isClosed) throw closed();
    const { key } = caller.owner;
    const known = this.#held.get(key);
    if (known !== undefined && known.grant === caller.grant) {
      this.#held.delete(key);
      this.#held.set(key, known);
      return known;
    }
    if (known !== undefined) this.#leave(known);
    if (this.#held.size >= this.#most) this.#evict();
    const opened = this.#open(caller);
    const held: Held = {
      owner: key,
      grant: caller.grant,
      opened,
      running: 0,
      usedAt: monotonicNow(),
      isLeft: false,
    };
    this.#held.set(key, held);
    this.#sweeper ??= setInterval(() => this.#sweep(), Math.min(this.#idleMs, 30_000)).unref();
    // One that cannot be made is made again for the next request.
    opened.catch(() => this.#forget(held));
    return held;
  }

  async #open(caller: ActingCaller): Promise<McpConnection> {
    const connection = await caller.create();
    try {
      await connection.open();
    } catch (thrown) {
      await connection.close();
      throw thrown;
    }
    return connection;
  }

  /** Makes room: the caller that has been idle for longest gives up its connection. */
  #evict(): void {
    for (const held of this.#held.values()) {
      if (held.running > 0) continue;
      this.#leave(held);
      return;
    }
    throw new CallError(
      "RESOURCE_EXHAUSTED",
      `All ${this.#most} connections of callers to this server are busy; try again later.`,
      { retryable: true, stack: false },
    );
  }

  #sweep(): void {
    const before = monotonicNow() - this.#idleMs;
    for (const held of this.#held.values()) {
      if (held.running === 0 && held.usedAt <= before) this.#leave(held);
    }
  }

  /** Gives it no more requests. */
  #leave(held: Held): void {
    this.#forget(held);
    held.isLeft = true;
    this.#leaving.add(held);
    if (held.running === 0) this.#end(held);
  }

  #forget(held: Held): void {
    if (this.#held.get(held.owner) === held) this.#held.delete(held.owner);
  }

  #end(held: Held): void {
    void closeHeld(held).finally(() => this.#leaving.delete(held));
  }
}

async function closeHeld({ opened }: Held): Promise<void> {
  await opened.then((connection) => connection.close()).catch(() => {});
}

function notOffered(): CallError {
  const message = "Resources of a server that is asked as each caller cannot be subscribed to.";
  return new CallError("NOT_IMPLEMENTED", message, { stack: false });
}

function closed(): CallError {
  return new CallError("UNAVAILABLE", "The connection is closed.", { stack: false });
}
