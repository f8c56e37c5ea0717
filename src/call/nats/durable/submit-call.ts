import { randomUUID } from "node:crypto";
import { PubHeaders, type StoredMsg } from "@nats-io/jetstream";
import { CallError } from "../../../core/errors/errors.ts";
import { isRequestId, randomId } from "../../../core/execution/request-id.ts";
import type { ExecuteOptions } from "../../../core/registry/executor.ts";
import { unproven } from "../../call-errors.ts";
import { type CredentialSource, createRequest } from "../../call-options.ts";
import type { BoundCall } from "../../credentials/bound-call.ts";
import { encodeRequest } from "./durable-codec.ts";
import { hashOf, type RequestAddress, requestToken } from "./durable-names.ts";
import { type DurableStore, NONCE_HEADER } from "./durable-store.ts";
import { hashInput } from "./input-hash.ts";
import { writeRecord } from "./stored-record.ts";

/** What a durable call may be told. */
export interface SubmitOptions
  extends Pick<ExecuteOptions, "identity" | "metadata" | "origin" | "requestId" | "signal"> {
  /**
   * Submitting again with the same key gives the call that is there already, per user, identity and operation, within the
   * duplicate window. At most 1,000 characters. @default every submit is a call of its own
   */
  readonly idempotencyKey?: string | undefined;
  /** Milliseconds to wait for the broker's acknowledgement. @default 5,000 */
  readonly timeoutMs?: number | undefined;
}

/** A call that is stored and will be run. */
export interface SubmittedCall {
  /** Fetches the result; whoever has it can. */
  readonly requestId: string;
  /** True when the idempotency key stood for this call already. */
  readonly duplicate: boolean;
}

/** Who submits. */
export interface Submitter {
  readonly store: DurableStore;
  readonly user: string;
  readonly credentials: CredentialSource | undefined;
}

const REQUEST_ID_HEADER = "Waybill-Request-Id";
const INPUT_HEADER = "Waybill-Input-Hash";
const MAX_KEY = 1_000;

/** A call on its way into the store. */
interface Draft {
  readonly address: RequestAddress;
  readonly requestId: string;
  readonly body: Uint8Array;
  readonly inputHash: string;
  readonly nonce: string;
  readonly msgId: string;
  readonly keyed: boolean;
}

/** Stores a call; what comes of an earlier one under the same key or id is decided by what is stored of it. */
export async function submitCall(
  by: Submitter,
  operationId: string,
  input: unknown,
  options: SubmitOptions,
  until: number,
): Promise<SubmittedCall> {
  const { store } = by;
  const { names } = store;
  const draft = await draftCall(by, operationId, input, options);
  const { address, nonce, requestId, msgId } = draft;
  if (options.requestId !== undefined) {
    const earlier = await claimId(store, draft, until);
    if (earlier !== undefined) return earlier;
  }
  const headers = { [REQUEST_ID_HEADER]: requestId, [INPUT_HEADER]: draft.inputHash };
  const subject = names.request(address);
  const head = { stream: names.calls, subject, data: draft.body, nonce, headers, msgId };
  const partSubject = (set: string, index: number): string =>
    names.requestPart(address.user, address.token, set, index);
  const put = await writeRecord(store, head, partSubject, until);
  if (put.kind === "stored") return { requestId, duplicate: false };
  const original = put.kind === "taken" ? put.by : await store.at(names.calls, put.sequence, until);
  if (original !== undefined) return settleWith(store, draft, original);
  throw new CallError(
    "UNAVAILABLE",
    `The call that the idempotency key stood for has just expired; submit it again.`,
  );
}

async function draftCall(
  { store, user, credentials }: Submitter,
  operationId: string,
  input: unknown,
  options: SubmitOptions,
): Promise<Draft> {
  const { identity, idempotencyKey: key } = options;
  assertKey(key);
  if (options.requestId !== undefined && !isRequestId(options.requestId)) {
    throw new TypeError("requestId must be 1 to 200 printable ASCII characters without spaces.");
  }
  const requestId = options.requestId ?? randomId();
  const credential =
    identity === undefined
      ? undefined
      : await prove(credentials, identity, operationId, { requestId, input });
  const request = createRequest({ requestId }, operationId, input, options, { credential });
  const keyed = key !== undefined;
  return {
    address: { user, operationId, token: requestToken(user, requestId) },
    requestId,
    body: encodeRequest(request, store.settings.limits.messageBytes),
    inputHash: hashInput(input),
    nonce: randomUUID(),
    msgId: keyed
      ? hashOf("key", user, identity?.subject ?? null, operationId, key)
      : hashOf("request", user, requestId),
    keyed,
  };
}

function assertKey(key: unknown): void {
  if (key === undefined || (typeof key === "string" && key !== "" && key.length <= MAX_KEY)) return;
  throw new TypeError(`idempotencyKey must be a string of 1 to ${MAX_KEY} characters.`);
}

function prove(
  credentials: CredentialSource | undefined,
  identity: NonNullable<SubmitOptions["identity"]>,
  operationId: string,
  call: BoundCall,
): string | Promise<string> {
  if (credentials !== undefined) return credentials(identity, operationId, call);
  throw unproven(operationId);
}

/** Makes sure that an id chosen by the caller is used once, whatever the operation; gives the call that has it by the same key. */
async function claimId(store: DurableStore, draft: Draft, until: number): Promise<SubmittedCall | undefined> {
  const { names } = store;
  const { user, token } = draft.address;
  const owner = draft.keyed ? draft.msgId : draft.nonce;
  const data = new TextEncoder().encode(owner);
  const claim = { stream: names.calls, subject: names.claim(user, token), data, nonce: draft.nonce };
  const put = await store.put(claim, until);
  if (put.kind === "taken" && put.by.string() !== owner) throw idInUse();
  // Random ids claim nothing, and one may have been passed on.
  const earlier = await store.last(names.calls, names.anyRequest(user, token), until);
  return earlier === undefined ? undefined : settleWith(store, draft, earlier);
}

/** Answers with a call that was stored before, if it is the same one. */
function settleWith(store: DurableStore, draft: Draft, original: StoredMsg): SubmittedCall {
  const { header, subject } = original;
  const requestId = header.get(REQUEST_ID_HEADER);
  if (header.get(NONCE_HEADER) === draft.nonce) return { requestId: draft.requestId, duplicate: false };
  if (!draft.keyed || header.get(PubHeaders.MsgIdHdr) !== draft.msgId) throw idInUse();
  const { user, operationId } = draft.address;
  const expected = { user, operationId, token: requestToken(user, requestId) };
  if (subject !== store.names.request(expected)) {
    store.counters.forged += 1;
    throw new CallError("CONFLICT", "The idempotency key stands for a call that somebody else has stored.");
  }
  if (header.get(INPUT_HEADER) !== draft.inputHash) {
    throw new CallError(
      "CONFLICT",
      "The idempotency key stands for a call with another input; take a new key.",
    );
  }
  return { requestId, duplicate: true };
}

function idInUse(): CallError {
  return new CallError("CONFLICT", "The request id is in use already; leave it out to be given one.");
}
