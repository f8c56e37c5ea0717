import { cleanText, escapeHidden } from "../../core/text/clean-text.ts";
import { truncateText } from "../../core/text/truncate-text.ts";

/** A TypeScript type as text, with what is needed to put it into another one. */
export interface TypeText {
  /** Each can stand in a union as it is. */
  readonly members: readonly string[];
  /** Whether the only member is an intersection, which binds less than `[]`. */
  readonly isIntersection: boolean;
  /** How many types a union has once the names in it are looked through. */
  readonly width: number;
}

/** Beyond this, a union of the line is written below each other. */
const LINE = 100;

/** The most types of a union that intersections make; the compiler gives up at 100,000. */
const MAX_WIDTH = 1_000;

/** Makes a type of text that binds as a name or a pair of brackets does. */
export function atom(text: string, width = 1): TypeText {
  return { members: [text], isIntersection: false, width };
}

/** Any value at all. */
export const UNKNOWN: TypeText = atom("unknown");

/** No value. */
export const NEVER: TypeText = { members: [], isIntersection: false, width: 0 };

/** Writes a type. */
export function typeText({ members }: TypeText): string {
  if (members.length === 0) return "never";
  const line = members.join(" | ");
  if (members.length === 1 || (line.length <= LINE && !line.includes("\n"))) return line;
  return members.map((member) => `\n  | ${indent(member)}`).join("");
}

/** Moves all lines but the first to the right; no text in a type spans lines. */
export function indent(text: string): string {
  return text.includes("\n") ? text.replace(/\n/g, "\n  ") : text;
}

/** A type that any of these fits. */
export function unionOf(types: readonly TypeText[]): TypeText {
  const members = new Set(types.flatMap((type) => type.members));
  if (members.has("unknown")) return UNKNOWN;
  const [only] = types.filter((type) => type.members.length > 0);
  const width = types.reduce((sum, type) => sum + type.width, 0);
  if (members.size === 1 && only !== undefined) return only;
  return { members: [...members], isIntersection: false, width };
}

/** A type that fits all of these; where that would be too much for the compiler, the widest are left out. */
export function intersectionOf(types: readonly TypeText[]): TypeText {
  if (types.some((type) => type.members.length === 0)) return NEVER;
  const byText = new Map<string, TypeText>();
  for (const type of types) if (type !== UNKNOWN) byText.set(typeText(type), type);
  const kept: TypeText[] = [];
  let width = 1;
  for (const type of [...byText.values()].sort((a, b) => a.width - b.width)) {
    if (kept.length > 0 && width * type.width > MAX_WIDTH) break;
    kept.push(type);
    width *= type.width;
  }
  const [first] = kept;
  if (first === undefined) return UNKNOWN;
  if (kept.length === 1) return first;
  const inOrder = [...byText.values()].filter((type) => kept.includes(type));
  return { members: [inOrder.map(inIntersection).join(" & ")], isIntersection: true, width };
}

function inIntersection(type: TypeText): string {
  return type.members.length > 1 ? `(${typeText(type)})` : typeText(type);
}

/** A list of such items. */
export function arrayOf(item: TypeText): TypeText {
  const text = typeText(item);
  return atom(item.members.length > 1 || item.isIntersection ? `(${text})[]` : `${text}[]`);
}

const IDENTIFIER = /^[A-Za-z_$][A-Za-z0-9_$]*$/;

const MAX_NAME = 120;

/** Writes a text as a literal that no line break, control or hidden character stands in. */
export function quote(text: string): string {
  return escapeHidden(JSON.stringify(text));
}

/** Writes the name of a property. */
export function propertyKey(name: string): string {
  return IDENTIFIER.test(name) ? name : quote(name);
}

/** Makes a name for a type out of any text: `repos/get-all` becomes `ReposGetAll`. */
export function typeName(...texts: readonly string[]): string {
  const words = texts.flatMap((text) => text.slice(0, MAX_NAME).match(/[A-Za-z0-9]+/g) ?? []);
  const name = words
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("")
    .slice(0, MAX_NAME);
  return /^[A-Za-z]/.test(name) ? name : `Type${name}`;
}

/** Names that are given once each; one asked for again gets a number. */
export class NameBook {
  readonly #taken = new Map<string, number>();

  give(wanted: string): string {
    let count = this.#taken.get(wanted) ?? 0;
    let name = wanted;
    while (this.#taken.has(name)) {
      count += 1;
      name = `${wanted}${count + 1}`;
    }
    this.#taken.set(wanted, count);
    if (name !== wanted) this.#taken.set(name, 0);
    return name;
  }
}

const MAX_COMMENT = 1_000;

/** What a comment of a type is made of. */
interface Documented {
  readonly description?: unknown;
  readonly title?: unknown;
  readonly deprecated?: unknown;
  readonly default?: unknown;
}

/** Writes what a schema says for people as a comment with a line break after it; nothing where it says nothing. */
export function docComment({ description, title, deprecated, ...rest }: Documented): string {
  const said = typeof description === "string" && description.trim() !== "" ? description : title;
  const lines = [
    ...(typeof said === "string" ? commentLines(said) : []),
    ...(deprecated === true ? ["@deprecated"] : []),
    ...("default" in rest ? defaultLine(rest.default) : []),
  ];
  const [first] = lines;
  if (first === undefined) return "";
  if (lines.length === 1) return `/** ${first} */\n`;
  return `/**\n${lines.map((line) => (line === "" ? " *" : ` * ${line}`)).join("\n")}\n */\n`;
}

function defaultLine(value: unknown): readonly string[] {
  const isScalar = typeof value === "number" || typeof value === "boolean";
  const isShort = typeof value === "string" && value.length <= 60;
  return isScalar || isShort ? [`@default ${commentLines(JSON.stringify(value)).join(" ")}`] : [];
}

/** Lines that end no comment, hold nothing hidden, and tell the compiler nothing. */
function commentLines(text: string): readonly string[] {
  const { text: clean } = cleanText(text.slice(0, MAX_COMMENT * 2));
  const short = clean.length > MAX_COMMENT ? `${truncateText(clean, MAX_COMMENT).trimEnd()}…` : clean;
  const safe = short.replace(/\*(?=\/)/g, "*\\").replace(/@(?=ts-)/gi, "");
  const lines = safe.split("\n").map((line) => line.replace(/\s+/g, " ").trim());
  return lines.filter((line, index) => line !== "" || (index > 0 && lines[index - 1] !== "")).slice(0, 40);
}
