import { isPlainObject } from "../../../core/json/json-value.ts";
import { decodeBase64 } from "../../../core/wire/base64.ts";
import { parseSendableType } from "../../media-types.ts";
import { checkWellFormed } from "./escape.ts";
import { invalidInput, refuseBlob } from "./invalid-input.ts";

/** Bytes of an input, and what it says about them. */
export interface GivenFile {
  readonly bytes: Uint8Array;
  readonly filename?: string | undefined;
  /** A media type, checked. */
  readonly contentType?: string | undefined;
}

const FILE_KEYS = new Set(["base64", "filename", "contentType"]);

/** Tells whether a value can only be meant as bytes: bytes, or base64 with what belongs to it and nothing else. */
export function isFileInput(value: unknown): boolean {
  if (value instanceof ArrayBuffer || ArrayBuffer.isView(value)) return true;
  if (!isPlainObject(value) || typeof value["base64"] !== "string") return false;
  return Object.keys(value).every((name) => FILE_KEYS.has(name));
}

/** Reads bytes from an input: bytes, text for its UTF-8, or `{ base64, filename?, contentType? }`. */
export function readFileInput(value: unknown, key: string, pointer = ""): GivenFile {
  if (typeof value === "string") return { bytes: new TextEncoder().encode(checkWellFormed(value, key)) };
  if (value instanceof ArrayBuffer) return { bytes: new Uint8Array(value) };
  if (ArrayBuffer.isView(value)) {
    return { bytes: new Uint8Array(value.buffer, value.byteOffset, value.byteLength) };
  }
  if (!isFileInput(value)) {
    refuseBlob(value, key, pointer);
    throw invalidInput(key, 'must be bytes: a Uint8Array, text, or { base64: "…" }', pointer);
  }
  const { base64, filename, contentType } = value as Record<string, unknown>;
  const bytes = decodeBase64(base64 as string);
  if (bytes === undefined) throw invalidInput(key, "is not valid base64", `${pointer}/base64`);
  if (filename !== undefined && typeof filename !== "string") {
    throw invalidInput(key, "must be text", `${pointer}/filename`);
  }
  return { bytes, filename, contentType: readContentType(contentType, key, `${pointer}/contentType`) };
}

function readContentType(contentType: unknown, key: string, pointer: string): string | undefined {
  if (contentType === undefined) return undefined;
  const type = typeof contentType === "string" ? parseSendableType(contentType) : undefined;
  if (type === undefined || type.essence.includes("*")) {
    throw invalidInput(key, 'must be a media type, such as "image/png"', pointer);
  }
  return (contentType as string).trim();
}
