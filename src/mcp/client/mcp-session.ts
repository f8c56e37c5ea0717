import { CallError } from "../../core/errors/errors.ts";
import { isValueTooDeep } from "../../core/json/json-depth.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { SourceSecrets } from "../../core/secrets/source-secrets.ts";
import type { Channel, Loss } from "../channels/channel.ts";
import { metaOf, type Params, ProtocolError, writeCall } from "../protocol/messages.ts";
import type { RequestEnd, RequestWaiter, RpcPeer } from "../protocol/peer.ts";
import { META_KEYS } from "../protocol/revisions.ts";
import type { McpLogLevel, ServerLog } from "../provider.ts";
import { CallersInFlight } from "./callers-in-flight.ts";
import { fromChannelFailure, isSessionGone } from "./channel-failure.ts";
import type { Handshake, KnownServer } from "./handshake.ts";
import { answerRound, type InputSide, wantsInput } from "./input-rounds.ts";
import type { McpRequestOptions, McpServerFacts } from "./mcp-connection.ts";
import type { McpLimits } from "./mcp-limits.ts";
import { type ClientInfo, toOutgoingParams } from "./outgoing-params.ts";
import { RequestStop } from "./request-stop.ts";
import { type AskedOfServer, fromRpcError } from "./rpc-error.ts";
import type { ServerQuestions } from "./server-questions.ts";

/** The server no longer knows the session: what was sent has not run, and a new session can be made. */
export class SessionGone extends Error {
  override readonly name = "SessionGone";
}

/** What a session is made of. */
export interface SessionParts {
  readonly peer: RpcPeer;
  readonly channel: Channel;
  readonly handshake: Handshake;
  readonly questions: ServerQuestions;
  readonly limits: McpLimits;
  readonly roots: readonly { readonly uri: string; readonly name?: string }[];
  readonly serverName: string;
  readonly secrets: SourceSecrets;
  readonly clientInfo: ClientInfo;
}

/** One request, complete but for the connection. */
export interface SessionRequest extends McpRequestOptions {
  readonly method: string;
  readonly params: Params | undefined;
  readonly timeoutMs: number;
  readonly logLevel: McpLogLevel | undefined;
}

/** Milliseconds for which a line of the log may still be about a request that was answered. */
const LOG_LINGER_MS = 2_000;

/** What is asked for everybody, and says nothing of anybody. */
const OF_NOBODY = /\/list$|^ping$|^logging\//;

/** A request under way: its id, and how it is given up, which tells whether it had no answer yet. */
interface Exchange {
  readonly id: number;
  giveUp(): boolean;
}

/** A stream of changes of a 2026-07-28 server. */
export interface Subscription {
  /** Resolves when it has ended, whoever ended it. */
  readonly closed: Promise<void>;
  close(): void;
}

/** One connection from handshake to loss. */
export class McpSession {
  readonly facts: McpServerFacts;
  /** Whether the 2026-07-28 revision or a later one is spoken. */
  readonly isModern: boolean;
  /** What it taught of the server, for the next connection. */
  readonly known: KnownServer | undefined;
  readonly startedAt = Date.now();
  readonly #parts: SessionParts;
  /** Whose requests the server may be logging about: all there are, as it does not say which one it means. */
  readonly #logged = new CallersInFlight<Pick<SessionRequest, "party" | "onServerLog">>({
    counts: (method) => !OF_NOBODY.test(method),
    lingerMs: LOG_LINGER_MS,
  });
  /** Streams of changes that wait to be acknowledged or are open, by the id of their request. */
  readonly #subscriptions = new Map<number, { acknowledge(): void; end(failure: unknown): void }>();
  /** The subscription that was acknowledged last. */
  #acknowledged: number | undefined;
  #lost: Loss | undefined;
  #closed: Promise<void> | undefined;
  #running = 0;
  #tellIdle: (() => void) | undefined;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.isModern = parts.handshake.era === "modern";
    this.known = parts.handshake.known;
    this.facts = toFacts(parts.handshake);
  }

  /** An answer came to a request that was given up. */
  noteLateAnswer(id: number): void {
    this.#parts.questions.answered(id);
    this.#logged.answered(id);
  }

  /** A request that was given up goes on. */
  noteLateProgress(id: number): void {
    this.#parts.questions.progressed(id);
    this.#logged.progressed(id);
  }

  /** Rejects with a `CallError`, or with `SessionGone` when the request may be sent again over a new session. */
  async request(request: SessionRequest): Promise<Params> {
    const { method, params, caller } = request;
    const { serverName: server, secrets } = this.#parts;
    const asked: AskedOfServer = { method, params, server, secrets };
    const stop = new RequestStop(asked, request.timeoutMs, request.signal);
    const leave = this.isModern ? undefined : this.#parts.questions.enter(method, caller);
    const leaveLog = this.#logged.enter(method, { party: request.party, onServerLog: request.onServerLog });
    this.#running += 1;
    try {
      return await this.#run(request, asked, stop);
    } finally {
      stop.end();
      leave?.(stop.givenUpAs);
      leaveLog(stop.givenUpAs);
      this.#running -= 1;
      if (this.#running === 0) this.#tellIdle?.();
    }
  }

  /** Hands a line of the server's log to whoever it can only be for, if there is one. */
  hear(log: ServerLog): void {
    const found = this.#logged.find();
    if (found.kind === "one") found.caller?.onServerLog?.(log);
  }

  async notify(method: string, params: Params | undefined): Promise<void> {
    await this.#parts.channel.send(writeCall(method, params));
  }

  /** Asks a 2026-07-28 server for its changes; resolves when it has said that it will tell them. */
  subscribe(notifications: object, timeoutMs: number, signal: AbortSignal): Promise<Subscription> {
    let tellClosed = (): void => {};
    const closed = new Promise<void>((resolve) => {
      tellClosed = resolve;
    });
    return new Promise((resolve, reject) => {
      let exchange: Exchange | undefined;
      const end = (failure: unknown): void => {
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
        if (exchange !== undefined) this.#subscriptions.delete(exchange.id);
        reject(failure ?? new CallError("UNAVAILABLE", "The server ended the subscription."));
        tellClosed();
      };
      const close = (failure?: unknown): void => {
        exchange?.giveUp();
        end(failure);
      };
      const onAbort = (): void => close(signal.reason);
      const late = (): void =>
        close(new CallError("TIMEOUT", "The subscription was not acknowledged in time."));
      const timer = setTimeout(late, timeoutMs);
      const acknowledge = (): void => {
        clearTimeout(timer);
        resolve({ closed, close });
      };
      signal.addEventListener("abort", onAbort, { once: true });
      try {
        const params = toOutgoingParams({ notifications }, this.#requestFacts({}));
        exchange = this.#start("subscriptions/listen", params, { onEnd: (ended) => end(failureIn(ended)) });
      } catch (failure) {
        end(failure);
        return;
      }
      // A server in this process may have answered already.
      if (this.#acknowledged === exchange.id) acknowledge();
      this.#subscriptions.set(exchange.id, { acknowledge, end });
    });
  }

  /** Hears what the server says of a stream of changes; false where it is about something else. */
  hearSubscription(method: string, params: Params): boolean {
    if (method === "notifications/cancelled") {
      this.#subscriptions.get(Number(params["requestId"]))?.end(undefined);
      return true;
    }
    if (method !== "notifications/subscriptions/acknowledged") return false;
    this.#acknowledged = Number(metaOf(params)?.[META_KEYS.subscriptionId]);
    this.#subscriptions.get(this.#acknowledged)?.acknowledge();
    return true;
  }

  /** Resolves once no request is under way; for a session that gets no more of them. */
  idle(): Promise<void> {
    if (this.#running === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#tellIdle = resolve;
    });
  }

  /** The channel is gone; whoever waits is told why. */
  lose(loss: Loss): void {
    this.#lost ??= loss;
    this.#parts.peer.close();
  }

  /** Resolves when all of it is gone, however often it is asked to. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.lose({ reason: "the connection was closed" });
    await this.#parts.channel.close().catch(() => {});
  }

  async #run(request: SessionRequest, asked: AskedOfServer, stop: RequestStop): Promise<Params> {
    const { caller } = request;
    const { limits, roots } = this.#parts;
    const first = toOutgoingParams(request.params, this.isModern ? this.#requestFacts(request) : undefined);
    let params = first;
    for (let round = 0; ; round++) {
      const result = await this.#send(request, params, asked, stop);
      if (!this.isModern || !wantsInput(result, asked)) return result;
      if (round >= limits.rounds) {
        const what = `${asked.server} asks for input for more than ${limits.rounds} rounds of ${asked.method}.`;
        throw new CallError("EXECUTION_ERROR", what);
      }
      const side: InputSide = { asked, caller, roots, limits, signal: stop.signal };
      const inputRequests = asked.secrets.maskResult(result["inputRequests"]);
      const answers = await answerRound({ ...result, inputRequests }, side).catch((error: unknown) => {
        stop.throwIfStopped();
        throw error;
      });
      params = { ...first, ...answers };
    }
  }

  #requestFacts({ caller, logLevel }: Partial<Pick<SessionRequest, "caller" | "logLevel">>) {
    const { clientInfo } = this.#parts;
    return { protocolVersion: this.facts.protocolVersion, clientInfo, caller, logLevel };
  }

  #send(
    { method, onProgress, inputSchema }: SessionRequest,
    params: Params,
    asked: AskedOfServer,
    stop: RequestStop,
  ): Promise<Params> {
    stop.throwIfStopped();
    return new Promise((resolve, reject) => {
      const onEnd = (end: RequestEnd): void => {
        const outcome = this.#toResult(end, asked);
        if (outcome instanceof Error) reject(outcome);
        else resolve(outcome);
      };
      try {
        const exchange = this.#start(method, params, { onEnd, onProgress, inputSchema });
        stop.watch((failure) => {
          if (exchange.giveUp()) stop.givenUpAs = exchange.id;
          reject(failure);
        });
      } catch (error) {
        reject(this.#toFailure(error, asked));
      }
    });
  }

  /** Sends a request; where each has an exchange of its own, that ends with the request. */
  #start(method: string, given: Params, waiter: RequestWaiter): Exchange {
    const { peer, channel } = this.#parts;
    const stop = channel.isShared ? undefined : new AbortController();
    const params = Object.keys(given).length === 0 ? undefined : given;
    const id = peer.request(method, params, stop === undefined ? waiter : { ...waiter, signal: stop.signal });
    return {
      id,
      giveUp: () => {
        const isUnanswered = peer.drop(id);
        if (isUnanswered && (channel.isShared || !this.isModern)) this.#cancel(id, metaOf(given));
        stop?.abort();
        return isUnanswered;
      },
    };
  }

  #cancel(requestId: number, meta: Params | undefined): void {
    const params = {
      requestId,
      reason: "Nobody waits for it any more.",
      ...(meta !== undefined && { _meta: meta }),
    };
    this.notify("notifications/cancelled", params).catch(() => {});
  }

  #toResult(end: RequestEnd, asked: AskedOfServer): Params | Error {
    switch (end.kind) {
      case "error":
        return fromRpcError(end.error, asked);
      case "failure":
        return this.#toFailure(end.failure, asked);
      case "result": {
        const { result } = end;
        // A pipe has looked at the depth already; what the platform's own reader took may be of any. Tools are looked at one by one.
        const isLooked = this.#parts.channel.isShared || asked.method === "tools/list";
        const isDeep = !isLooked && isValueTooDeep(result, Number.MAX_VALUE);
        if (isPlainObject(result) && !isDeep) return result;
        const what = isDeep ? "a result that is nested too deeply" : "a result that is no object";
        return new CallError("EXECUTION_ERROR", `The MCP server answered ${asked.method} with ${what}.`);
      }
    }
  }

  #toFailure(error: unknown, asked: AskedOfServer): Error {
    if (this.#lost !== undefined) return toUnavailable(this.#lost, asked);
    if (this.#parts.channel.hasSession && !this.isModern && isSessionGone(error)) {
      return new SessionGone("The server does not know the session.", { cause: error });
    }
    return fromChannelFailure(error, asked);
  }
}

/** Says of a request that it could not be made, or that its answer will not come. */
export function toUnavailable({ reason, said, cause }: Loss, { method, server }: AskedOfServer): CallError {
  return new CallError("UNAVAILABLE", `${server} cannot answer ${method}: ${reason}.`, {
    cause,
    ...(said !== undefined && { details: { said } }),
    stack: false,
  });
}

function toFacts({ era, revision, result }: Handshake): McpServerFacts {
  const info = era === "modern" ? metaOf(result)?.[META_KEYS.serverInfo] : result["serverInfo"];
  const { capabilities, instructions } = result;
  return {
    protocolVersion: revision,
    capabilities: isPlainObject(capabilities) ? capabilities : {},
    serverInfo: isPlainObject(info) ? info : undefined,
    instructions: typeof instructions === "string" ? instructions : undefined,
  };
}

function failureIn(end: RequestEnd): unknown {
  if (end.kind === "failure") return end.failure;
  return end.kind === "error" ? new ProtocolError(end.error.code, end.error.message) : undefined;
}
