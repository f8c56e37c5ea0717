import type { Field, FieldFacts, TextField } from "./field.ts";
import type { JsonObject } from "./json-value.ts";

/** Texts that may be longer get more than a line. */
const LINE = 200;

const FILES = /^(application\/(octet-stream|pdf|zip|gzip)$|(audio|font|image|video)\/)/i;

const TYPES = new Map<unknown, TextField["type"]>([
  ["password", "password"],
  ["date", "date"],
  ["email", "email"],
  ["uri", "url"],
  ["url", "url"],
]);

/** Reads what kind of text is asked for. */
export function readText(keywords: JsonObject, facts: FieldFacts): Field {
  const { format, contentEncoding, contentMediaType, maxLength, pattern, writeOnly } = keywords;
  const media = typeof contentMediaType === "string" ? contentMediaType : "";
  if (
    String(contentEncoding).toLowerCase() === "base64" ||
    format === "binary" ||
    format === "byte" ||
    (contentEncoding === undefined && FILES.test(media))
  ) {
    const isType = /^[\w.+-]+\/[\w.+*-]+$/.test(media);
    return { ...facts, kind: "file", isNamed: false, ...(isType && { accept: media }) };
  }
  const type = writeOnly === true ? "password" : (TYPES.get(format) ?? "text");
  const isShort = typeof maxLength === "number" && maxLength <= LINE;
  return {
    ...facts,
    kind: "text",
    type,
    mayBreak: type === "text" && !isShort && format === undefined && pattern === undefined,
    ...(format === "date-time" && facts.examples.length === 0 && { examples: [new Date().toISOString()] }),
  };
}
