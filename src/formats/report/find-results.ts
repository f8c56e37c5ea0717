import { describeJsonFault } from "../../core/json/json-fault.ts";
import {
  isPlainObject,
  JsonTextError,
  parseJsonText,
  parseJsonTextOrNone,
} from "../../core/json/json-value.ts";
import { safeLine } from "../../core/text/clean-text.ts";
import { counted } from "../../core/text/nearest-name.ts";
import type { FoundResult } from "./found-result.ts";
import { ResultTextError } from "./found-result.ts";

const ENVELOPE_LINE = /^__ENVELOPE_V\d+__:/;

/** Finds the results in a text: one in any wrapping, or one in each line. `what` names the text in the message of a `ResultTextError`. */
export function findResults(text: string, what: string): readonly FoundResult[] {
  // That takes away the mark too that some editors begin a file with.
  const body = text.trim();
  if (body === "") throw new ResultTextError(`${what} is empty; a tool result is wanted.`);
  const messages = readEventStream(body);
  if (messages !== undefined) return fromEventStream(messages, what, (value) => fromValue(value, what));
  if (!/^[[{"]/.test(body)) return fromText(body, what);
  const value = parseJsonTextOrNone(body);
  if (value !== undefined) return fromJson(value, what);
  const lines = fromLines(body, what);
  if (lines !== undefined) return lines;
  // Says where it stops being JSON.
  return fromJson(parseResultJson(withoutMark(text), what), what);
}

/** Positions in messages are those of the text as it was given. */
export function withoutMark(text: string): string {
  return text.startsWith("\uFEFF") ? text.slice(1) : text;
}

function fromLines(body: string, what: string): readonly FoundResult[] | undefined {
  const lines = body.split("\n").map((line, at) => ({ line: line.trim(), at: at + 1 }));
  const filled = lines.filter(({ line }) => line !== "");
  const [first] = filled;
  if (filled.length < 2 || first === undefined || parseJsonTextOrNone(first.line) === undefined)
    return undefined;
  return filled.flatMap(({ line, at }) =>
    fromLine(line, `Line ${at} of ${lowerFirst(what)}`).map((found) => ({ ...found, line: at })),
  );
}

function fromLine(line: string, what: string): readonly FoundResult[] {
  return ENVELOPE_LINE.test(line) ? fromText(line, what) : fromValue(parseResultJson(line, what), what);
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

/** A text that is not JSON: the line of an envelope, or what it looks like. */
function fromText(body: string, what: string): readonly FoundResult[] {
  if (ENVELOPE_LINE.test(body)) return [{ value: aroundText(["", body]), wrapping: "envelope-line" }];
  const at = body.search(/^__ENVELOPE_V\d+__:/m);
  // The text blocks of a result, copied one below the other.
  if (at !== -1) {
    return [{ value: aroundText([body.slice(0, at).trim(), body.slice(at).trim()]), wrapping: "text" }];
  }
  const looks = looksLike(body);
  if (looks !== undefined) throw new ResultTextError(`${what} is not JSON: it looks like ${looks}.`);
  parseResultJson(body, what);
  return fromValue(parseJsonTextOrNone(body), what);
}

const LOOKS: readonly (readonly [RegExp, string])[] = [
  [/^<(?:!doctype|html|\?xml|[a-z])/i, "HTML or XML"],
  [/^(?:event|data|id|retry):/m, "a stream of events without data"],
  [/^HTTP\/\d/, "an HTTP response; give its body"],
  [/^content-length:/i, "a message with headers; give the JSON after them"],
  [/^[A-Za-z0-9+/_-]{16,}={0,2}$/, 'base64; an envelope block begins with "__ENVELOPE_V1__:"'],
  [/^[\w-]+:\s/, "YAML"],
];

function looksLike(body: string): string | undefined {
  return LOOKS.find(([pattern]) => pattern.test(body.slice(0, 2_000)))?.[1];
}

function fromJson(value: unknown, what: string): readonly FoundResult[] {
  if (!Array.isArray(value) || value.length === 0) return fromValue(value, what);
  if (value.every(isBlock)) return [{ value: { content: value }, wrapping: "content-list" }];
  // A batch of answers, or a list that somebody collected.
  return value.flatMap((item, at) => fromValue(item, `Item ${at + 1} of ${lowerFirst(what)}`));
}

function fromValue(value: unknown, what: string): readonly FoundResult[] {
  if (isPlainObject(value) && isFixture(value)) return openFixture(value, what);
  return [fromOne(value, what)];
}

function fromOne(value: unknown, what: string): FoundResult {
  if (typeof value === "string") {
    if (ENVELOPE_LINE.test(value)) return { value: aroundText(["", value]), wrapping: "envelope-line" };
    return { value: aroundText([value]), wrapping: "text" };
  }
  if (!isPlainObject(value)) {
    throw new ResultTextError(`${what} holds ${nameOf(value)}, and no tool result.`);
  }
  if (value["jsonrpc"] === "2.0" && ("result" in value || "error" in value)) return fromRpc(value, what);
  if (isCarrier(value)) return { value, wrapping: "none" };
  if (isBlock(value)) return { value: { content: [value] }, wrapping: "content-block" };
  if (isPlainObject(value["result"]) && isCarrier(value["result"])) {
    return { value: value["result"], wrapping: "json-rpc", notes: ['Taken out of the member "result".'] };
  }
  return fromBare(value, what);
}

function fromRpc(message: Readonly<Record<string, unknown>>, what: string): FoundResult {
  const { error, result } = message;
  const around = { wrapping: "json-rpc", notes: [noteOfRpc(message)] } as const;
  if (isPlainObject(error)) return { failure: "json-rpc-error", error, ...around };
  if (isPlainObject(result) && isCarrier(result)) return { value: result, ...around };
  const keys = isPlainObject(result) ? Object.keys(result).slice(0, 5).join(", ") : nameOf(result);
  throw new ResultTextError(
    `${what} is a JSON-RPC response, and its result is no tool result: it holds ${safeLine(keys, 100)}.`,
  );
}

function noteOfRpc({ id }: Readonly<Record<string, unknown>>): string {
  const isTold = typeof id === "number" || typeof id === "string";
  return `Taken out of the JSON-RPC answer${isTold ? ` to request ${safeLine(String(id), 50)}` : ""}.`;
}

/** An envelope as it stands in structured content; one of our own is known without. */
function fromBare(value: Readonly<Record<string, unknown>>, what: string): FoundResult {
  if ("data" in value && ("meta" in value || "tool_id" in value)) {
    const { meta } = value;
    const isOwn = isPlainObject(meta) && typeof meta["source"] === "string";
    return isOwn
      ? { value, wrapping: "none" }
      : { value: { structuredContent: value }, wrapping: "bare-envelope" };
  }
  if ("payload" in value && isPlainObject(value["meta"])) {
    const block = `__ENVELOPE_V1__:${Buffer.from(JSON.stringify(value)).toString("base64")}`;
    return { value: aroundText(["", block]), wrapping: "bare-envelope" };
  }
  if (isProblem(value)) return { failure: "problem", error: value, wrapping: "none" };
  const keys = Object.keys(value).slice(0, 5).join(", ");
  const held = keys === "" ? "an empty object" : `an object with ${safeLine(keys, 100)}`;
  throw new ResultTextError(
    `${what} holds ${held}: that is no tool result. One has "content" or "structuredContent", or is an envelope; "waybill encode" makes one of data.`,
  );
}

function isCarrier(value: Readonly<Record<string, unknown>>): boolean {
  return Array.isArray(value["content"]) || "structuredContent" in value;
}

const BLOCKS = ["text", "image", "audio", "resource", "resource_link"];

function isBlock(value: unknown): boolean {
  return isPlainObject(value) && BLOCKS.includes(value["type"] as string) && !Array.isArray(value["content"]);
}

function aroundText(texts: readonly string[]): unknown {
  return { content: texts.map((text) => ({ type: "text", text })) };
}

function nameOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

const TEXTS = ["type", "title", "detail", "instance"] as const;

/**
 * Tells whether an object is a problem of an HTTP API (RFC 9457). All its members are optional there; here it must have the status of
 * an error beside one that is text, or a type that is an address beside a title or detail: other objects have a title too.
 */
function isProblem(value: Readonly<Record<string, unknown>>): boolean {
  const { status, type } = value;
  const texts = TEXTS.filter((name) => typeof value[name] === "string");
  if (typeof status === "number") return status >= 400 && status <= 599 && texts.length > 0;
  const isAddress = typeof type === "string" && /^(?:about:blank$|https?:\/\/|urn:|tag:)/i.test(type);
  return status === undefined && isAddress && (texts.includes("title") || texts.includes("detail"));
}

/** A call that the inspector exported as a file. */
export type CallFixture = Readonly<Record<string, unknown>>;

/** Tells whether something is a call that the inspector exported. */
function isFixture(value: CallFixture): boolean {
  const { waybill } = value;
  return typeof waybill === "string" && /^fixture\/\d{1,9}$/.test(waybill);
}

/** Opens a fixture to what came back: one result, each value of a subscription, or the error. */
function openFixture(fixture: CallFixture, what: string): readonly FoundResult[] {
  const { waybill, envelope, envelopes, error } = fixture;
  if (waybill !== "fixture/1") {
    throw new ResultTextError(
      `${what} is a fixture of another version (${safeLine(String(waybill), 30)}); this Waybill reads fixture/1.`,
    );
  }
  const notes = [noteOf(fixture)];
  const values = isPlainObject(envelope) ? [envelope] : Array.isArray(envelopes) ? envelopes : [];
  const found: FoundResult[] = values.map((value) => ({ value, wrapping: "fixture", notes }));
  if (isPlainObject(error)) found.push({ failure: "call-error", error, wrapping: "fixture", notes });
  if (found.length > 0) return found;
  throw new ResultTextError(
    `${what} is a fixture without a result: ${reasonIn(fixture)}. Export it again from a call that has one.`,
  );
}

function noteOf({ operation, recordedAt }: CallFixture): string {
  const of = typeof operation === "string" ? ` of ${safeLine(operation, 100)}` : "";
  const when = typeof recordedAt === "string" ? `, recorded ${safeLine(recordedAt, 40)}` : "";
  return `Taken out of a fixture${of}${when}.`;
}

function reasonIn({ outcome, omitted }: CallFixture): string {
  if (outcome === undefined) return "the call was still running";
  return isPlainObject(omitted) && Array.isArray(omitted["envelopes"])
    ? "what came back was not kept"
    : "nothing came back";
}

/** Reads JSON that somebody gave; `what` names it in the one message about what is wrong and where. */
function parseResultJson(text: string, what: string): unknown {
  try {
    return parseJsonText(text);
  } catch (thrown) {
    if (!(thrown instanceof JsonTextError)) throw thrown;
    throw new ResultTextError(`${what} is not JSON: ${describeJsonFault(text, thrown)}`, { cause: thrown });
  }
}

interface StreamMessage {
  /** The line its data begins in. */
  readonly line: number;
  /** Its data, read; nothing where that is no JSON. */
  readonly value: unknown;
}

interface DataLine {
  readonly line: number;
  readonly text: string;
}

const START = /^(?:(?:event|data|id|retry)?:|(?:event|data|id|retry)(?:[\r\n]|$))/;
const DATA = /^data:/m;

/**
 * Reads a text as a stream of events; nothing where it does not look like one. Copies often lack the empty line at the end, or those
 * between events: what is read here is a copy, so both are made up for.
 */
function readEventStream(text: string): readonly StreamMessage[] | undefined {
  if (!START.test(text) || !DATA.test(text)) return undefined;
  const messages: StreamMessage[] = [];
  let data: DataLine[] = [];
  const end = (): void => {
    if (data.some((line) => line.text !== "")) addMessages(data, messages);
    data = [];
  };
  for (const [at, line] of text.split(/\r\n|\r|\n/).entries()) {
    if (line === "") end();
    else if (line.startsWith("data:")) data.push({ line: at + 1, text: line.slice(5).replace(/^ /, "") });
  }
  end();
  return messages;
}

function addMessages(data: readonly DataLine[], messages: StreamMessage[]): void {
  const [first] = data;
  if (first === undefined) return;
  const value = parseJsonTextOrNone(data.map(({ text }) => text).join("\n"));
  const alone = value === undefined && data.length > 1 ? readEach(data) : undefined;
  if (alone === undefined) messages.push({ line: first.line, value });
  else for (const message of alone) messages.push(message);
}

/** Events without empty lines between them: each line must be JSON by itself. */
function readEach(data: readonly DataLine[]): readonly StreamMessage[] | undefined {
  const messages: StreamMessage[] = [];
  for (const { line, text } of data) {
    const value = parseJsonTextOrNone(text);
    if (value === undefined) return undefined;
    messages.push({ line, value });
  }
  return messages;
}

/** Finds the last result in a stream of events, as servers of MCP answer; what else is in the stream is told in notes. */
function fromEventStream(
  messages: readonly StreamMessage[],
  what: string,
  read: (value: unknown) => readonly FoundResult[],
): readonly FoundResult[] {
  const unread = messages.filter(({ value }) => value === undefined);
  const all = messages.flatMap(split);
  const answers = all.filter(({ value }) => isAnswer(value));
  const last = lastResult(answers, read);
  if (last === undefined) throw noAnswer(all, unread, what);
  const notes = notesOf({ answers, unread, others: all.length - answers.length - unread.length }, last.line);
  return last.found.map((found) => ({
    ...found,
    wrapping: "event-stream",
    notes: [...notes, ...(found.notes ?? [])],
  }));
}

/** One event may hold several messages. */
function split(message: StreamMessage): readonly StreamMessage[] {
  const { value, line } = message;
  return Array.isArray(value) ? value.map((one) => ({ value: one, line })) : [message];
}

/** A request or notice has a method; what else is an object may be an answer. */
function isAnswer(value: unknown): boolean {
  return isPlainObject(value) && !Object.hasOwn(value, "method");
}

interface LastResult {
  readonly line: number;
  readonly found: readonly FoundResult[];
}

/** Other answers, such as that to a handshake, hold no result: what is wrong with the last one is told where none does. */
function lastResult(
  answers: readonly StreamMessage[],
  read: (value: unknown) => readonly FoundResult[],
): LastResult | undefined {
  let refusal: ResultTextError | undefined;
  for (const { value, line } of answers.toReversed()) {
    try {
      return { line, found: read(value) };
    } catch (thrown) {
      if (!(thrown instanceof ResultTextError)) throw thrown;
      refusal ??= thrown;
    }
  }
  if (refusal !== undefined) throw refusal;
  return undefined;
}

function noAnswer(
  all: readonly StreamMessage[],
  [unread]: readonly StreamMessage[],
  what: string,
): ResultTextError {
  const why =
    unread === undefined
      ? `none of its ${all.length} messages is an answer`
      : `line ${unread.line} is no JSON`;
  return new ResultTextError(`${what} is a stream of events without a tool result: ${why}.`);
}

interface Seen {
  readonly answers: readonly StreamMessage[];
  readonly unread: readonly StreamMessage[];
  readonly others: number;
}

function notesOf({ answers, unread, others }: Seen, line: number): readonly string[] {
  const [first] = unread;
  const count = answers.length;
  return [
    count === 1
      ? `Taken out of a stream of events, line ${line}.`
      : `Taken out of a stream of events with ${count} answers: this is the last result, in line ${line}.`,
    ...(others > 0 ? [`Left out of it: ${counted(others, "other message")}.`] : []),
    ...(first === undefined
      ? []
      : [
          `${counted(unread.length, "event")} in it cannot be read as JSON, the first in line ${first.line}.`,
        ]),
  ];
}
