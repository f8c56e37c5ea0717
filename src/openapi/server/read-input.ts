import { isUtf8 } from "node:buffer";
import { isTextTooDeep, MAX_JSON_DEPTH } from "../../core/json/json-depth.ts";
import { findJsonFault } from "../../core/json/json-fault.ts";
import { parseJsonText } from "../../core/json/json-text.ts";
import { fromWire } from "../../core/wire/wire.ts";
import type { HttpRequest } from "../../http/exchange.ts";
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

/** Reads the body of a request as JSON, or as the wire form of a value where its media type says so. */
export async function readPosted(request: HttpRequest, maxBytes: number): Promise<PostedInput> {
  const isWire = readMediaType(request);
  const bytes = await request.body(maxBytes);
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
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
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
