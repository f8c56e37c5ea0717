import { isPlainObject } from "../../core/json/json-value.ts";
import { kindOf, kindsType } from "./schema-kinds.ts";
import { propertyKey, quote } from "./type-names.ts";
import { atom, type TypeText, unionOf } from "./type-text.ts";

/** Constants written out; more of them become the kinds of value they are. */
const MAX_LITERALS = 2_000;

/** Characters of one constant that is written out. */
const MAX_LENGTH = 2_000;

/** The type of a fixed set of values, those of the wanted kinds. */
export function literalsType(values: readonly unknown[], kinds: number): TypeText {
  const wanted = values.filter((value) => (kindOf(value) & kinds) !== 0);
  if (wanted.length <= MAX_LITERALS) return unionOf(wanted.map(literalType));
  return kindsType(wanted.reduce<number>((bits, value) => bits | kindOf(value), 0));
}

function literalType(value: unknown): TypeText {
  const text = literalText(value, MAX_LENGTH);
  return text === undefined ? kindsType(kindOf(value)) : atom(text);
}

/** Nothing where it gets longer than it may. */
function literalText(value: unknown, room: number): string | undefined {
  const text = typeof value === "object" && value !== null ? structureText(value, room) : scalarText(value);
  return text === undefined || text.length > room ? undefined : text;
}

function scalarText(value: unknown): string {
  if (typeof value === "string") return quote(value);
  // A negative zero is no other type than zero.
  return value === 0 ? "0" : String(value);
}

function structureText(value: object, room: number): string | undefined {
  const entries = Array.isArray(value) ? value.map((item) => ["", item] as const) : Object.entries(value);
  if (!Array.isArray(value) && !isPlainObject(value)) return undefined;
  const texts: string[] = [];
  let left = room;
  for (const [key, member] of entries) {
    const text = literalText(member, left);
    if (text === undefined) return undefined;
    texts.push(Array.isArray(value) ? text : `${propertyKey(key)}: ${text}`);
    left -= text.length + key.length + 4;
    if (left < 0) return undefined;
  }
  if (Array.isArray(value)) return `[${texts.join(", ")}]`;
  return texts.length === 0 ? "{ [key: string]: never }" : `{ ${texts.join("; ")} }`;
}
