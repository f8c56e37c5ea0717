import { randomBytes } from "node:crypto";
import { holdsRights, type Identity } from "../../core/access/identity.ts";
import { CallError } from "../../core/errors/errors.ts";
import type { CallerSide } from "../../core/operation/caller-side.ts";
import { ProtocolError, RPC_CODES } from "../protocol/messages.ts";
import { Exchange } from "./exchange.ts";
import type { PeerRequest } from "./peer-request.ts";
import { SuspendableCall } from "./suspendable-call.ts";

/** What a waiting call belongs to; only the same may take it up again. */
export interface CallBinding {
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

/** How many calls may wait, and for how long. Once all places are taken, an owner with less than a quarter of them gets one of whoever has more. */
export interface WaitingLimits {
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

/** A handler that may be suspended, and who may have it go on. */
export interface SuspendableStart<T> {
  readonly start: (run: SuspendableRun, exchange: Exchange) => Promise<T>;
  readonly mayGoOn: MayGoOn;
}

/**
 * Handlers of 2026-07-28 clients that wait for an answer. Such a client cannot be sent a request: the call it made ends with the
 * question, and it calls again with the answer. The handler runs once: it is kept, with all it holds, under an unguessable id
 * that is good for one use, and goes on when the answer comes.
 */
export class WaitingCalls {
  readonly #limits: WaitingLimits;
  readonly #share: number;
  /** Oldest first. */
  readonly #parked = new Map<string, Parked>();
  /** How many calls of each owner wait. */
  readonly #counts = new Map<string, number>();

  constructor(limits: WaitingLimits) {
    this.#limits = limits;
    this.#share = Math.max(1, Math.floor(limits.calls / 4));
  }

  get size(): number {
    return this.#parked.size;
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
    const call = new SuspendableCall<T>(new Exchange(), request, () => this.#assertRoom(binding.owner));
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
    const timer = setTimeout(
      () => this.#remove(id)?.abort(new CallError("TIMEOUT", "Nobody answered the question in time.")),
      call.waitsUntil(this.#limits.ms),
    );
    timer.unref();
    if (this.#parked.size >= this.#limits.calls) this.#evict();
    this.#parked.set(id, { call, binding, mayGoOn, timer });
    this.#counts.set(binding.owner, (this.#counts.get(binding.owner) ?? 0) + 1);
    return id;
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
    const parked = typeof state === "string" ? this.#parked.get(state) : undefined;
    if (parked === undefined || !isSame(parked.binding, binding)) throw invalidState();
    this.#remove(state as string);
    const { identity } = binding;
    const hasLostNothing = holdsRights(identity, parked.binding.identity);
    if (hasLostNothing && (await parked.mayGoOn(identity))) return parked;
    parked.call.abort(new CallError("ACCESS_DENIED", "Whoever made this call may not make it any more."));
    throw invalidState();
  }

  /** A free place is anybody's; where there is none, an owner with less than its share gets that of one who has more. */
  #hasRoom(owner: string): boolean {
    if (this.#parked.size < this.#limits.calls) return true;
    return (this.#counts.get(owner) ?? 0) < this.#share && this.#greediest() !== undefined;
  }

  /** Whoever has the most calls that wait, if that is more than its share. */
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

/** The same words whatever is wrong, so that nobody learns which ids exist. */
function invalidState(): ProtocolError {
  return new ProtocolError(RPC_CODES.invalidParams, "Invalid or expired requestState", {
    reason: "invalid_request_state",
  });
}

function isSame(a: CallBinding, b: CallBinding): boolean {
  return a.method === b.method && a.name === b.name && a.owner === b.owner;
}
