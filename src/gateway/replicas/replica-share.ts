import { ownerOf } from "../../core/access/identity.ts";
import type { HttpAnswer, HttpRequest } from "../../http/exchange.ts";
import type { NodeRequest } from "../../http/node-exchange.ts";
import { MemoryEventLog, type SessionEventLog } from "../../mcp/server/http/session-event-log.ts";
import type { SessionNotes } from "../../mcp/server/http/session-notes.ts";
import type { ServerShare } from "../../mcp/server/mcp-server.ts";
import { SealingKeys } from "../../mcp/server/sealing-keys.ts";
import type { SharedStreams } from "../../openapi/server/shared-streams.ts";
import type { ServeSessionsConfig } from "../config/gateway-config.ts";
import type { GatewayState, ReplicaState } from "../state/gateway-state.ts";
import type { LedAsk, ReplicaLink } from "./replica-link.ts";
import { makeSecret, SharedKey } from "./shared-key.ts";
import { StateEventLog } from "./state-event-log.ts";
import { StateSessionNotes } from "./state-session-notes.ts";

/** What a served gateway shares with its replicas, besides what calls leave behind. */
export interface ReplicaShareOptions {
  readonly state: Pick<GatewayState, "replica" | "replicas" | "report">;
  /** Keys of the config. */
  readonly sessions: ServeSessionsConfig | undefined;
  /** Answers a request that another replica has brought. */
  handle(request: HttpRequest): Promise<HttpAnswer>;
  readonly onWarning: (message: string, cause?: unknown) => void;
}

/** Milliseconds that a gateway waits for its store before it serves what it can without. */
const PATIENCE_MS = 2_000;
/** Headers that belong to one connection, or to how a body is sent. */
const OWN_HEADERS = new Set([
  "connection",
  "content-length",
  "expect",
  "keep-alive",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);
/** Headers of an answer that are about its body, or about asking again. */
const BODY_HEADERS = new Set(["content-type", "content-length", "retry-after"]);

/** Makes a served gateway one of several: it seals with the key of all, and requests reach the replica that holds what they are about. */
export class ReplicaShare {
  readonly #options: ReplicaShareOptions;
  readonly #secret = makeSecret();
  readonly #own = new SealingKeys(this.#secret);
  #given: SealingKeys | undefined;
  #shared: ReplicaState | undefined;
  #key: SharedKey | undefined;
  #link: ReplicaLink | undefined;
  #log: SessionEventLog | undefined;
  #opening: Promise<void> | undefined;
  #isClosed = false;

  constructor(options: ReplicaShareOptions) {
    this.#options = options;
    this.set(options.sessions);
  }

  /** Seals with other keys of the config from now on. */
  set(sessions: ServeSessionsConfig | undefined): void {
    this.#given = sessions?.key === undefined ? undefined : new SealingKeys(sessions.key);
  }

  /** What MCP servers share by these settings; nothing where nobody has a key, or the store to keep one. */
  serverShare(sessions: ServeSessionsConfig | undefined): ServerShare | undefined {
    const { replica, report } = this.#options.state;
    const given = sessions?.key === undefined ? undefined : new SealingKeys(sessions.key);
    const isAlone = report.call(this.#options.state).store === "memory";
    if (given === undefined && isAlone) return undefined;
    return { keys: given ?? this.#own, replica, leads: true };
  }

  /** Where replicas find each other's streams, of MCP and of the HTTP API; of this process alone where there is no store. */
  get log(): SessionEventLog {
    const isAlone = this.#options.state.report().store === "memory";
    this.#log ??= isAlone
      ? new MemoryEventLog()
      : new StateEventLog({ collection: "streams", shared: () => this.#shared });
    return this.#log;
  }

  /** What replicas note of sessions; nothing where there is no store. */
  get notes(): SessionNotes | undefined {
    if (this.#options.state.report().store === "memory") return undefined;
    return new StateSessionNotes(() => this.#shared);
  }

  /** What replicas share of subscriptions over HTTP; nothing where there is no store. */
  get streams(): SharedStreams | undefined {
    if (this.#options.state.report().store === "memory") return undefined;
    return { replica: this.#options.state.replica, log: this.log };
  }

  /** Waits a while for what replicas share; what comes later is shared from then on. */
  async start(): Promise<void> {
    if (this.#options.state.report().store === "memory") return;
    this.#opening ??= this.#open();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, PATIENCE_MS);
    });
    await Promise.race([this.#opening, late]);
    clearTimeout(timer);
  }

  /** Answers a request that another replica holds what it is about: with what that one says, or why it says nothing. */
  async lead(request: NodeRequest, answer: HttpAnswer): Promise<HttpAnswer> {
    const { heldBy } = answer;
    if (heldBy === undefined) return answer;
    const { replica, body = new Uint8Array() } = heldBy;
    const link = this.#link;
    const ask = toAsk(request, body);
    const led = link === undefined ? undefined : await link.lead(replica, ask, request.signal);
    if (led?.state === "answered") return led.answer;
    if (led?.state === "full") return toPlain(answer);
    const isGone = (await this.#shared?.lease.isGone(replica).catch(() => false)) ?? false;
    return inPlaceOf(answer, await heldBy.otherwise(isGone));
  }

  /** Leaves the others; what they wait for here is ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#key?.close();
    await this.#log?.close();
    await this.#link?.close();
  }

  async #open(): Promise<void> {
    const { state, handle, onWarning } = this.#options;
    const shared = await state.replicas();
    if (shared === undefined || this.#isClosed) return;
    this.#shared = shared;
    const key = new SharedKey(shared.store, this.#own, { secret: this.#secret, onWarning });
    this.#key = key;
    await key.look();
    const { broker, lease } = shared;
    if (broker === undefined || this.#isClosed) return;
    const { ReplicaLink } = await import("./replica-link.ts");
    const { replica } = state;
    const link = new ReplicaLink(broker, {
      replica,
      keys: () => this.#given ?? this.#own,
      handle,
      onWarning,
    });
    try {
      await link.start();
      // Those that ask for it are told from this that it is there.
      await lease.hold();
      this.#link = link;
    } catch (cause) {
      onWarning("Requests are not brought to other replicas, and none are taken from them.", cause);
    }
    if (this.#isClosed) await link.close();
  }
}

function toAsk(request: NodeRequest, body: Uint8Array): LedAsk {
  const { method, path, query, origin, message, owner } = request;
  const headers: Record<string, string> = {};
  for (const name of Object.keys(message.headers)) {
    const value = OWN_HEADERS.has(name) ? undefined : request.header(name);
    if (value !== undefined) headers[name] = value;
  }
  return { method, path, query, origin, headers, body, owner: owner ?? ownerOf(undefined) };
}

function toPlain({ status, headers, body }: HttpAnswer): HttpAnswer {
  return { status, headers, body };
}

/** What every answer says stays; what is about the body is that of the other one. */
function inPlaceOf(answer: HttpAnswer, { status, headers, body }: HttpAnswer): HttpAnswer {
  const kept = Object.entries(answer.headers).filter(([name]) => !BODY_HEADERS.has(name));
  return { status, headers: { ...Object.fromEntries(kept), ...headers }, body };
}
