import { mediaKindOf, readDeclaredType } from "../../media-types.ts";
import { isHeaderValue } from "../header-rules.ts";
import type { BodyPlan, OperationPlan } from "../plan.ts";
import { isFileInput, readFileInput } from "./bytes-input.ts";
import { checkWellFormed } from "./escape.ts";
import { createFormWriter } from "./form-body.ts";
import { invalidInput, notCallable } from "./invalid-input.ts";
import { jsonTextOf } from "./json-input.ts";
import { createMultipartWriter } from "./multipart-body.ts";
import { memberText } from "./parameter-value.ts";

/** A body as it is sent. */
export interface WrittenBody {
  readonly body: string | Uint8Array;
  readonly contentType: string;
}

/** Writes the body of one call. */
export type BodyWriter = (value: unknown) => WrittenBody;

const OCTETS = "application/octet-stream";

/** Makes what writes bodies of an operation, in the first media type that it takes. */
export function createBodyWriter(body: BodyPlan, definitions: OperationPlan["definitions"]): BodyWriter {
  const { key } = body;
  const [media] = body.content;
  const contentType = media?.mediaType.trim() ?? OCTETS;
  const type = readDeclaredType(contentType);
  if (!isHeaderValue(contentType)) {
    return () => {
      throw notCallable("The body cannot be sent: its media type is none.");
    };
  }
  switch (mediaKindOf(type.essence)) {
    case "json":
      return (value) => ({ body: jsonTextOf(value, key), contentType });
    case "lines":
      return (value) => ({ body: linesOf(value, key), contentType });
    case "records":
      return (value) => ({ body: linesOf(value, key, "\u001e"), contentType });
    case "form": {
      const write = createFormWriter(key, media?.encoding);
      return (value) => ({ body: write(value), contentType });
    }
    case "multipart":
      return createMultipartWriter(key, type, { media, definitions });
    case "xml":
      return (value) => ({ body: textOf(value, key, "xml"), contentType });
    case "text":
    case "events":
      return (value) => ({ body: textOf(value, key, "text"), contentType: textType(contentType) });
    case "bytes":
      return (value) => ({ body: bytesOf(value, key), contentType });
    case "range":
      return (value) => writeInRange(value, key, type.essence);
  }
}

/** A range of types is not one: text means plain text. */
function textType(contentType: string): string {
  return contentType.startsWith("text/*") ? "text/plain; charset=utf-8" : contentType;
}

function textOf(value: unknown, key: string, kind: "text" | "xml"): string | Uint8Array {
  if (isFileInput(value)) return readFileInput(value, key).bytes;
  if (kind === "xml" && typeof value !== "string") throw invalidInput(key, "must be XML, as text");
  return value === null ? "null" : checkWellFormed(memberText(value, key), key);
}

function bytesOf(value: unknown, key: string): Uint8Array {
  return readFileInput(value, key).bytes;
}

/** One JSON text a line, each behind a mark; text is taken to be lines already. */
function linesOf(value: unknown, key: string, mark = ""): string | Uint8Array {
  if (typeof value === "string" || isFileInput(value)) return textOf(value, key, "text");
  if (!Array.isArray(value)) throw invalidInput(key, "must be a list, each item a line");
  return value.map((item) => `${mark}${jsonTextOf(item, key)}\n`).join("");
}

/** Bytes go as what they say they are; other data is JSON where the range allows it. */
function writeInRange(value: unknown, key: string, range: string): WrittenBody {
  const takesJson = range === "*/*" || range === "application/*";
  if (takesJson && typeof value !== "string" && !isFileInput(value) && !(value instanceof Blob)) {
    return { body: jsonTextOf(value, key), contentType: "application/json" };
  }
  const { bytes, contentType = OCTETS } = readFileInput(value, key);
  return { body: bytes, contentType };
}
