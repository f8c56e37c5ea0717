import { isSaidFacts } from "../../../core/envelope/envelope.ts";
import type { ResultFacts, SaidFacts } from "../../../core/envelope/response-meta.ts";
import { CallError } from "../../../core/errors/errors.ts";
import {
  isPlainObject,
  ownMember,
  parseJsonText,
  parseJsonTextOrNone,
} from "../../../core/json/json-value.ts";
import type { JsonSchema } from "../../../core/schema/json-schema.ts";
import type { SchemaView } from "../../../core/schema/schema-view.ts";
import { SourceSecrets } from "../../../core/secrets/secret-mask.ts";
import { truncateText } from "../../../core/text/truncate-text.ts";
import { type BodyKind, type MediaType, parseMediaType } from "../../media-types.ts";
import { type Definitions, viewWithDefinitions } from "../definitions.ts";
import type { StreamedResponse } from "../http-message.ts";
import type { MediaPlan, OperationPlan } from "../plan.ts";
import { FrameCut, FrameTooLarge, readFrames, type StreamFrame } from "./frames.ts";
import { type HopReader, readTold, readToolFacts, toHopError } from "./hop-outcome.ts";
import { mediaFor, responseFor, toItemSchema } from "./output-schema.ts";
import { headerOf } from "./response-body.ts";

/** One item of a stream. */
export interface StreamItem {
  readonly data: unknown;
  /** Where the stream can be taken up again. */
  readonly cursor?: string | undefined;
  /** The name of the event it came as. */
  readonly event?: string | undefined;
  /** Why the operation reported an error with this item, where it did. */
  readonly error?: ResultFacts | undefined;
  /** What the operation said about it beyond the data. */
  readonly said?: SaidFacts | undefined;
}

/** The items of one response, read once. */
export interface ItemStream extends AsyncIterable<StreamItem> {
  /** The id of the last event that was read, to be sent as `Last-Event-ID`. */
  readonly lastEventId: string | undefined;
}

/** How a stream is read. */
export interface StreamOptions {
  readonly operationId: string;
  /** Codes the operation declares. @default none */
  readonly declared?: ReadonlySet<string> | undefined;
  /** Bytes of one event. @default 4_194_304 */
  readonly eventBytes?: number | undefined;
  /** Accepts streams that end with the connection where nothing shows that they are whole. @default false */
  readonly allowUndelimited?: boolean | undefined;
  /** What a Waybill server says for people is taken for the message of an error. @default false */
  readonly trusted?: boolean | undefined;
  /** What of the server's words is passed on. @default all of them, and nothing is secret */
  readonly secrets?: SourceSecrets | undefined;
}

const EVENT_BYTES = 4_194_304;
const END = "[DONE]";
const ID_LENGTH = 8_192;
const SHOWN_TEXT = 4_096;

/** Reads the items of a stream as they arrive: events, lines, JSON text sequences, or bytes. */
export function readStream(
  response: StreamedResponse,
  plan: OperationPlan,
  options: StreamOptions,
): ItemStream {
  let lastEventId: string | undefined;
  const onEventId = (id: string): void => {
    lastEventId = id;
  };
  const items = readItems(response, plan, { ...options, onEventId });
  return {
    get lastEventId() {
      return lastEventId;
    },
    [Symbol.asyncIterator]: () => items,
  };
}

async function* readItems(
  response: StreamedResponse,
  plan: OperationPlan,
  options: StreamOptions & { onEventId(id: string): void },
): AsyncGenerator<StreamItem, undefined> {
  const { operationId, eventBytes = EVENT_BYTES } = options;
  const media = mediaOf(response, plan);
  const delimited = response.delimited || options.allowUndelimited === true;
  const isOwn = plan.waybill !== undefined && media.kind === "events";
  if (media.kind === "bytes") {
    for await (const data of response.body) if (data.length > 0) yield { data };
  } else {
    const toItem = isOwn
      ? createOwnReader(options)
      : toForeignItem(itemReader(response, plan, media), operationId);
    try {
      for await (const frame of readFrames(response.body, { kind: media.kind, eventBytes, delimited })) {
        const item = toItem(frame);
        if (frame.id !== undefined && frame.id.length <= ID_LENGTH) options.onEventId(frame.id);
        if (item === "end") return;
        if (item !== undefined) yield item;
      }
    } catch (error) {
      throw toStreamError(error, operationId, eventBytes);
    }
  }
  if (isOwn) throw wasCut(operationId);
  if (!delimited && (media.kind === "bytes" || media.kind === "text")) throw mayBeCut(operationId);
}

function itemReader(response: StreamedResponse, plan: OperationPlan, { type, kind }: MediaType): ItemReader {
  const declared = mediaFor(responseFor(plan, response.status), type);
  return createItemReader(declared, kind, plan.definitions);
}

function toStreamError(error: unknown, operationId: string, eventBytes: number): unknown {
  if (error instanceof FrameTooLarge) return tooLarge(operationId, eventBytes);
  return error instanceof FrameCut ? mayBeCut(operationId) : error;
}

/** What the response says it is; where it does not say, the one thing it may be, or else lines. */
function mediaOf(response: StreamedResponse, plan: OperationPlan): MediaType {
  const contentType = headerOf(response.headers, "content-type") ?? "";
  if (contentType !== "") return parseMediaType(contentType);
  const [only, ...others] = responseFor(plan, response.status)?.content ?? [];
  const isKnown = only !== undefined && others.length === 0 && !only.mediaType.includes("*");
  return isKnown ? parseMediaType(only.mediaType) : { type: "", charset: undefined, kind: "text" };
}

type ToItem = (frame: StreamFrame) => StreamItem | "end" | undefined;

function toForeignItem(read: ItemReader, operationId: string): ToItem {
  return (frame) => {
    const { text, id, event } = frame;
    if (text === END) return "end";
    const cursor = id === "" || id === undefined || id.length > ID_LENGTH ? undefined : id;
    const data = orInvalid(() => read(frame), text, operationId);
    return { data, ...(cursor !== undefined && { cursor }), ...(event !== undefined && { event }) };
  };
}

/** Reads what Waybill writes: `next`, `error` and `done`; events of other names are from a later version. */
function createOwnReader(options: StreamOptions): ToItem {
  const { operationId, declared = new Set(), trusted = false, secrets = new SourceSecrets() } = options;
  const message = `"${operationId}" failed while it was streaming.`;
  const reader: HopReader = { operationId, declared, isServed: true, isTrusted: trusted, message, secrets };
  return ({ text, event }) => {
    if (event === "done") return "end";
    if (event !== "next" && event !== "error") return undefined;
    const told = orInvalid(() => readObject(text), text, operationId);
    if (event === "error") throw toHopError(told, statusOf(told), reader);
    return { data: readTold(told, operationId), ...readMembers(told) };
  };
}

function readMembers(told: Record<string, unknown>): Omit<StreamItem, "data"> {
  const cursor = ownMember(told, "cursor");
  const event = ownMember(told, "event");
  const said = ownMember(told, "said");
  return {
    ...(typeof cursor === "string" && cursor.length <= ID_LENGTH && { cursor }),
    ...(typeof event === "string" && event.length <= ID_LENGTH && { event }),
    ...(isSaidFacts(said) && { said }),
    ...(ownMember(told, "isError") === true && { error: readToolFacts(told) }),
  };
}

function readObject(text: string): Record<string, unknown> {
  const value = parseJsonText(text);
  if (!isPlainObject(value)) throw new TypeError("It is not an object.");
  return value;
}

function statusOf(problem: Record<string, unknown>): number {
  const status = ownMember(problem, "status");
  return Number.isInteger(status) ? (status as number) : 500;
}

function orInvalid<T>(read: () => T, text: string, operationId: string): T {
  try {
    return read();
  } catch (error) {
    throw new CallError(
      "OUTPUT_INVALID",
      `"${operationId}" sent an item that is not the JSON it should be.`,
      {
        cause: new Error(truncateText(text, SHOWN_TEXT), { cause: error }),
        stack: false,
      },
    );
  }
}

function tooLarge(operationId: string, eventBytes: number): CallError {
  const message = `"${operationId}" sent an item of more than ${eventBytes} bytes; raise limits.eventBytes to read it.`;
  return new CallError("TOO_LARGE", message, { correctable: false, stack: false });
}

function wasCut(operationId: string): CallError {
  return new CallError("UNAVAILABLE", `The stream of "${operationId}" was cut before its end.`, {
    stack: false,
  });
}

function mayBeCut(operationId: string): CallError {
  const message =
    `The stream of "${operationId}" may have been cut: it ended with the connection. ` +
    "Accept such streams with the option allowUndelimited.";
  return new CallError("UNAVAILABLE", message, { stack: false });
}

/** Makes the data of a piece of a stream; throws where it is not the JSON it should be. */
export type ItemReader = (frame: StreamFrame) => unknown;

/** What a schema says of text: it wants JSON, or the text itself, or does not say. */
type Wanted = "json" | "text" | "either";

const EVENT_FIELDS = new Set(["data", "event", "id", "retry", "comment"]);

/** Creates the reader of the items of one media type. */
function createItemReader(
  media: MediaPlan | undefined,
  kind: BodyKind,
  definitions: Definitions,
): ItemReader {
  const schema = toItemSchema(media, definitions);
  if (kind === "events" && describesEvent(media?.itemSchema, definitions)) {
    const readData = readerOf(wantedBy(viewWithDefinitions(media?.itemSchema, definitions).member("data")));
    return (frame) => toEvent(frame, readData);
  }
  const wanted = wantedBy(viewWithDefinitions(schema, definitions));
  const isJson = kind === "lines" || kind === "records" || kind === "json" || kind === "wire";
  const read = isJson ? jsonReaderOf(wanted, kind) : readerOf(wanted);
  return ({ text }) => read(text);
}

/** An event as OpenAPI 3.2 describes it: an object of its fields. */
function describesEvent(schema: JsonSchema | undefined, definitions: Definitions): boolean {
  const names = [...viewWithDefinitions(schema, definitions).names];
  return names.includes("data") && names.every((name) => EVENT_FIELDS.has(name));
}

function toEvent({ text, event, id }: StreamFrame, readData: (text: string) => unknown): unknown {
  return { data: readData(text), ...(event !== undefined && { event }), ...(id !== undefined && { id }) };
}

function wantedBy({ types }: SchemaView): Wanted {
  if (types.size === 0) return "either";
  if (!types.has("string")) return "json";
  return [...types].every((type) => type === "string" || type === "null") ? "text" : "either";
}

function readerOf(wanted: Wanted): (text: string) => unknown {
  switch (wanted) {
    case "json":
      return parseJsonText;
    case "text":
      return (text) => text;
    case "either":
      return (text) => (/^\s*[{[]/.test(text) ? (parseJsonTextOrNone(text) ?? text) : withoutReturn(text));
  }
}

/** Lines and records are JSON whatever is said; where text is wanted of one that is no string, it is its own text. */
function jsonReaderOf(wanted: Wanted, kind: BodyKind): (text: string) => unknown {
  const parse = kind === "records" ? parseRecord : (text: string) => parseJsonText(text);
  if (wanted !== "text") return parse;
  return (text) => {
    const value = parseJsonTextOrNone(text);
    return typeof value === "string" ? value : text.trim();
  };
}

/** A number or a word that nothing ends may have been cut (RFC 7464, section 2.4). */
function parseRecord(text: string): unknown {
  if (!/[\s"}\]]$/.test(text)) throw new SyntaxError("The record was cut.");
  return parseJsonText(text);
}

/** Lines may end as on Windows. */
function withoutReturn(text: string): string {
  return text.endsWith("\r") ? text.slice(0, -1) : text;
}
