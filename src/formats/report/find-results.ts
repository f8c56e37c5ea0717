import { parseJsonTextOrNone } from "../../core/json/json-text.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import type { FoundResult } from "./found-result.ts";
import { fromEventStream } from "./from-event-stream.ts";
import { isProblem } from "./is-problem.ts";
import { isFixture, openFixture } from "./open-fixture.ts";
import { parseResultJson } from "./parse-result-json.ts";
import { readEventStream } from "./read-event-stream.ts";
import { ResultTextError } from "./result-text-error.ts";

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
function withoutMark(text: string): string {
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
