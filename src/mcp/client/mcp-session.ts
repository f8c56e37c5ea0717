import type { Client } from "@modelcontextprotocol/client";
import { CallError } from "../../core/errors/errors.ts";
import { LONGEST_DELAY } from "../../core/execution/deadline.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { SourceSecrets } from "../../core/secrets/source-secrets.ts";
import type { McpLogLevel, ServerLog } from "../provider.ts";
import { CallersInFlight } from "./callers-in-flight.ts";
import { answerRound, type InputSide, wantsInput } from "./input-rounds.ts";
import type { McpRequestOptions, McpServerFacts } from "./mcp-connection.ts";
import type { McpLimits } from "./mcp-limits.ts";
import type { Channel, Loss } from "./open-channel.ts";
import { type ClientInfo, hasMirroredParams, toOutgoingParams } from "./outgoing-params.ts";
import { RAW_REQUEST } from "./raw-mark.ts";
import { RawRequest } from "./raw-request.ts";
import type { RawTransport } from "./raw-transport.ts";
import { RequestStop } from "./request-stop.ts";
import { type AskedOfServer, fromRpcError } from "./rpc-error.ts";
import { fromSdkError, isSessionGone } from "./sdk-error.ts";
import type { ServerQuestions } from "./server-questions.ts";

type Params = Readonly<Record<string, unknown>>;

/** The server no longer knows the session: what was sent has not run, and a new session can be made. */
export class SessionGone extends Error {
  override readonly name = "SessionGone";
}

/** What a session is made of. */
export interface SessionParts {
  readonly client: Client;
  readonly raw: RawTransport;
  readonly channel: Channel;
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

/** Takes every result: what counts is kept elsewhere. */
const ANY_RESULT = {
  "~standard": { version: 1, vendor: "waybill", validate: (value: unknown) => ({ value }) },
} as const;

/** One connection from handshake to loss. */
export class McpSession {
  readonly facts: McpServerFacts;
  /** Whether the 2026-07-28 revision or a later one is spoken. */
  readonly isModern: boolean;
  readonly startedAt = Date.now();
  readonly #parts: SessionParts;
  /** Whose requests the server may be logging about: all there are, as it does not say which one it means. */
  readonly #logged = new CallersInFlight<Pick<SessionRequest, "party" | "onServerLog">>({
    counts: (method) => !OF_NOBODY.test(method),
    lingerMs: LOG_LINGER_MS,
  });
  #lost: Loss | undefined;
  #closed: Promise<void> | undefined;
  #running = 0;
  #tellIdle: (() => void) | undefined;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.isModern = parts.raw.handshake?.method === "server/discover";
    this.facts = toFacts(parts, this.isModern);
    parts.raw.onLateAnswer = (id) => {
      parts.questions.answered(id);
      this.#logged.answered(id);
    };
    parts.raw.onLateProgress = (id) => {
      parts.questions.progressed(id);
      this.#logged.progressed(id);
    };
  }

  get client(): Client {
    return this.#parts.client;
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

  notify(method: string, params: Params | undefined): Promise<void> {
    return this.#parts.client.notification({ method, ...(params === undefined ? {} : { params }) });
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
    this.#parts.questions.cancelAll();
  }

  /** Resolves when all of it is gone, however often it is asked to. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.lose({ reason: "the connection was closed" });
    await this.#parts.channel.close().catch(() => {});
    await this.#parts.client.close().catch(() => {});
  }

  async #run(request: SessionRequest, asked: AskedOfServer, stop: RequestStop): Promise<Params> {
    const { caller, logLevel } = request;
    const { limits, roots, clientInfo } = this.#parts;
    const { protocolVersion } = this.facts;
    const modern = this.isModern ? { protocolVersion, clientInfo, caller, logLevel } : undefined;
    const first = toOutgoingParams(request.params, modern);
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

  async #send(
    { method, onProgress, inputSchema }: SessionRequest,
    params: Params,
    asked: AskedOfServer,
    stop: RequestStop,
  ): Promise<Params> {
    const request = new RawRequest(method, onProgress);
    stop.watch(request);
    stop.throwIfStopped();
    let thrown: unknown;
    try {
      await this.#hand(request, params, inputSchema);
    } catch (error) {
      thrown = error;
    } finally {
      this.#parts.raw.forget(request);
    }
    const { outcome } = request;
    if (outcome === undefined) throw this.#toFailure(thrown, asked);
    switch (outcome.kind) {
      case "result":
        return outcome.result;
      case "error":
        throw fromRpcError(outcome.error, asked);
      case "failure":
        throw outcome.failure;
    }
  }

  /** `callTool` knows how to mirror arguments in headers; everything else takes a shorter way. */
  #hand(request: RawRequest, given: Params, inputSchema: Params | undefined): Promise<unknown> {
    const { client, raw } = this.#parts;
    if (!raw.hasPerRequestStream && !raw.isClosed) return raw.ask(request, given);
    const params: Params = { ...given, [RAW_REQUEST]: request };
    const options = { signal: request.signal, timeout: LONGEST_DELAY };
    if (this.isModern && request.method === "tools/call" && hasMirroredParams(inputSchema)) {
      const toolDefinition = { name: String(params["name"]), inputSchema };
      return client.callTool(params as never, { ...options, toolDefinition } as never);
    }
    return client.request({ method: request.method, params }, ANY_RESULT, options);
  }

  #toFailure(error: unknown, asked: AskedOfServer): Error {
    if (this.#lost !== undefined) return toUnavailable(this.#lost, asked);
    const { raw } = this.#parts;
    if (raw.sessionId !== undefined && !this.isModern && isSessionGone(error)) {
      return new SessionGone("The server does not know the session.", { cause: error });
    }
    return fromSdkError(error, asked);
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

function toFacts({ client, raw }: SessionParts, isModern: boolean): McpServerFacts {
  const result = raw.handshake?.result ?? {};
  const meta = isPlainObject(result["_meta"]) ? result["_meta"] : {};
  const info = isModern ? meta["io.modelcontextprotocol/serverInfo"] : result["serverInfo"];
  const { capabilities, instructions } = result;
  return {
    protocolVersion: client.getNegotiatedProtocolVersion() ?? "unknown",
    capabilities: isPlainObject(capabilities) ? capabilities : {},
    serverInfo: isPlainObject(info) ? info : undefined,
    instructions: typeof instructions === "string" ? instructions : undefined,
  };
}
