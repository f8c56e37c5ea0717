import { randomBytes } from "node:crypto";
import { holdsRights, type Identity } from "../../core/access/identity.ts";
import { CallError } from "../../core/errors/errors.ts";
import { addAbortListener, monotonicNow, removeAbortListener } from "../../core/execution/cancellation.ts";
import { parseJsonTextOrNone } from "../../core/json/json-value.ts";
import type { CallerSide } from "../../core/operation/caller-side.ts";
import { ProtocolError, RPC_CODES } from "../protocol/messages.ts";
import type { McpExtensions } from "../provider.ts";
import {
  type AskableCapabilities,
  assertAskable,
  checkedAnswer,
  readElicitAnswer,
  readRoots,
  readSampleAnswer,
} from "./caller-answers.ts";
import type { ServerShare } from "./mcp-server.ts";
import { type PeerRequest, RequestReporter } from "./peer-request.ts";
import { ownerDigest } from "./sealing-keys.ts";

/** What a waiting call belongs to; only the same may take it up again. */
interface CallBinding {
  readonly method: string;
  /** The tool, prompt or resource. */
  readonly name: string;
  /** See `ownerOf`. */
  readonly owner: string;
  /** Who asks now; one who has lost a right since is refused, and ends it. */
  readonly identity: Identity | undefined;
}

/** Tells whether a caller may still do what a handler waits for. */
export type MayGoOn = (identity: Identity | undefined) => boolean | Promise<boolean>;

/** How many calls may wait, and for how long. Once all places are taken, an owner with less than a quarter of them gets one of an owner with more. */
interface WaitingLimits {
  readonly calls: number;
  readonly ms: number;
}

interface Parked {
  readonly call: SuspendableCall<unknown>;
  readonly binding: CallBinding;
  readonly mayGoOn: MayGoOn;
  readonly timer: NodeJS.Timeout;
}

/** The result of a call that cannot go on before its client has answered. */
export interface InputRequiredResult {
  readonly resultType: "input_required";
  readonly inputRequests: Readonly<Record<string, object>>;
  readonly requestState: string;
}

/** What a handler that may be suspended works with. */
export interface SuspendableRun {
  readonly signal: AbortSignal;
  readonly caller: CallerSide | undefined;
}

interface SuspendableStart<T> {
  readonly start: (run: SuspendableRun, exchange: RequestReporter) => Promise<T>;
  readonly mayGoOn: MayGoOn;
}

/**
 * Handlers of 2026-07-28 clients that wait for an answer. Such a client cannot be sent a request: the call it made ends with the
 * question, and it calls again with the answer. The handler runs once: it is kept, with all it holds, under an unguessable id
 * that is good for one use, and goes on when the answer comes.
 */
export class SuspendedCalls {
  readonly #limits: WaitingLimits;
  /** What replicas share; nothing where this one is alone. */
  readonly #shared: ServerShare | undefined;
  /** How many calls of one owner may wait where all places are taken. */
  readonly #share: number;
  /** Oldest first. */
  readonly #parked = new Map<string, Parked>();
  /** How many calls of each owner wait. */
  readonly #counts = new Map<string, number>();

  /** With others, what clients bring back is sealed, and tells each replica where the handler waits. */
  constructor(limits: WaitingLimits, shared?: ServerShare) {
    this.#limits = limits;
    this.#shared = shared;
    this.#share = Math.max(1, Math.floor(limits.calls / 4));
  }

  get size(): number {
    return this.#parked.size;
  }

  /** Milliseconds that a handler waits for one answer. */
  get waitingMs(): number {
    return this.#limits.ms;
  }

  /** Starts a handler or, when the request carries the answers to its questions, goes on with it where the caller still may. */
  async run<T>(
    request: PeerRequest,
    binding: CallBinding,
    { start, mayGoOn }: SuspendableStart<T>,
  ): Promise<T | InputRequiredResult> {
    const state = request.requestState;
    if (state !== undefined) {
      const parked = await this.#take(state, binding);
      const call = parked.call as SuspendableCall<T>;
      call.answer(request.inputResponses);
      return await this.#turn(call, request, parked);
    }
    const call = new SuspendableCall<T>(new RequestReporter(), request, () =>
      this.#assertRoom(binding.owner),
    );
    call.start(start);
    return await this.#turn(call, request, { binding, mayGoOn });
  }

  /** Ends every call that waits. */
  close(): void {
    for (const { call, timer } of this.#parked.values()) {
      clearTimeout(timer);
      call.abort(new CallError("ABORTED", "The server is closing."));
    }
    this.#parked.clear();
    this.#counts.clear();
  }

  async #turn<T>(
    call: SuspendableCall<T>,
    request: PeerRequest,
    bound: Pick<Parked, "binding" | "mayGoOn">,
  ): Promise<T | InputRequiredResult> {
    const questions = await call.turn(request);
    if (questions === undefined) return await call.result;
    if (!this.#hasRoom(bound.binding.owner)) {
      // Others took the last places since the question was let through.
      call.abort(new CallError("RESOURCE_EXHAUSTED", "Too many calls are waiting for an answer."));
      return await call.result;
    }
    return {
      resultType: "input_required",
      inputRequests: questions,
      requestState: this.#park(call, bound),
    };
  }

  #park(call: SuspendableCall<unknown>, { binding, mayGoOn }: Pick<Parked, "binding" | "mayGoOn">): string {
    const id = randomBytes(16).toString("base64url");
    const ms = call.waitsUntil(this.#limits.ms);
    const timer = setTimeout(
      () => this.#remove(id)?.abort(new CallError("TIMEOUT", "Nobody answered the question in time.")),
      ms,
    );
    timer.unref();
    if (this.#parked.size >= this.#limits.calls) this.#evict();
    this.#parked.set(id, { call, binding, mayGoOn, timer });
    this.#counts.set(binding.owner, (this.#counts.get(binding.owner) ?? 0) + 1);
    return this.#writeState(id, binding.owner, ms);
  }

  #writeState(id: string, owner: string, ms: number): string {
    if (this.#shared === undefined) return id;
    const { keys, replica } = this.#shared;
    const state = [replica, id, ownerDigest(owner), Date.now() + Math.ceil(ms)];
    return keys.seal("request-state", JSON.stringify(state)) as string;
  }

  /** The id of a handler that waits here; nothing for what is no state of this caller. Throws where it waits at another replica. */
  #readState(state: unknown, owner: string): string | undefined {
    if (typeof state !== "string") return undefined;
    if (this.#shared === undefined) return state;
    const opened = this.#shared.keys.open("request-state", state);
    if (opened === undefined) return undefined;
    const written = parseJsonTextOrNone(opened);
    if (!Array.isArray(written)) return undefined;
    const [replica, id, caller, until] = written as readonly unknown[];
    if (replica === this.#shared.replica) return String(id);
    if (caller !== ownerDigest(owner) || typeof until !== "number" || until <= Date.now()) return undefined;
    throw new HeldElsewhere(String(replica));
  }

  #remove(id: string): SuspendableCall<unknown> | undefined {
    const parked = this.#parked.get(id);
    if (parked === undefined) return undefined;
    this.#parked.delete(id);
    clearTimeout(parked.timer);
    const { owner } = parked.binding;
    const left = (this.#counts.get(owner) ?? 0) - 1;
    if (left > 0) this.#counts.set(owner, left);
    else this.#counts.delete(owner);
    return parked.call;
  }

  async #take(state: unknown, binding: CallBinding): Promise<Parked> {
    const id = this.#readState(state, binding.owner);
    const parked = id === undefined ? undefined : this.#parked.get(id);
    if (id === undefined || parked === undefined || !isSame(parked.binding, binding)) throw invalidState();
    this.#remove(id);
    const { identity } = binding;
    const hasLostNothing = holdsRights(identity, parked.binding.identity);
    if (hasLostNothing && (await parked.mayGoOn(identity))) return parked;
    parked.call.abort(new CallError("ACCESS_DENIED", "The caller may no longer make this call."));
    throw invalidState();
  }

  /** A free place is anybody's; where there is none, an owner with less than its share gets that of one who has more. */
  #hasRoom(owner: string): boolean {
    if (this.#parked.size < this.#limits.calls) return true;
    return (this.#counts.get(owner) ?? 0) < this.#share && this.#greediest() !== undefined;
  }

  /** The owner with the most calls that wait, if that is more than its share. */
  #greediest(): string | undefined {
    let [found, most] = [undefined as string | undefined, this.#share];
    for (const [owner, count] of this.#counts) if (count > most) [found, most] = [owner, count];
    return found;
  }

  #evict(): void {
    const greediest = this.#greediest();
    for (const [id, { binding }] of this.#parked) {
      if (binding.owner !== greediest) continue;
      this.#remove(id)?.abort(new CallError("RESOURCE_EXHAUSTED", "Others need the place of this call."));
      return;
    }
  }

  #assertRoom(owner: string): void {
    if (this.#hasRoom(owner)) return;
    throw new CallError("RESOURCE_EXHAUSTED", "Too many calls are waiting for an answer; try again later.");
  }
}

/** Says that the handler of a call waits at another replica. */
export class HeldElsewhere extends ProtocolError {
  readonly replica: string;

  constructor(replica: string) {
    super(
      RPC_CODES.heldElsewhere,
      "The call waits for this answer at another replica of the server; send the same request again to reach it.",
      { reason: "held_elsewhere" },
    );
    this.replica = replica;
  }
}

/** The same words whatever is wrong, so that nobody learns which ids exist. */
function invalidState(): ProtocolError {
  return new ProtocolError(RPC_CODES.invalidParams, "Invalid or expired requestState", {
    reason: "invalid_request_state",
  });
}

function isSame(a: CallBinding, b: CallBinding): boolean {
  return a.method === b.method && a.name === b.name && a.owner === b.owner;
}

/** A question as an `input_required` result embeds it. */
interface EmbeddedRequest {
  readonly method: "elicitation/create" | "sampling/createMessage" | "roots/list";
  readonly params?: object;
}

interface Question {
  readonly request: EmbeddedRequest;
  /** Tells whether the answer was one. */
  take(answer: unknown): boolean;
  reject(error: CallError): void;
}

/** A handler that may ask questions its client answers in a later request; see `WaitingCalls`. */
class SuspendableCall<T> {
  readonly #exchange: RequestReporter;
  readonly #can: AskableCapabilities;
  readonly #extensions: McpExtensions;
  readonly #assertRoom: () => void;
  readonly #controller = new AbortController();
  readonly #questions = new Map<string, Question>();
  /** Answers that came with the very first request, before anything was asked. */
  readonly #given: Map<string, unknown>;
  #result: Promise<T> | undefined;
  #asked = 0;
  #wake: (() => void) | undefined;
  #deadline: number | undefined;

  constructor(exchange: RequestReporter, request: PeerRequest, assertRoom: () => void) {
    this.#exchange = exchange;
    this.#can = request.capabilities;
    this.#extensions = request.extensions;
    this.#assertRoom = assertRoom;
    this.#given = new Map(Object.entries(request.inputResponses));
  }

  /** What the handler came to. */
  get result(): Promise<T> {
    if (this.#result === undefined) throw new Error("The call has not been started.");
    return this.#result;
  }

  /** Runs the handler; it begins once the first request is attached. */
  start(
    run: (
      run: { readonly signal: AbortSignal; readonly caller: CallerSide },
      exchange: RequestReporter,
    ) => Promise<T>,
  ): void {
    const { signal } = this.#controller;
    this.#result = Promise.resolve().then(() => run({ signal, caller: this.#caller() }, this.#exchange));
    // Nobody may be waiting for it when it fails.
    this.#result.catch(() => {});
  }

  /** Ends the handler and whatever it waits for. */
  abort(error: CallError): void {
    for (const question of this.#questions.values()) question.reject(error);
    this.#questions.clear();
    this.#controller.abort(error);
  }

  /** Hands over what a client answered; what is missing or no answer is asked again. */
  answer(responses: Readonly<Record<string, unknown>>): void {
    for (const [key, question] of this.#questions) {
      const response = Object.hasOwn(responses, key) ? responses[key] : undefined;
      if (!question.take(response)) continue;
      this.#questions.delete(key);
      this.#deadline = undefined;
    }
  }

  /** Serves one request: until the handler is done, which gives nothing, or until it has questions. */
  async turn(request: PeerRequest): Promise<Readonly<Record<string, EmbeddedRequest>> | undefined> {
    const { signal } = request;
    const listener = { onAbort: () => this.abort(new CallError("ABORTED", "The caller left.")) };
    if (signal.aborted) listener.onAbort();
    else addAbortListener(signal, listener);
    this.#exchange.attach(request);
    try {
      const isDone = await Promise.race([this.result.then(yes, yes), this.#hasQuestions()]);
      return isDone ? undefined : this.#embedded();
    } finally {
      removeAbortListener(signal, listener);
      this.#exchange.attach(undefined);
      this.#wake = undefined;
    }
  }

  /** How long it may still wait: the whole time after every answer, not after every request. */
  waitsUntil(ms: number): number {
    const now = monotonicNow();
    this.#deadline ??= now + ms;
    return Math.max(0, this.#deadline - now);
  }

  #embedded(): Readonly<Record<string, EmbeddedRequest>> {
    return Object.fromEntries([...this.#questions].map(([key, { request }]) => [key, request]));
  }

  /** Resolves a moment after the first question, so that those asked at once go out together. */
  #hasQuestions(): Promise<false> {
    return new Promise((resolve) => {
      this.#wake = () => setImmediate(() => this.#questions.size > 0 && resolve(false));
      if (this.#questions.size > 0) this.#wake();
    });
  }

  #caller(): CallerSide {
    return {
      extensions: this.#extensions,
      elicit: async (request, signal, key) => {
        assertAskable(request.mode ?? "form", this.#can);
        const params = { ...request, mode: request.mode ?? "form" };
        const question = { method: "elicitation/create", params } as const;
        const answer = await this.#ask(question, readElicitAnswer, { signal, key });
        return checkedAnswer(answer, request);
      },
      sample: async (request, signal, key) => {
        assertAskable("sampling", this.#can);
        const question = { method: "sampling/createMessage", params: request } as const;
        return await this.#ask(question, readSampleAnswer, { signal, key });
      },
      roots: async (signal, key) => {
        assertAskable("roots", this.#can);
        return await this.#ask({ method: "roots/list" }, readRoots, { signal, key });
      },
    };
  }

  /** A name for a question that no other question of this round has. */
  #keyFor(wanted: string | undefined): string {
    this.#asked += 1;
    const key = wanted ?? `question-${this.#asked}`;
    return this.#questions.has(key) ? `${key}-${this.#asked}` : key;
  }

  async #ask<A>(
    request: EmbeddedRequest,
    read: (answer: unknown) => A | undefined,
    { signal, key: wanted }: { readonly signal: AbortSignal; readonly key: string | undefined },
  ): Promise<A> {
    const key = this.#keyFor(wanted);
    const given = read(this.#given.get(key));
    // An answer is good for one question, whether it was any good or not.
    this.#given.delete(key);
    if (given !== undefined) return given;
    this.#assertRoom();
    return await new Promise<A>((resolve, reject) => {
      const leave = (): void => {
        this.#questions.delete(key);
        reject(new CallError("ABORTED"));
      };
      if (signal.aborted) return leave();
      signal.addEventListener("abort", leave, { once: true });
      const settle = (): void => signal.removeEventListener("abort", leave);
      const take = (response: unknown): boolean => {
        const answer = read(response);
        if (answer === undefined) return false;
        settle();
        resolve(answer);
        return true;
      };
      const refuse = (error: CallError): void => {
        settle();
        reject(error);
      };
      this.#questions.set(key, { request, take, reject: refuse });
      this.#wake?.();
    });
  }
}

function yes(): true {
  return true;
}
