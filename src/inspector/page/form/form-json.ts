import { parsePointer } from "../../../core/json/json-pointer.ts";
import { visibleText } from "../parts/show.ts";
import { membersIn, ownOf, shortJson, withoutHidden } from "../parts/show-json.ts";

export { listIn, membersIn, ownOf } from "../parts/show-json.ts";

/** A JSON object; names are data, so those of prototypes are read with `ownOf`. */
export type FormObject = Readonly<Record<string, unknown>>;

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
export function formJsonText(value: unknown): string | undefined {
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

/** Copies a value with another one at a pointer; `undefined` takes away what is there. What the way lacks becomes objects. */
export function setAt(whole: unknown, pointer: string, value: unknown): unknown {
  const names = parsePointer(pointer);
  // Down, noting what is passed, and up again: a pointer may be longer than the stack is deep.
  const passed: unknown[] = [];
  let here = whole;
  for (const name of names) {
    passed.push(here);
    here = ownOf(here, name);
  }
  return names.reduceRight<unknown>((made, name, at) => withMember(passed[at], name, made), value);
}

/** Spreading and computed names define members, so that none of them ever reaches a prototype. */
function withMember(container: unknown, name: string, value: unknown): unknown {
  if (Array.isArray(container)) {
    const index = Number(name);
    return value === undefined ? container.toSpliced(index, 1) : container.with(index, value);
  }
  const members = membersIn(container);
  if (value === undefined) return Object.fromEntries(Object.entries(members).filter(([key]) => key !== name));
  return { ...members, [name]: value };
}

/** In valid JSON: texts, which are passed over, and numbers. */
const TEXT_OR_NUMBER = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;

/** Reads JSON that somebody typed, and says the line and column where it is none; nothing at all is no value. */
export function parseJson(text: string): Parsed {
  if (text.trim() === "") return { value: undefined };
  const found = findFault(text);
  if ("value" in found) {
    for (const { 0: token, index } of text.matchAll(TEXT_OR_NUMBER)) {
      const change = token.startsWith('"') ? undefined : findChange(token);
      if (change !== undefined) return { problem: locate(text, index, change) };
    }
    return found;
  }
  let at = found.at ?? 0;
  if (found.at === undefined) {
    // Some engines do not say where: after the longest part that merely ends too early.
    for (let end = text.length; end - at > 1; ) {
      const half: number = (at + end) >> 1;
      const part = findFault(text.slice(0, half));
      if ("value" in part || (part.at ?? -1) >= half) at = half;
      else end = half;
    }
    at -= /\w*$/.exec(text.slice(Math.max(0, at - 20), at))?.[0].length ?? 0;
  }
  return { problem: locate(text, at, found.message) };
}

function findFault(
  text: string,
): { readonly value: unknown } | { readonly at: number | undefined; readonly message: string } {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch (error) {
    const said = (error as Error).message;
    const place = /position (\d+)/.exec(said)?.[1];
    const message = said.replace(/^JSON.parse.*?: | in JSON at .*|, .*"[\s\S]*| at line .*/gi, "");
    return { at: place ? Number(place) : /end of|EOF/.test(said) ? text.length : undefined, message };
  }
}

function locate(text: string, at: number, message: string): string {
  const lines = text.slice(0, at).split("\n");
  return `line ${lines.length}, column ${(lines.at(-1) ?? "").length + 1}: ${message}`;
}

/** What a text turned out to be: a value, or why it is none. */
export type Parsed = { readonly value: unknown } | { readonly problem: string };

/** What is said where there has to be a value. */
export const NEEDED: Parsed = { problem: "A value is needed here, or remove the item." };

/** Longer ones are no numbers that people type. */
const NUMBER = /^(?=.{1,400}$)[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

/** Reads a number that somebody typed; one that would become another number is refused, so that nothing changes unseen. An item has to be one. */
export function parseNumber(text: string, isItem = false): Parsed {
  const typed = text.trim();
  if (typed === "") return isItem ? NEEDED : { value: undefined };
  if (!NUMBER.test(typed)) return { problem: "This is not a number. Write one like 12, -0.5 or 1e6." };
  const problem = findChange(typed);
  return problem === undefined ? { value: Number(typed) } : { problem };
}

/** Tells how a number, as written, would change when it is read; nothing for one that stays what it is. */
function findChange(written: string): string | undefined {
  const value = Number(written);
  const isChanged =
    !Number.isFinite(value) ||
    (value === 0 && /^[^e]*[1-9]/i.test(written)) ||
    (/^[+-]?\d{16,400}$/.test(written) && BigInt(written.replace("+", "")) !== BigInt(value));
  return isChanged
    ? `This number would be sent as ${value}. If a text will do, put it in quotes.`
    : undefined;
}
