import { shortJson, withoutHidden } from "../parts/json-text.ts";
import { visibleText } from "../parts/visible-text.ts";

export { isMembers as isObject, listIn, membersIn, ownOf } from "../parts/json-text.ts";

/** A JSON object; names are data, so those of prototypes are read with `ownOf`. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Tells whether two values read the same as JSON. */
export function isSameJson(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  const text = typeof one === "object" && typeof other === "object" ? jsonOf(one) : undefined;
  return text !== undefined && text === jsonOf(other);
}

/** Tells whether a text holds characters that an input would drop, change or hide. */
export function isHardToShow(text: string): boolean {
  return /\p{Cs}/u.test(text) || visibleText(text) !== text;
}

/** Writes a value as JSON for people to edit; `""` stands for no value, nothing for one that is too deep to write. */
export function toJsonText(value: unknown): string | undefined {
  if (value === undefined) return "";
  const text = jsonOf(value, 2);
  return text && withoutHidden(text);
}

/** Writes a value in one short line; a text as it is. */
export function showShort(value: unknown, most = 80): string {
  return typeof value === "string" ? visibleText(value, most) : shortJson(value, most);
}

/** Values can be deeper than the stack. */
function jsonOf(value: unknown, indent?: number): string | undefined {
  try {
    return JSON.stringify(value, null, indent);
  } catch {
    return undefined;
  }
}
