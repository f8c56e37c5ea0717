import { isPlainObject } from "../../../core/json/json-value.ts";
import { invalidInput, refuseBlob } from "./invalid-input.ts";
import { jsonTextOf } from "./json-input.ts";

/** A value taken apart: one text, a list of them, or names with texts. */
export type ValueShape =
  | { readonly kind: "scalar"; readonly text: string }
  | { readonly kind: "list"; readonly items: readonly string[] }
  | { readonly kind: "members"; readonly members: readonly (readonly [name: string, text: string])[] };

/** Tells whether nothing was given; RFC 6570 calls both undefined. */
export function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}

/** The text of a string, number, boolean, bigint or date; nothing for lists and objects. */
export function scalarText(value: unknown, key: string): string | undefined {
  switch (typeof value) {
    case "string":
      return value;
    case "number":
      if (!Number.isFinite(value)) throw invalidInput(key, `is ${value}, which cannot be sent`);
      return String(value);
    case "boolean":
    case "bigint":
      return String(value);
    case "object":
      if (value instanceof Date) return dateText(value, key);
      refuseBlob(value, key);
      return refuseBytes(value, key);
    default:
      throw invalidInput(key, `is of type ${typeof value}, which cannot be sent`);
  }
}

/** The same where lists and objects are written as JSON: no style says how they nest. */
export function memberText(value: unknown, key: string): string {
  return scalarText(value, key) ?? jsonTextOf(value, key);
}

/** Takes a value apart; members without a value are left out, as RFC 6570 says. */
export function shapeOf(value: unknown, key: string): ValueShape {
  const text = scalarText(value, key);
  if (text !== undefined) return { kind: "scalar", text };
  if (Array.isArray(value)) {
    const items = value.filter((item) => !isAbsent(item)).map((item) => memberText(item, key));
    return { kind: "list", items };
  }
  refuseOpaque(value, key);
  const members = Object.entries(value as object).filter(([, member]) => !isAbsent(member));
  return { kind: "members", members: members.map(([name, member]) => [name, memberText(member, key)]) };
}

/** Refuses instances that show nothing of what they hold, such as maps: they would be left out without a word. */
export function refuseOpaque(value: unknown, key: string): void {
  if (Array.isArray(value) || isPlainObject(value) || Object.keys(value as object).length > 0) return;
  throw invalidInput(key, "is an instance that cannot be sent; give a list or a plain object");
}

function dateText(date: Date, key: string): string {
  if (Number.isNaN(date.getTime())) throw invalidInput(key, "is no valid date");
  return date.toISOString();
}

function refuseBytes(value: object | null, key: string): undefined {
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) {
    throw invalidInput(key, "is bytes; give them as text, such as base64");
  }
  return undefined;
}
