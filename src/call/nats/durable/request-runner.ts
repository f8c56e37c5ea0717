import { randomUUID } from "node:crypto";
import type { JsMsg } from "@nats-io/jetstream";
import type { Identity } from "../../../core/access/identity.ts";
import { CallError, isCallError, toCallError } from "../../../core/errors/errors.ts";
import { monotonicNow } from "../../../core/execution/deadline.ts";
import type { Executor } from "../../../core/registry/executor.ts";
import type { CallRequested } from "../../call-events.ts";
import { namedUser } from "../../wire/subjects.ts";
import { decodeRequest, type Ending, encodeEnding } from "./durable-codec.ts";
import { type RequestAddress, requestToken } from "./durable-names.ts";
import type { AuthenticateStored } from "./durable-options.ts";
import type { DurableStore } from "./durable-store.ts";
import { StartMarks } from "./start-marks.ts";
import { readRecord, writeRecord } from "./stored-record.ts";

/** What the answering side knows. */
export interface RunnerOptions {
  readonly executor: Executor;
  readonly authenticate: AuthenticateStored | undefined;
  readonly ackWaitMs: number;
  readonly maxDeliver: number;
  /** Aborts when handlers have to stop. */
  readonly stopping: AbortSignal;
}

/** How a delivery is answered: it is done, never to come again, or has to come again. */
type Answer = "ack" | "term" | "nak";

/** Milliseconds before a request that could not be dealt with comes again. */
const AGAIN_AFTER_MS = 1_000;

/** Sees stored requests to their stored end. */
export class RequestRunner {
  readonly #store: DurableStore;
  readonly #options: RunnerOptions;
  readonly #marks: StartMarks;
  readonly #running = new Map<string, Promise<Answer>>();

  constructor(store: DurableStore, options: RunnerOptions) {
    this.#store = store;
    this.#options = options;
    this.#marks = new StartMarks(store);
  }

  /** Deals with one delivery and answers the broker, only once the ending is stored; never throws. */
  async run(message: JsMsg): Promise<void> {
    const beat = setInterval(() => attempt(() => message.working()), this.#options.ackWaitMs / 3);
    let answer: Answer = "nak";
    try {
      answer = await this.#settle(message);
    } catch {
      // Nothing was stored; the next delivery finds out how far this one came.
    } finally {
      clearInterval(beat);
    }
    attempt(() => {
      if (answer === "nak") message.nak(AGAIN_AFTER_MS);
      else message[answer]();
    });
  }

  /** A request that came again while it runs here waits for that run instead of making a second one. */
  async #settle(message: JsMsg): Promise<Answer> {
    const address = this.#store.names.parseRequest(message.subject);
    if (address === undefined) return "term";
    const { subject } = message;
    let again = message.info.deliveryCount > 1;
    for (let before = this.#running.get(subject); before !== undefined; before = this.#running.get(subject)) {
      await before.catch(() => undefined);
      again = true;
    }
    const work = this.#conclude(message, address, again);
    this.#running.set(subject, work);
    try {
      return await work;
    } finally {
      this.#running.delete(subject);
    }
  }

  async #conclude(message: JsMsg, address: RequestAddress, again: boolean): Promise<Answer> {
    const { executor, maxDeliver } = this.#options;
    if (again && (await this.#marks.hasEnded(address, this.#until()))) return "ack";
    if (message.info.deliveryCount >= maxDeliver) return this.#end(address, gaveUp(maxDeliver));
    const request = await this.#read(message, address);
    if (request === undefined) {
      await this.#end(address, unreadable());
      return "term";
    }
    const operation = executor.get(address.operationId);
    // Taken away a moment ago: somebody else may have it.
    if (operation?.durable !== true) return "nak";
    const who = await this.#authenticate(request, address, message.time);
    if ("error" in who) return this.#end(address, who.error);
    const idempotent = operation.annotations?.idempotent === true;
    if (!idempotent) {
      const mark = await this.#marks.start(address, message.seq, this.#until());
      if (mark === "ended") return "ack";
      if (mark === "lost") return this.#end(address, lost());
      if (mark === "foreign") return "term";
    }
    return this.#execute(request, address, who.identity, idempotent);
  }

  async #read(
    message: JsMsg,
    { user, operationId, token }: RequestAddress,
  ): Promise<CallRequested | undefined> {
    const store = this.#store;
    const { names, counters } = store;
    const partSubject = (set: string, index: number): string => names.requestPart(user, token, set, index);
    const body = await readRecord(store, names.calls, message, partSubject, this.#until());
    if (typeof body === "string") {
      counters[body] += 1;
      return undefined;
    }
    const request = decodeRequest(body);
    if (request === undefined) {
      counters.malformed += 1;
      return undefined;
    }
    // What the broker has checked is the subject; a body that says something else does not count.
    if (request.operationId === operationId && requestToken(user, request.requestId) === token)
      return request;
    counters.forged += 1;
    return undefined;
  }

  async #authenticate(
    request: CallRequested,
    { user }: RequestAddress,
    at: Date,
  ): Promise<{ readonly identity: Identity | undefined } | { readonly error: CallError }> {
    try {
      return { identity: await this.#options.authenticate?.({ request, user: namedUser(user) }, at) };
    } catch (thrown) {
      if (!isCallError(thrown))
        return { error: new CallError("UNAUTHENTICATED", undefined, { cause: thrown }) };
      if (thrown.retryable) throw thrown;
      return { error: thrown };
    }
  }

  async #execute(
    request: CallRequested,
    address: RequestAddress,
    identity: Identity | undefined,
    idempotent: boolean,
  ): Promise<Answer> {
    const { executor, stopping } = this.#options;
    const { requestId, operationId, metadata, depth, parent } = request;
    let ending: Ending;
    try {
      const envelope = await executor.execute(operationId, request.input, {
        identity,
        requestId,
        metadata,
        signal: stopping,
        timeoutMs: this.#store.settings.limits.deadlineMs,
        ...(depth !== undefined && { origin: { depth, parent } }),
      });
      ending = { envelope };
    } catch (thrown) {
      if (stopping.aborted && idempotent) return "nak";
      ending = { error: stopping.aborted ? lost() : toCallError(thrown) };
    }
    return this.#storeEnding(ending, address);
  }

  #end(address: RequestAddress, error: CallError): Promise<Answer> {
    return this.#storeEnding({ error }, address);
  }

  async #storeEnding(ending: Ending, { user, token }: RequestAddress): Promise<Answer> {
    const { names, settings, counters } = this.#store;
    const data = encodeEnding(ending, settings.limits.messageBytes);
    const head = { stream: names.results, subject: names.end(user, token), data, nonce: randomUUID() };
    const partSubject = (set: string, index: number): string => names.resultPart(user, token, set, index);
    // For as long as it takes: the handler has run, and only this tells.
    const put = await writeRecord(this.#store, head, partSubject, Number.POSITIVE_INFINITY);
    if (put.kind === "taken") counters.late += 1;
    return "ack";
  }

  #until(): number {
    return monotonicNow() + this.#options.ackWaitMs;
  }
}

/** A connection that has closed throws; the broker then delivers again by itself. */
function attempt(answer: () => void): void {
  try {
    answer();
  } catch {
    // Nobody is there to be answered.
  }
}

function gaveUp(deliveries: number): CallError {
  const message = `The call was given up after ${deliveries} deliveries; no worker could see it through.`;
  return new CallError("UNAVAILABLE", message, { retryable: false, stack: false });
}

function unreadable(): CallError {
  return new CallError("VALIDATION_ERROR", "What was stored as a request is not one.", { stack: false });
}

function lost(): CallError {
  const message = "The worker was lost while running the call; whether it took effect is unknown.";
  return new CallError("UNAVAILABLE", message, { retryable: false, stack: false });
}
