import type { StoredMsg } from "@nats-io/jetstream";
import type { Identity } from "../../../core/access/identity.ts";
import { CallError } from "../../../core/errors/errors.ts";
import { monotonicNow, toDeadline } from "../../../core/execution/cancellation.ts";
import type { CallRequested } from "../../call-events.ts";
import type { FailedCall, FailedCallsOptions, FailedCallsPage } from "../../call-options.ts";
import { decodeEnding, decodeRequest, readRecord } from "./durable-codec.ts";
import { type DurableStore, REQUEST_ID_HEADER } from "./durable-store.ts";

const LIST_MS = 30_000;
const MOST_LISTED = 1_000;
/** Results that are looked at for one page. */
const MOST_LOOKED_AT = 5_000;

/** Lists calls of a user that failed; results are looked through in the order they were stored. */
export async function listFailed(
  store: DurableStore,
  user: string,
  { limit = 100, after = 0 }: FailedCallsOptions,
): Promise<FailedCallsPage> {
  const until = toDeadline(LIST_MS, monotonicNow());
  const { names } = store;
  const calls: FailedCall[] = [];
  let at = after;
  for (let looked = 0; looked < MOST_LOOKED_AT; looked++) {
    const head = await store.next(names.results, { subject: names.end(user, "*"), from: at + 1 }, until);
    if (head === undefined) return { calls };
    at = head.seq;
    const failed = await readFailed(store, { user, head }, until);
    if (failed !== undefined) calls.push(failed);
    if (calls.length >= Math.min(limit, MOST_LISTED)) break;
  }
  return { calls, next: at };
}

async function readFailed(
  store: DurableStore,
  { user, head }: { readonly user: string; readonly head: StoredMsg },
  until: number,
): Promise<FailedCall | undefined> {
  const { names } = store;
  // Only a result is ever longer than one message.
  const ending = decodeEnding(head.data);
  if (head.data.length === 0 || !("error" in ending)) return undefined;
  const token = head.subject.split(".").at(-2) ?? "";
  const request = await store.last(names.calls, names.anyRequest(user, token), until);
  const address = request && names.parseRequest(request.subject);
  if (request === undefined || address === undefined) return undefined;
  return {
    requestId: request.header.get(REQUEST_ID_HEADER),
    operationId: address.operationId,
    failedAt: head.time.getTime(),
    error: ending.error.toJSON(),
  };
}

/** A call as it was stored, and who it is of by what was signed then. */
export interface StoredCall {
  readonly request: CallRequested;
  readonly operationId: string;
  readonly identity: Identity | undefined;
}

/** Reads the request of a call that failed; `identify` says whose it is. */
export async function readFailedRequest(
  store: DurableStore,
  address: { readonly user: string; readonly token: string },
  identify: (request: CallRequested, at: Date) => Promise<Identity | undefined>,
): Promise<StoredCall> {
  const until = toDeadline(LIST_MS, monotonicNow());
  const { names } = store;
  const { user, token } = address;
  const end = await store.last(names.results, names.end(user, token), until);
  if (end === undefined || end.data.length === 0 || !("error" in decodeEnding(end.data))) throw notFailed();
  const head = await store.last(names.calls, names.anyRequest(user, token), until);
  const parsed = head && names.parseRequest(head.subject);
  if (head === undefined || parsed === undefined) throw notFailed();
  const record = { stream: names.calls, headers: head.header, data: head.data };
  const body = await readRecord(store, { ...record, partSubject: names.requestParts(user, token) }, until);
  const request = typeof body === "string" ? undefined : decodeRequest(body);
  if (request === undefined) throw notFailed();
  return { request, operationId: parsed.operationId, identity: await identify(request, head.time) };
}

function notFailed(): CallError {
  const message =
    "There is no durable call with this request id that has failed: it runs, ended well, or is too old.";
  return new CallError("NOT_FOUND", message, { stack: false });
}
