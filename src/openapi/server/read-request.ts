import { isUtf8 } from "node:buffer";
import { type Identity, ownerOf } from "../../core/access/identity.ts";
import { CallError } from "../../core/errors/errors.ts";
import { findJsonFault } from "../../core/json/json-fault.ts";
import { isTextTooDeep, MAX_JSON_DEPTH, parseJsonText } from "../../core/json/json-value.ts";
import type { CallSlots } from "../../core/limits/call-slots.ts";
import { percentDecoded } from "../../core/text/parse-url.ts";
import { fromWire } from "../../core/wire/wire.ts";
import type { AuthenticatedRequest, HttpRequest } from "../../http/exchange.ts";
import { DATA_TYPE } from "../media-types.ts";
import { requestError } from "./problem-answer.ts";

/** What a body says, and its bytes. */
export interface PostedInput {
  /** `undefined` for an empty body. */
  readonly value: unknown;
  readonly bytes: Uint8Array;
  /** Whether the bytes are the wire form of the value. */
  readonly isWire: boolean;
}

const JSON_TYPE = /^application\/(?:[a-z0-9!#$&^_.+-]+\+)?json$/;
/** From this size on, the depth is looked at before the text is parsed: parsing deep text takes a hundred times as long. */
const LARGE_CHARACTERS = 65_536;

/** Reads a body as JSON, or as the wire form of a value. */
function toPosted(bytes: Uint8Array, isWire: boolean | undefined): PostedInput {
  if (bytes.length === 0) return { value: undefined, bytes, isWire: false };
  if (isWire === undefined) {
    const message = `The body must be JSON, and its content-type application/json or ${DATA_TYPE}.`;
    throw requestError("VALIDATION_ERROR", message, { httpStatus: 415 });
  }
  const value = parseBody(bytes);
  return { value: isWire ? fromWire(value) : value, bytes, isWire };
}

/** Tells whether a body is in wire form; nothing where its type cannot be read, which an empty body does not need. */
function readMediaType(request: HttpRequest): boolean | undefined {
  if ((request.header("content-encoding") ?? "identity") !== "identity") {
    const message = "The body must be sent as it is, without a content-encoding.";
    throw requestError("VALIDATION_ERROR", message, { httpStatus: 415 });
  }
  const header = request.header("content-type");
  if (header === "application/json") return false;
  const [type = "", ...parameters] = (header ?? "")
    .toLowerCase()
    .split(";")
    .map((piece) => piece.trim());
  const charset = parameters.find((parameter) => parameter.startsWith("charset="));
  if (charset !== undefined && !/^charset="?utf-?8"?$/.test(charset)) return undefined;
  return JSON_TYPE.test(type) ? type === DATA_TYPE : undefined;
}

function parseBody(bytes: Uint8Array): unknown {
  if (!isUtf8(bytes)) throw requestError("VALIDATION_ERROR", "The body is not UTF-8.");
  // The buffer of small bytes is made when it is first asked for.
  const buffer = Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const text = buffer.toString("utf8");
  const isDeep = text.length >= LARGE_CHARACTERS && isTextTooDeep(text);
  try {
    if (!isDeep) return parseJsonText(text);
  } catch {
    const position = findJsonFault(text);
    // Text that is JSON all the way was refused for its depth.
    if (position < text.length || !isTextTooDeep(text)) {
      const message = `The body is not JSON: it goes wrong at position ${position}.`;
      throw requestError("VALIDATION_ERROR", message, { details: { position } });
    }
  }
  const message = `The body is nested more than ${MAX_JSON_DEPTH} levels deep.`;
  throw requestError("VALIDATION_ERROR", message);
}

/** How bodies are read. */
export interface PostedBodiesOptions {
  readonly slots: CallSlots;
  readonly bodyBytes: number;
  /** Tells whether somebody who was let in still is. */
  readonly isCurrent: (identity: Identity | undefined) => boolean;
}

/** Reads what callers post. */
export class PostedBodies {
  readonly #options: PostedBodiesOptions;

  constructor(options: PostedBodiesOptions) {
    this.#options = options;
  }

  /** Reads a body, which counts as a call that runs, for it takes as much room; its caller may be let in no more by its end. */
  async read({ request, identity }: AuthenticatedRequest): Promise<PostedInput> {
    const { slots, bodyBytes, isCurrent } = this.#options;
    const owner = ownerOf(identity);
    slots.take(owner);
    try {
      const isWire = readMediaType(request);
      const posted = toPosted(await request.body(bodyBytes), isWire);
      if (!isCurrent(identity)) throw accessChanged();
      return posted;
    } finally {
      slots.giveBack(owner);
    }
  }
}

/** What a query says about the answer rather than the input. */
export interface ReservedQuery {
  /** What is left of the query. */
  readonly rest: string;
  readonly format: string | undefined;
  readonly lastEventId: string | undefined;
}

const PARAMETER = /^waybill-(format|last-event-id)=(.*)$/s;

/** Takes the parameters out of a query that every route understands. */
export function readReserved(query: string): ReservedQuery {
  if (!query.includes("waybill-")) return { rest: query, format: undefined, lastEventId: undefined };
  const found: { format?: string; "last-event-id"?: string } = {};
  const rest = query.split("&").filter((pair) => {
    const [, name, value = ""] = PARAMETER.exec(pair) ?? [];
    if (name === undefined) return true;
    found[name as keyof typeof found] = percentDecoded(value);
    return false;
  });
  return { rest: rest.join("&"), format: found.format, lastEventId: found["last-event-id"] };
}

/** Reads how long the caller of a request will wait, in milliseconds. */
export function readPatience(request: HttpRequest, otherwise: number): number {
  const header = request.header("waybill-timeout-ms") ?? request.header("request-timeout");
  if (header === undefined) return otherwise;
  if (/^\d{1,10}$/.test(header)) return Number(header);
  throw requestError("VALIDATION_ERROR", "The time to wait must be a whole number of milliseconds.");
}

/** What somebody is told who was let in by rules that are no longer in force. */
export function accessChanged(): CallError {
  return new CallError("UNAUTHENTICATED", "Who may call has changed meanwhile; ask again.", { stack: false });
}
