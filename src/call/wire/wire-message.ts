import { adoptEnvelope, isResponseEnvelope } from "../../core/envelope/envelope.ts";
import type { LocalResponseMeta, ResponseEnvelope } from "../../core/envelope/response-meta.ts";
import type { ErrorCode } from "../../core/errors/error-codes.ts";
import { CallError } from "../../core/errors/errors.ts";
import { isRequestId } from "../../core/execution/call-context.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { type CompiledSchema, compileSchema } from "../../core/schema/compile-schema.ts";
import { fromWire, toWire, WIRE_KEY, WIRE_LIMITS } from "../../core/wire/wire.ts";
import {
  type AnswerEvent,
  type CallEvent,
  CallEventSchema,
  type CallEventType,
  type CallRequested,
} from "../call-events.ts";
import type { DropReason } from "../call-observer.ts";

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
  /** With a request: the caller gives signs of life, under the name its reply path holds. */
  readonly beats?: true;
  /** How often the sender gives signs of life, in milliseconds; absent where that is every 2,000. */
  readonly beatMs?: number;
  /** With a request: its input has this many bytes and is sent in chunks to the member that takes it. */
  readonly inputBytes?: number;
  /** From the member that took a request: it runs here, or its input may be sent now. */
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
  return toBytes(toMessageText(toWireText(message, code).slice(1)));
}

/** Makes a message of the text of what it says: an object, without the brace that opens it. */
export function toMessageText(said: string): string {
  return OPENING + said;
}

/** Names the member that a written request is for. */
export function addressTo(request: string, member: string): string {
  return `${OPENING}"to":"${member}",${request.slice(OPENING.length)}`;
}

/** The beginning of a request: that the caller gives signs of life, and how often. */
export function requestOpening({ beatMs }: Pick<WireMessage, "beatMs">): string {
  return `${OPENING}"beats":true,${beatMs === undefined ? "" : `"beatMs":${beatMs},`}`;
}

/** Containers around the input of a request, and around the data of an answer. */
const AROUND_INPUT = 2;
const AROUND_DATA = 3;

/** Writes the event of a request, whose operation is written already. Most say little more than what to run with which input. */
export function toRequestText(operation: string, request: CallRequested): string {
  const { requestId, input, timeLeftMs, attempt, credential, credit, metadata, progress, depth } = request;
  const isUsual =
    attempt === undefined &&
    credential === undefined &&
    credit === undefined &&
    metadata === undefined &&
    progress === undefined &&
    depth === undefined &&
    request.parent === undefined &&
    (timeLeftMs === undefined || Number.isFinite(timeLeftMs));
  if (!isUsual) return toWireText(request, "VALIDATION_ERROR");
  const left = timeLeftMs === undefined ? "" : `,"timeLeftMs":${timeLeftMs}`;
  const given = toWireText(input, "VALIDATION_ERROR", MAX_DEPTH - AROUND_INPUT);
  return `{"type":"call.requested","requestId":${JSON.stringify(requestId)},"operationId":${operation},"input":${given}${left}}`;
}

/** Writes what an answer says, without the brace that opens it: it is written once, and copied once. Most are the result of a handler there, with nothing to say about it. */
export function toAnswerText(event: AnswerEvent): string {
  if (event.type !== "call.responded" || event.sequence !== undefined || !isBareLocal(event.output))
    return toWireText({ event }, "OUTPUT_INVALID").slice(1);
  const { data, meta } = event.output;
  const { operationId, timestamp } = meta as LocalResponseMeta;
  const given = toWireText(data, "OUTPUT_INVALID", MAX_DEPTH - AROUND_DATA);
  return `"event":{"type":"call.responded","requestId":${JSON.stringify(event.requestId)},"output":{"data":${given},"meta":{"source":"local","operationId":${JSON.stringify(operationId)},"timestamp":${timestamp}}}}}`;
}

/** Writes any value in the encoding of `toWire`. */
export function encodeValue(value: unknown, code: ErrorCode): Uint8Array {
  return toBytes(toWireText(value, code));
}

/** Writes any value as text, likewise. */
export function toWireText(value: unknown, code: ErrorCode, maxDepth: number = MAX_DEPTH): string {
  const plain = isFlat(value) ? value : toWire(value, { maxDepth, code });
  try {
    return JSON.stringify(plain);
  } catch (cause) {
    throw new CallError(code, "The value cannot be written as JSON.", { cause });
  }
}

/** Most values are JSON that need not be looked through: one that holds nothing, or an object of such. */
function isFlat(value: unknown): boolean {
  if (isScalar(value)) return true;
  if (!isPlainObject(value) || "toJSON" in value || WIRE_KEY in value) return false;
  for (const key in value) if (!isScalar(value[key])) return false;
  return true;
}

function isScalar(value: unknown): boolean {
  if (typeof value === "number") return Number.isFinite(value) && !Object.is(value, -0);
  return typeof value === "string" || typeof value === "boolean" || value === null;
}

/** Reads any value back; throws for anything that is not JSON, or not in the encoding. */
export function decodeValue(bytes: Uint8Array): unknown {
  return readText(decoder.decode(bytes));
}

function readText(text: string): unknown {
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

/** The first byte of a chunk; JSON text never begins with it. */
export const CHUNK_MARK = 1;

/** Tells a chunk from a message that is whole. */
export function isChunk(bytes: Uint8Array): boolean {
  return bytes[0] === CHUNK_MARK;
}

/** What one message says to, or for, several calls. */
export interface Batch {
  /** What holds for all of them. */
  readonly said: WireMessage;
  /** One for each call, to be checked with `checkedMessage`; undefined for one that cannot be read. */
  readonly entries: readonly unknown[];
  /** The entries as they were written; none where they are not written one a line, as by earlier versions. */
  readonly lines?: readonly string[];
  /** Characters at the beginning that each entry would have had too, by itself. */
  readonly opening: number;
}

/** Requests in one message; what holds more is dropped. */
export const MOST_REQUESTS = 16;

const BATCH_MEMBER = '"batch":[';
const BATCH_OPENING = OPENING + BATCH_MEMBER;
const BATCH_CLOSING = "]}";
const BETWEEN = ",\n";

/** The beginning of what a message to several calls says for one of them. */
function entryOpening(token: string): string {
  return `{"line":"${token}",`;
}

/** Writes what a message to several calls says for one of them; `said` is an object without the brace that opens it. */
export function toEntryText(token: string, said: string): string {
  return entryOpening(token) + said;
}

/** What such an entry says, without its beginning. */
export function fromEntryText(token: string, entry: string): string {
  return entry.slice(entryOpening(token).length);
}

/**
 * Makes one message of several entries. Each has a line of its own, which JSON text never breaks: the receiver reads entry by
 * entry, and one that cannot be read spoils no other. Earlier versions read it as the JSON that it is.
 */
export function toBatchText(entries: readonly string[], opening: string = OPENING): string {
  return `${opening}${BATCH_MEMBER}\n${entries.join(BETWEEN)}\n${BATCH_CLOSING}`;
}

/** The question whether several requests may be sent at a time, and the answer that they may. */
export const EMPTY_BATCH: Uint8Array = toBytes(`${BATCH_OPENING}${BATCH_CLOSING}`);

/** Reads a message to several calls; nothing when it is no such message. */
export function decodeBatch(bytes: Uint8Array): Batch | undefined {
  try {
    const text = decoder.decode(bytes);
    const end = text.indexOf("\n");
    if (end < 0) return readBatch(text);
    if (!text.endsWith(`\n${BATCH_CLOSING}`)) return undefined;
    const lines = text.slice(end + 1, -BATCH_CLOSING.length - 1).split(BETWEEN);
    const opening = end - BATCH_MEMBER.length;
    // Answers say nothing that holds for all of them.
    if (end === BATCH_OPENING.length && text.startsWith(BATCH_OPENING))
      return { said: {}, entries: lines.map(readEntry), lines, opening };
    const said = readBatch(text.slice(0, end) + BATCH_CLOSING)?.said;
    return said && { said, entries: lines.map(readEntry), lines, opening };
  } catch {
    return undefined;
  }
}

function readBatch(text: string): Batch | undefined {
  const value: unknown = JSON.parse(text);
  if (!isPlainObject(value) || value["v"] !== VERSION || !hasRightFields(value)) return undefined;
  const { batch, beats, beatMs } = value;
  if (!Array.isArray(batch)) return undefined;
  const entries: unknown[] = isPlain(text) ? batch : batch.map(fromWireOrNothing);
  return { said: { beats, beatMs } as WireMessage, entries, opening: 0 };
}

function readEntry(text: string): unknown {
  try {
    return readText(text);
  } catch {
    return undefined;
  }
}

/** Bytes of one entry, as if it had been sent by itself; unknown where it was not written on a line. */
export function entryBytes({ lines, opening }: Batch, at: number, token: string): number | undefined {
  const line = lines?.[at];
  return line === undefined ? undefined : opening + toBytes(line).length - entryOpening(token).length;
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

/** Most answers are told from others without the whole check. */
function isEnvelope(value: unknown): value is ResponseEnvelope {
  return (
    (isPlainObject(value) && Object.hasOwn(value, "data") && isBareLocal(value)) || isResponseEnvelope(value)
  );
}

/** Tells the result of a handler where it ran, with nothing to say about it, which is what most results are. */
function isBareLocal({ meta }: { readonly meta?: unknown }): boolean {
  if (!isPlainObject(meta) || meta["source"] !== "local") return false;
  let members = 0;
  for (const _ in meta) members++;
  if (members !== 3) return false;
  return typeof meta["operationId"] === "string" && Number.isFinite(meta["timestamp"]);
}

function isSequence(value: unknown): boolean {
  return value === undefined || (Number.isSafeInteger(value) && (value as number) >= 0);
}
