import { isPlainObject } from "../../core/json/json-value.ts";

const ENVELOPE_LINE = /^\s*__ENVELOPE_V\d+__:/;
const JSON_START = /^\s*[[{]/;

/**
 * Counts the values in JSON that was read, and those that its texts may hold where they look like JSON, or like an envelope block, and
 * are read in turn. Stops beyond `most`: it is for refusing what would take too long, and must not take long itself.
 */
export function countValues(value: unknown, most: number): number {
  const left: unknown[] = [value];
  let count = 0;
  while (left.length > 0 && count <= most) {
    const next = left.pop();
    count += 1;
    if (typeof next === "string") count += countInText(next);
    else if (Array.isArray(next) || isPlainObject(next)) {
      const members = Array.isArray(next) ? next : Object.values(next);
      if (count + left.length + members.length > most) return most + 1;
      for (const member of members) left.push(member);
    }
  }
  return count;
}

function countInText(text: string): number {
  if (JSON_START.test(text)) return countInJson(text);
  if (!ENVELOPE_LINE.test(text)) return 0;
  return countInJson(Buffer.from(text.slice(text.indexOf(":") + 1), "base64").toString("latin1"));
}

const COMMA = 44;
const OPENING = 123;
const CURLY = 32;

/** As many as there can be: signs within strings count too. */
function countInJson(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === COMMA || (code | CURLY) === OPENING) count += 1;
  }
  return count;
}
