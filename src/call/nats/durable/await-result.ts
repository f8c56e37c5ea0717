import type { ResponseEnvelope } from "../../../core/envelope/response-meta.ts";
import { CallError } from "../../../core/errors/errors.ts";
import { isRequestId } from "../../../core/execution/request-id.ts";
import { decodeEnding, type Ending } from "./durable-codec.ts";
import { requestToken } from "./durable-names.ts";
import type { DurableStore } from "./durable-store.ts";
import { readRecord } from "./stored-record.ts";

/** Milliseconds between looks when nobody says that there is something to see. */
const LOOK_EVERY_MS = 2_000;

/** Whose result is waited for, until when; `left` ends the wait early. */
export interface ResultQuery {
  readonly user: string;
  readonly requestId: string;
  readonly until: number;
  readonly left: AbortSignal;
}

/** Waits for the stored ending of a call: what arrives live only says that it is time to look. */
export async function awaitResult(store: DurableStore, query: ResultQuery): Promise<ResponseEnvelope> {
  const { user, requestId, left } = query;
  if (!isRequestId(requestId)) throw unknownRequest();
  const token = requestToken(user, requestId);
  const bell = new Bell(left);
  // Before the first look, so that no ending falls between the two.
  const subscription = store.connection.subscribe(store.names.end(user, token), { callback: bell.ring });
  try {
    while (!left.aborted) {
      bell.reset();
      const ending = await lookFor(store, user, token, query);
      if (ending !== undefined && "error" in ending) throw ending.error;
      if (ending !== undefined) return ending.envelope;
      await bell.heard(LOOK_EVERY_MS);
    }
    throw new CallError("ABORTED");
  } finally {
    if (!store.connection.isClosed()) subscription.unsubscribe();
  }
}

async function lookFor(
  store: DurableStore,
  user: string,
  token: string,
  { until }: ResultQuery,
): Promise<Ending | undefined> {
  const { names } = store;
  const head = await store.last(names.results, names.end(user, token), until);
  if (head === undefined) {
    const request = await store.last(names.calls, names.anyRequest(user, token), until);
    if (request === undefined) throw unknownRequest();
    return undefined;
  }
  const partSubject = (set: string, index: number): string => names.resultPart(user, token, set, index);
  const record = { headers: head.header, data: head.data };
  const body = await readRecord(store, names.results, record, partSubject, until);
  if (typeof body !== "string") return decodeEnding(body);
  store.counters[body] += 1;
  if (body === "gaps") throw unknownRequest();
  return decodeEnding(new Uint8Array(0));
}

function unknownRequest(): CallError {
  const message = "There is no durable call with this request id: it was never submitted, or is too old.";
  return new CallError("NOT_FOUND", message, { stack: false });
}

/** Rings when something may be there to be seen. */
class Bell {
  readonly #left: AbortSignal;
  #rung = false;
  #wake: (() => void) | undefined;

  constructor(left: AbortSignal) {
    this.#left = left;
    left.addEventListener("abort", this.ring, { once: true });
  }

  readonly ring = (): void => {
    this.#rung = true;
    this.#wake?.();
  };

  reset(): void {
    this.#rung = false;
  }

  /** Waits for the next ring since `reset`, but not for ever. */
  heard(withinMs: number): Promise<void> {
    if (this.#rung || this.#left.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(this.ring, withinMs);
      this.#wake = () => {
        clearTimeout(timer);
        this.#wake = undefined;
        resolve();
      };
    });
  }
}
