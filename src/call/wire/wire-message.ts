import { adoptEnvelope } from "../../core/envelope/envelope.ts";
import { isResponseEnvelope } from "../../core/envelope/is-response-envelope.ts";
import type { ResponseEnvelope } from "../../core/envelope/response-meta.ts";
import type { ErrorCode } from "../../core/errors/error-codes.ts";
import { CallError } from "../../core/errors/errors.ts";
import { isRequestId } from "../../core/execution/request-id.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { type CompiledSchema, compileSchema } from "../../core/schema/compile-schema.ts";
import { fromWire, toWire, WIRE_LIMITS } from "../../core/wire/wire.ts";
import { WIRE_KEY } from "../../core/wire/wire-walk.ts";
import type { DropReason } from "../call-counters.ts";
import { type CallEvent, CallEventSchema, type CallEventType } from "../call-events.ts";

/** The version of what is sent; another one is not understood. */
const VERSION = 1;

/** An event, envelope and meta are a few levels more than the data inside. */
const MAX_DEPTH = WIRE_LIMITS.depth + 6;

/** What one message says, beside its version. */
export interface WireMessage {
  readonly event?: CallEvent;
  /** Who sends it, where the other side may have to reach that one. */
  readonly peer?: string;
  /** The reply path of the call it belongs to, where its subject does not say. */
  readonly line?: string;
  /** With a request: whoever asks gives signs of life, under the name its reply path holds. */
  readonly beats?: true;
  /** How often the sender gives signs of life, in milliseconds; absent where that is every 2,000. */
  readonly beatMs?: number;
  /** With a request: its input has this many bytes and is sent in chunks to whoever takes it. */
  readonly inputBytes?: number;
  /** From whoever took a request: it runs here, or its input may be sent now. */
  readonly taken?: "running" | "send input";
  /** Asks every member which one could take the request with this id. */
  readonly seek?: string;
  /** From a member: it could take the request, it has run an earlier try of it, or it takes none any more. */
  readonly ready?: "fresh" | "ran" | "gone";
  /** With a request that every member hears: the one it is for. */
  readonly to?: string;
  /** A service and what it offers, or that it is gone. */
  readonly service?: unknown;
}

const encoder = new TextEncoder();

/** Node's own is three times as fast for short texts. */
export const toBytes: (text: string) => Uint8Array =
  typeof Buffer === "undefined" ? (text) => encoder.encode(text) : (text) => Buffer.from(text);
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The beginning of every message; what it says follows. Written as text, for adding a member to a copy costs more than the rest. */
const OPENING = `{"v":${VERSION},`;

/** Writes a message; throws a `CallError` of this code for what cannot cross a wire. */
export function encodeMessage(message: WireMessage, code: ErrorCode): Uint8Array {
  return toBytes(toMessageText(toText(message, code)));
}

/** Makes a message of the text of what it says. */
export function toMessageText(text: string): string {
  return OPENING + text.slice(1);
}

/** Names the member that a written request is for. */
export function addressTo(request: Uint8Array, member: string): Uint8Array {
  const opening = toBytes(`${OPENING}"to":"${member}",`);
  const addressed = new Uint8Array(opening.length + request.length - OPENING.length);
  addressed.set(opening);
  addressed.set(request.subarray(OPENING.length), opening.length);
  return addressed;
}

/** Makes one message of the texts of several, each with the last part of its reply path. */
export function toBatchText(batch: readonly { readonly token: string; readonly text: string }[]): string {
  const entries = batch.map(({ token, text }) => entryOpening(token) + text.slice(1));
  return `${OPENING}"batch":[${entries.join()}${BATCH_CLOSING}`;
}

const BATCH_CLOSING = "]}";

/** The beginning of what a message to several calls says for one of them. */
function entryOpening(token: string): string {
  return `{"line":"${token}",`;
}

/** Writes any value in the encoding of `toWire`. */
export function encodeValue(value: unknown, code: ErrorCode): Uint8Array {
  return toBytes(toText(value, code));
}

/** Writes any value as text, likewise. */
export function toText(value: unknown, code: ErrorCode): string {
  const plain = toWire(value, { maxDepth: MAX_DEPTH, code });
  try {
    return JSON.stringify(plain);
  } catch (cause) {
    throw new CallError(code, "The value cannot be written as JSON.", { cause });
  }
}

/** Reads any value back; throws for anything that is not JSON, or not in the encoding. */
export function decodeValue(bytes: Uint8Array): unknown {
  const text = decoder.decode(bytes);
  const value: unknown = JSON.parse(text);
  return isPlain(text) ? value : fromWire(value, { maxDepth: MAX_DEPTH });
}

/** Most messages hold nothing but JSON, not too deep, and without the key that marks the rest: they are what they were read as. */
function isPlain(text: string): boolean {
  if (text.includes(WIRE_KEY) || text.includes("\\u")) return false;
  return text.length < 2 * MAX_DEPTH || (text.length < LONG_TEXT && nestingOf(text) <= MAX_DEPTH);
}

/** Longer texts are walked, which is no slower than looking at every letter twice. */
const LONG_TEXT = 65_536;

/** How deep a text may be nested at most; brackets within strings count, so that it may be less. */
function nestingOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 123 || code === 91) deepest = Math.max(deepest, ++depth);
    else if (code === 125 || code === 93) depth--;
  }
  return deepest;
}

/** Reads a message; what is wrong with it instead, when something is. */
export function decodeMessage(bytes: Uint8Array): WireMessage | DropReason {
  try {
    const value = decodeValue(bytes);
    return isPlainObject(value) && value["v"] === VERSION ? checkedMessage(value) : "malformed";
  } catch {
    return "malformed";
  }
}

/** Reads the answers in one message, each to be checked with `checkedMessage`; nothing when it is no such message. */
export function decodeBatch(bytes: Uint8Array): readonly unknown[] | undefined {
  try {
    const text = decoder.decode(bytes);
    const value: unknown = JSON.parse(text);
    if (!isPlainObject(value) || value["v"] !== VERSION || !Array.isArray(value["batch"])) return undefined;
    return isPlain(text) ? value["batch"] : value["batch"].map(fromWireOrNothing);
  } catch {
    return undefined;
  }
}

/**
 * Measures each answer in one message, in bytes, as if it had been sent by itself: the last first, up to one that is not written as
 * `toBatchText` writes it.
 */
export function measureBatch(bytes: Uint8Array, batch: readonly unknown[]): readonly (number | undefined)[] {
  const text = decoder.decode(bytes);
  const sizes: (number | undefined)[] = batch.map(() => undefined);
  let end = text.length - BATCH_CLOSING.length;
  for (let at = batch.length - 1; at >= 0; at--) {
    const entry = batch[at];
    if (!isPlainObject(entry) || typeof entry["line"] !== "string") break;
    const opening = entryOpening(entry["line"]);
    const start = text.lastIndexOf(opening, end - opening.length);
    if (start < 0) break;
    sizes[at] = OPENING.length + toBytes(text.slice(start + opening.length, end)).length;
    // Without the comma between the two.
    end = start - 1;
  }
  return sizes;
}

/** One entry that is not in the encoding spoils no other. */
function fromWireOrNothing(entry: unknown): unknown {
  try {
    return fromWire(entry, { maxDepth: MAX_DEPTH });
  } catch {
    return undefined;
  }
}

/** Checks what one message says. */
export function checkedMessage(value: Record<string, unknown>): WireMessage | DropReason {
  if (!hasRightFields(value)) return "malformed";
  if (value["event"] === undefined) return value;
  const event = checkedEvent(value["event"]);
  if (typeof event === "string") return event;
  return event === value["event"] ? value : { ...value, event };
}

const MAX_NAME = 512;

function hasRightFields(value: Record<string, unknown>): boolean {
  const { peer, line, beats, beatMs, inputBytes, taken, seek, ready, to } = value;
  return (
    (beats === undefined || beats === true) &&
    (beatMs === undefined || (Number.isFinite(beatMs) && (beatMs as number) > 0)) &&
    (peer === undefined || isAddress(peer)) &&
    (line === undefined || isName(line)) &&
    (inputBytes === undefined || (Number.isSafeInteger(inputBytes) && (inputBytes as number) > 0)) &&
    (taken === undefined || taken === "running" || taken === "send input") &&
    (seek === undefined || isRequestId(seek)) &&
    (ready === undefined || ready === "fresh" || ready === "ran" || ready === "gone") &&
    (to === undefined || isAddress(to))
  );
}

/** A user and a name: both become parts of subjects. */
function isAddress(value: unknown): boolean {
  return typeof value === "string" && value.length <= MAX_NAME && /^[\w-]+\.[\w-]+$/.test(value);
}

/** A reply path is a subject, and nothing that stands for several. */
function isName(value: unknown): boolean {
  return (
    typeof value === "string" &&
    value.length <= MAX_NAME &&
    /^[\x21-\x7e]+$/.test(value) &&
    !/[*>]/.test(value)
  );
}

const COMPILED = new Map<string, CompiledSchema>();

function schemaOf(type: CallEventType): CompiledSchema {
  const known = COMPILED.get(type);
  if (known !== undefined) return known;
  const compiled = compileSchema(CallEventSchema[type]);
  COMPILED.set(type, compiled);
  return compiled;
}

/** Holds an event against its schema; a result is marked as an envelope, which is what its sender was asked to make. */
function checkedEvent(event: unknown): CallEvent | DropReason {
  if (!isPlainObject(event)) return "malformed";
  const { type } = event;
  if (typeof type !== "string" || !Object.hasOwn(CallEventSchema, type)) return "unexpected";
  if (type === "call.responded") return checkedAnswer(event);
  return schemaOf(type as CallEventType).check(event) ? (event as unknown as CallEvent) : "malformed";
}

function checkedAnswer(event: Record<string, unknown>): CallEvent | DropReason {
  const { requestId, sequence, output } = event;
  // By hand rather than by its schema, which costs more and to which `undefined`, a result like any other, is not there.
  if (!isRequestId(requestId) || !isSequence(sequence) || !isEnvelope(output)) return "malformed";
  // In place: it was read a moment ago and is nobody else's.
  event["output"] = adoptEnvelope(output);
  return event as unknown as CallEvent;
}

/** Most answers come from a handler there, with nothing to say about them: told from others without the whole check. */
function isEnvelope(value: unknown): value is ResponseEnvelope {
  if (isPlainObject(value) && Object.hasOwn(value, "data") && isPlainObject(value["meta"])) {
    const { meta } = value;
    const isBare = Object.keys(meta).length === 3 && meta["source"] === "local";
    if (isBare && typeof meta["operationId"] === "string" && Number.isFinite(meta["timestamp"])) return true;
  }
  return isResponseEnvelope(value);
}

function isSequence(value: unknown): boolean {
  return value === undefined || (Number.isSafeInteger(value) && (value as number) >= 0);
}
