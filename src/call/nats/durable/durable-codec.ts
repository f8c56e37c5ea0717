import { createHash } from "node:crypto";
import type { MsgHdrs } from "@nats-io/transport-node";
import type { ResponseEnvelope } from "../../../core/envelope/response-meta.ts";
import { CallError, toCallError } from "../../../core/errors/errors.ts";
import { compileSchema } from "../../../core/schema/compile-schema.ts";
import { decodeEnvelope, encodeEnvelope, fromWire, toWire, WIRE_LIMITS } from "../../../core/wire/wire.ts";
import { fromErrorPayload, overLimit, toCallErrorPayload } from "../../call-errors.ts";
import { type CallErrorPayload, CallEventSchema, type CallRequested } from "../../call-events.ts";
import type { DropReason } from "../../call-observer.ts";
import { subjectPlaceOf } from "../../wire/subjects.ts";
import type { DurableStore, Placed, Put } from "./durable-store.ts";

/** How a call ended. */
export type Ending = { readonly envelope: ResponseEnvelope } | { readonly error: CallError };

/** A request is one level more than the input it carries. */
const REQUEST_WIRE = { maxDepth: WIRE_LIMITS.depth + 1 } as const;

const requested = compileSchema(CallEventSchema["call.requested"]);
const failed = compileSchema(CallEventSchema["call.error"].properties.error);

/** Writes a request down; throws a `CallError` for what cannot be. */
export function encodeRequest(request: CallRequested, maxBytes: number): Uint8Array {
  const body = new TextEncoder().encode(writeJson(toWire(request, REQUEST_WIRE)));
  if (body.length > maxBytes) throw tooLarge("The request", body.length, maxBytes);
  return body;
}

function writeJson(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (cause) {
    // A getter that answers differently the second time, or more text than a string can hold.
    throw new CallError("VALIDATION_ERROR", "The request cannot be written as JSON.", { cause });
  }
}

/** Reads a request back, or says nothing when it is not one. */
export function decodeRequest(body: Uint8Array): CallRequested | undefined {
  try {
    const value = fromWire(JSON.parse(decodeText(body)), REQUEST_WIRE) as CallRequested;
    return requested.check(value) && value.type === "call.requested" ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Writes an ending down; a result that cannot be written, or is too large, becomes the error that says so. */
export function encodeEnding(ending: Ending, maxBytes: number): Uint8Array {
  if ("error" in ending) return encodeError(ending.error);
  try {
    const body = new TextEncoder().encode(`+${encodeEnvelope(ending.envelope)}`);
    return body.length > maxBytes ? encodeError(tooLarge("The result", body.length, maxBytes)) : body;
  } catch (thrown) {
    return encodeError(toCallError(thrown));
  }
}

/** Reads an ending back; what is none becomes an error. */
export function decodeEnding(body: Uint8Array): Ending {
  try {
    const text = decodeText(body);
    if (text.startsWith("+")) return { envelope: decodeEnvelope(text.slice(1)) };
    const payload: unknown = JSON.parse(text.slice(1));
    if (text.startsWith("-") && failed.check(payload)) {
      return { error: fromErrorPayload(payload as CallErrorPayload) };
    }
  } catch {
    // Falls through to the same error as everything else that cannot be read.
  }
  return { error: new CallError("OUTPUT_INVALID", "What was stored as the result of the call is not one.") };
}

function encodeError(error: CallError): Uint8Array {
  return new TextEncoder().encode(`-${JSON.stringify(toCallErrorPayload(error))}`);
}

function decodeText(body: Uint8Array): string {
  return new TextDecoder("utf-8", { fatal: true }).decode(body);
}

function tooLarge(what: string, bytes: number, allowed: number): CallError {
  const message = `${what} is ${bytes} bytes written down; at most ${allowed} are allowed.`;
  return overLimit(message, { limit: "messageBytes", allowed }, false);
}

/** Says how a body too large for one message was split: number of parts, bytes in all, hash of them, name of the set. */
const PARTS_HEADER = "Waybill-Parts";

const PARTS = /^([1-9][0-9]{0,8}) ([1-9][0-9]{0,11}) ([A-Za-z0-9_-]{43}) ([A-Za-z0-9-]{1,64})$/;

/** Names the parts of a body. */
export type PartSubject = (set: string, index: number) => string;

/** What a message of either kind shows of itself, and where it and its parts are stored. */
export interface RecordHead {
  readonly stream: string;
  readonly partSubject: PartSubject;
  readonly headers: MsgHdrs | undefined;
  readonly data: Uint8Array;
}

/** Stores a body of any size: its parts first where it needs some, then the one message that counts. */
export async function writeRecord(
  store: DurableStore,
  { partSubject, ...head }: Placed & Pick<RecordHead, "partSubject">,
  until: number,
): Promise<Put> {
  const { partBytes } = store;
  const { data, nonce, stream } = head;
  if (data.length <= partBytes) return store.put(head, until);
  const count = Math.ceil(data.length / partBytes);
  for (let index = 0; index < count; index++) {
    const part = data.subarray(index * partBytes, (index + 1) * partBytes);
    // One that is there already is ours: nobody else knows the nonce.
    await store.put({ stream, subject: partSubject(nonce, index), data: part, nonce }, until);
  }
  const parts = `${count} ${data.length} ${digest(data)} ${nonce}`;
  const headers = { ...head.headers, [PARTS_HEADER]: parts };
  return store.put({ ...head, data: new Uint8Array(0), headers }, until);
}

/** Reads a body back, or says why it cannot be. */
export async function readRecord(
  store: DurableStore,
  head: RecordHead,
  until: number,
): Promise<Uint8Array | DropReason> {
  const maxBytes = store.settings.limits.messageBytes;
  const parts = head.headers?.get(PARTS_HEADER) ?? "";
  if (parts === "") return head.data.length > maxBytes ? "oversized" : head.data;
  const [, count = "", bytes = "", hash, set = ""] = PARTS.exec(parts) ?? [];
  if (set === "" || Number(count) > Number(bytes)) return "malformed";
  if (Number(bytes) > maxBytes) return "oversized";
  const body = new Uint8Array(Number(bytes));
  let at = 0;
  for (let index = 0; index < Number(count); index++) {
    const part = await store.last(head.stream, head.partSubject(set, index), until);
    if (part === undefined) return "gaps";
    const { data } = part;
    if (at + data.length > body.length) return "malformed";
    body.set(data, at);
    at += data.length;
  }
  return at === body.length && digest(body) === hash ? body : "malformed";
}

function digest(body: Uint8Array): string {
  return createHash("sha256").update(body).digest("base64url");
}

/** What can be read from the subject of a stored request. */
export interface RequestAddress {
  readonly user: string;
  readonly operationId: string;
  /** Stands for the request id, which may hold what a subject cannot. */
  readonly token: string;
}

/** Consumer names longer than this are hashed; the broker takes 255. */
const MAX_CONSUMER_NAME = 200;

/** Hashes a list of texts into one token of a subject; no two lists share one. */
export function hashOf(...parts: readonly (string | null)[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("base64url");
}

/** The token that a request id of a user is stored under. */
export function requestToken(user: string, requestId: string): string {
  return hashOf("request", user, requestId);
}

/**
 * Names streams, subjects and consumers. Neither namespaces, names nor users can hold a "~", so what starts with one is ours:
 *
 *     {prefix}.durable.{user}.{namespace}.{name}.{token}         a request
 *     {prefix}.durable.{user}.~part.{token}.{set}.{index}        part of a large one
 *     {prefix}.durable.{user}.~id.{token}                        a request id that its caller chose
 *     {prefix}.durable-result.{user}.{token}.end                 how it ended
 *     {prefix}.durable-result.{user}.{token}.start               that it was started
 *     {prefix}.durable-result.{user}.{token}.part.{set}.{index}  part of a large result
 */
export class DurableNames {
  readonly calls: string;
  readonly results: string;
  readonly callSubjects: string;
  readonly resultSubjects: string;
  readonly #requests: string;
  readonly #results: string;

  constructor(prefix: string) {
    this.calls = `${prefix.toUpperCase()}_CALLS`;
    this.results = `${prefix.toUpperCase()}_RESULTS`;
    this.#requests = `${prefix}.durable`;
    this.#results = `${prefix}.durable-result`;
    this.callSubjects = `${this.#requests}.>`;
    this.resultSubjects = `${this.#results}.>`;
  }

  request({ user, operationId, token }: RequestAddress): string {
    return `${this.#requests}.${user}.${subjectPlaceOf(operationId)}.${token}`;
  }

  /** Matches a request of any operation. */
  anyRequest(user: string, token: string): string {
    return `${this.#requests}.${user}.*.*.${token}`;
  }

  /** Matches every request for an operation, and nothing else. */
  requestsOf(operationId: string): string {
    return `${this.#requests}.*.${subjectPlaceOf(operationId)}.*`;
  }

  requestParts(user: string, token: string): PartSubject {
    return (set, index) => `${this.#requests}.${user}.~part.${token}.${set}.${index}`;
  }

  claim(user: string, token: string): string {
    return `${this.#requests}.${user}.~id.${token}`;
  }

  end(user: string, token: string): string {
    return `${this.#results}.${user}.${token}.end`;
  }

  start(user: string, token: string): string {
    return `${this.#results}.${user}.${token}.start`;
  }

  resultParts(user: string, token: string): PartSubject {
    return (set, index) => `${this.#results}.${user}.${token}.part.${set}.${index}`;
  }

  /** Reads the subject of a request back. */
  parseRequest(subject: string): RequestAddress | undefined {
    if (!subject.startsWith(`${this.#requests}.`)) return undefined;
    const [user, namespace, name, token, more] = subject.slice(this.#requests.length + 1).split(".");
    if (!user || !namespace || !name || !token || more !== undefined) return undefined;
    return { user, operationId: `${namespace}.${name.replaceAll("~", ".")}`, token };
  }
}

/** The name of an operation's consumer: another for every operation, and none that the broker refuses. */
export function consumerName(operationId: string): string {
  const dot = operationId.indexOf(".");
  const name = operationId
    .slice(dot + 1)
    .replaceAll(".", "~d")
    .replaceAll("/", "~s");
  const readable = `${operationId.slice(0, dot)}~${name}`;
  return readable.length > MAX_CONSUMER_NAME ? `~${hashOf(operationId)}` : readable;
}
