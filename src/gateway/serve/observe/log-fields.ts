import { isCallError } from "../../../core/errors/errors.ts";
import { setOwn } from "../../../core/json/json-value.ts";
import { cleanText } from "../../../core/text/clean-text.ts";
import type { LogFields } from "./logger.ts";

/** Bounds of one line of the log; what is beyond is left out. */
export const LOG_LIMITS = {
  /** Characters of one text. */
  characters: 8_192,
  /** Members of one object or list. */
  members: 100,
  /** Objects within objects. */
  depth: 6,
  /** Values in one line. */
  values: 1_000,
} as const;

/** Names that a line has for itself. */
const TAKEN = new Set(["level", "time", "__proto__"]);

/** A copy of fields that is fit to be written: no secret, nothing a terminal acts on, nothing without end. */
export function toLogFields(fields: LogFields, mask: (text: string) => string): LogFields {
  return copyMembers(fields, 0, mask, { values: LOG_LIMITS.values });
}

type Left = { values: number };

function copyValue(value: unknown, depth: number, mask: (text: string) => string, left: Left): unknown {
  left.values -= 1;
  if (left.values < 0) return "…";
  switch (typeof value) {
    case "string":
      return toLogText(value, mask);
    case "number":
      return Number.isFinite(value) ? value : String(value);
    case "boolean":
      return value;
    case "undefined":
      return undefined;
    case "bigint":
      return String(value);
    case "symbol":
    case "function":
      return `[${typeof value}]`;
    case "object":
      return value === null ? null : copyObject(value, depth + 1, mask, left);
  }
}

function copyObject(value: object, depth: number, mask: (text: string) => string, left: Left): unknown {
  if (depth > LOG_LIMITS.depth) return "…";
  try {
    if (value instanceof Error) return copyMembers(errorFields(value), depth, mask, left);
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? "no date" : value.toISOString();
    if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
    if (!Array.isArray(value)) return copyMembers(value as LogFields, depth, mask, left);
    return value.slice(0, LOG_LIMITS.members).map((item) => copyValue(item, depth, mask, left));
  } catch {
    return "[unreadable]";
  }
}

function copyMembers(
  fields: LogFields,
  depth: number,
  mask: (text: string) => string,
  left: Left,
): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  let members = 0;
  for (const name of Object.keys(fields)) {
    if (members++ === LOG_LIMITS.members) break;
    const shown = toLogText(name, mask);
    const value = copyValue(fields[name], depth, mask, left);
    setOwn(copy, depth === 0 && TAKEN.has(shown) ? `${shown}_` : shown, value);
  }
  return copy;
}

/** Text that is shown as it is, which nearly all is: finding out costs a tenth of cleaning it. */
const PRINTABLE = /^[\x20-\x7e]*$/;

/** A text that is fit to be written; cut after masking, so that no part of a secret is left at the end. */
export function toLogText(text: string, mask: (text: string) => string): string {
  if (text.length <= LOG_LIMITS.characters && PRINTABLE.test(text)) return mask(text);
  const masked = mask(text.slice(0, 8 * LOG_LIMITS.characters));
  // A secret may have been spelt with characters that nobody sees.
  const clean = mask(cleanText(masked).text);
  return clean.length > LOG_LIMITS.characters ? `${clean.slice(0, LOG_LIMITS.characters)}…` : clean;
}

function errorFields(error: Error): LogFields {
  const { name, message, cause } = error;
  const code: unknown = isCallError(error) ? error.code : (error as { readonly code?: unknown }).code;
  return {
    name,
    message,
    ...(code !== undefined && { code }),
    ...(cause instanceof Error && { cause }),
  };
}
