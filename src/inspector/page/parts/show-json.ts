import { isObject } from "../../../core/schema/json-schema.ts";
import { escapeUnits } from "../../../core/text/clean-text.ts";
import { HIDING, visibleText } from "./show.ts";

/** Writes what hides in a JSON text as its escapes; it stays the same JSON. */
export function withoutHidden(json: string): string {
  return json.replace(HIDING, escapeUnits);
}

/** Writes any JSON as text, with all that hides in it escaped. */
export function prettyJson(value: unknown, indent = 2): string {
  try {
    return withoutHidden(JSON.stringify(value, undefined, indent) ?? "null");
  } catch {
    return "(nested too deep)";
  }
}

/** Writes any JSON in one line, with all that hides in it escaped. */
export function lineJson(value: unknown): string {
  return prettyJson(value, 0);
}

/** A text as it is, and anything else as JSON: values of others may not let themselves be made texts. */
export function shownText(value: unknown): string {
  return typeof value === "string" ? value : prettyJson(value);
}

/** Writes the beginning of a value in one line, without looking at more of it than is shown. */
export function shortJson(value: unknown, most: number): string {
  return visibleText(lineJson(beginning(value, { left: 2 * most + 16 })), most);
}

/** A copy of the first members alone, for as long as there are characters left. */
function beginning(value: unknown, room: { left: number }, depth = 0): unknown {
  room.left -= 2;
  if (typeof value === "string") {
    const text = value.slice(0, Math.max(1, room.left));
    room.left -= text.length;
    return text;
  }
  if (typeof value !== "object" || value === null) return value;
  const isList = Array.isArray(value);
  const from = (isList ? value.slice(0, Math.max(0, room.left)) : value) as Record<string, unknown>;
  const copy: Record<string, unknown> = isList ? [] : Object.create(null);
  for (const key in from) {
    if (room.left <= 0 || depth > 8) break;
    room.left -= key.length;
    copy[key] = beginning(from[key], room, depth + 1);
  }
  return copy;
}

/** The member of a value, where it has one of its own. */
export function memberOf(value: unknown, key: string): { readonly value: unknown } | undefined {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
  if (Array.isArray(value) && key === "length") return undefined;
  return { value: (value as Record<string, unknown>)[key] };
}

/** A value as an object: an empty one where it is none. */
export function membersIn(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? value : {};
}

/** A value as a list: an empty one where it is none. */
export function listIn(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Reads a member that is a value's own; nothing where there is none. */
export function ownOf(value: unknown, name: string): unknown {
  return memberOf(value, name)?.value;
}
